"""PoPE: content says how much, position says at what angle."""

from collections.abc import Sequence
from math import pi
from numbers import Integral
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_choice, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotary import schedule_of
from posenc.encodings.queries_keys.rotation import (
    check_key_heads,
    check_rows,
    rotation_table,
    sincos_of,
)
from posenc.encodings.shapes import Device, Dtype, Heads, Row
from posenc.encodings.told import arguments_told
from posenc.frequencies import Schedule

Phases = Literal["zero", "uniform"]


class PoPE(QueryKeyEncoding):
    """Each channel is a magnitude, turned by an angle of its own that content cannot change.

    q_c → softplus(q_c) · (cos pω_c, sin pω_c)
    k_c → softplus(k_c) · (cos(pω_c + δ_c), sin(pω_c + δ_c))

    A channel becomes a pair: encoded heads are wider (``encoded_dim``), with the two numbers of a
    channel side by side. Scores are scaled by the width that went in. δ is learned (``bias``,
    ``[heads, channels]``), and held within [−2π, 0].

    Args:
        frequencies: A schedule with ω_c for channel c, a list or tensor of radians per position,
            or the number of channels d that are encoded, for base^(−c/d).
        heads: Number of key heads.
        base: 10000 if not given; a schedule has its own.
        head_dim: Width of a head, where it is more than the channels that are encoded.
        phases: How δ begins: all ``"zero"``, or ``"uniform"`` within its bounds.

    Reference:
        Gopalakrishnan et al. 2025, "Decoupling the What and Where With Polar Coordinate Positional
        Embeddings" (arXiv:2509.10534); ``PolarEmbedding`` in x-transformers, PoPE-pytorch.

    Example:
        >>> q, k = PoPE(64, heads=2)(torch.randn(1, 8, 5, 64), torch.randn(1, 2, 5, 64))
        >>> q.shape, k.shape
        (torch.Size([1, 8, 5, 128]), torch.Size([1, 2, 5, 128]))
    """

    is_relative = takes_reals = True

    def __init__(
        self,
        frequencies: int | Schedule | Tensor | Sequence[float],
        heads: int,
        *,
        base: int | float | None = None,
        head_dim: int | None = None,
        phases: Phases = "zero",
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        width = 2 * frequencies if isinstance(frequencies, Integral) else frequencies
        self.frequencies = schedule_of(width, base)  # type: ignore[arg-type]
        sincos_of(self.frequencies)  # made here, since graphs cannot make it
        self.channels = len(self.frequencies)
        self.head_dim = self.channels if head_dim is None else head_dim
        check_whole(heads=heads)
        check_whole(self.channels, head_dim=self.head_dim)
        check_choice(get_args(Phases), phases=phases)
        self.heads, self.phases, self.heads_first = heads, phases, heads_first
        self.bias = nn.Parameter(torch.empty(heads, self.channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.phases == "zero":
            nn.init.zeros_(self.bias)
        else:
            nn.init.uniform_(self.bias, -2 * pi, 0.0)

    @property
    def encoded_dim(self) -> int:
        """Two numbers for each channel that is encoded, and one for each that is not."""
        return self.head_dim + self.channels

    def table(
        self, positions: Row, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch seq 2 channels"]:
        """cos and sin at ``positions``, times the attention factor of the schedule."""
        sincos, factor = sincos_of(self.frequencies), self.frequencies.attention_factor
        return rotation_table(sincos, positions, dtype, factor)

    def encode_queries(
        self, q: Heads, table: Float[Tensor, "*rows 2 channels"]
    ) -> Float[Tensor, "*batch _ _ encoded_dim"]:
        """Magnitudes of ``q`` at the angles of their positions."""
        return self._turned(q, *self._rows(q, table))

    def encode_keys(
        self, k: Heads, table: Float[Tensor, "*rows 2 channels"]
    ) -> Float[Tensor, "*batch _ _ encoded_dim"]:
        """Magnitudes of ``k`` at the angles of their positions, and δ further."""
        check_key_heads(k, self.heads, self.heads_first)
        cos, sin = self._rows(k, table)
        delta = self.bias.to(cos.dtype).clamp(-2 * pi, 0.0)
        if self.heads_first:
            delta = delta.unsqueeze(-2)
        ahead, across = delta.cos(), delta.sin()
        return self._turned(k, cos * ahead - sin * across, sin * ahead + cos * across)

    def _rows(self, x: Tensor, table: Tensor) -> tuple[Tensor, ...]:
        """cos and sin, with an axis for the heads, in float32 at least."""
        check_rows(x, table, (2, self.channels), self.heads_first)
        table = table.to(torch.promote_types(table.dtype, working_dtype(x.dtype)))
        return tuple(part.unsqueeze(-3 if self.heads_first else -2) for part in table.unbind(-2))

    def _turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        wide = x.to(cos.dtype)
        magnitude, rest = F.softplus(wide[..., : self.channels]), wide[..., self.channels :]
        pairs = torch.stack((magnitude * cos, magnitude * sin), dim=-1).flatten(-2)
        return torch.cat((pairs, rest), dim=-1).to(x.dtype)

    def extra_repr(self) -> str:
        return arguments_told(self, head_dim=self.channels)
