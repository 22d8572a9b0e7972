"""FoPE: each pair turns by a learned mixture of all frequencies that training has met in full."""

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice, check_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.rotary import schedule_of
from posenc.encodings.queries_keys.rotation import check_key_heads, rotate_each_head
from posenc.encodings.shapes import Device, Dtype, Heads, Row
from posenc.frequencies import Schedule
from posenc.frequencies.given import Selected
from posenc.guards import floating
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.product import products
from posenc.numerics.sincos import SinCos
from posenc.positions import checked

Slow = Literal["paper", "code"]


class FoPE(QueryKeyEncoding):
    """Rotary, with Σ_ω C[ω, i] cos pω and Σ_ω S[ω, i] sin pω for the cosine and sine of pair i.

    The sums are over the frequencies that make a whole turn in the trained length, ω > 2π/L. C and
    S are learned for each key head (``cos_coef`` and ``sin_coef``, ``[heads, frequencies, pairs]``,
    as in checkpoints). They begin near the identity, where this is rotary. Slower pairs are
    multiplied by (1, 0) in the paper, and by (1, 1) in the authors' code, which has a quarter of
    the columns at most, and in Intern-S1-Pro.

    Args:
        frequencies: A schedule, a list or tensor of radians per position, or the width of a head
            for ``Geometric(width, base)``. The mixtures belong to these frequencies.
        heads: Number of key heads.
        trained_length: L, in tokens.
        base: Base of ``Geometric``, 10000 if not given; a schedule has its own.
        gain: How far C and S begin from the identity, as the gain of Xavier: 0.3 in the authors'
            code (the paper's σ), 0.5 in Intern-S1-Pro.
        slow: What multiplies slower pairs, by the ``"paper"`` or by the ``"code"``.

    Reference:
        Hua et al. 2024, "Fourier Position Embedding", equation 13 and appendix B
        (arXiv:2412.17739); without the normalization of that appendix, as ``fope.py`` in vLLM.

    Example:
        >>> fope = FoPE(64, heads=2, trained_length=512)
        >>> fope.cos_coef.shape, fope.table(torch.arange(5)).shape
        (torch.Size([2, 16, 16]), torch.Size([5, 2, 2, 32]))
    """

    is_relative = False
    takes_reals = True

    def __init__(
        self,
        frequencies: int | Schedule | Tensor | Sequence[float],
        heads: int,
        trained_length: int,
        *,
        base: int | float | None = None,
        gain: float = 0.3,
        slow: Slow = "paper",
        heads_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, trained_length=trained_length)
        check_number(0.0, gain=gain)
        check_choice(get_args(Slow), slow=slow)
        self.frequencies = schedule_of(frequencies, base)
        lengths = self.frequencies.wavelengths()
        kept = tuple(i for i, length in enumerate(lengths) if abs(length) < trained_length)
        if not kept:
            raise ValueError(f"No frequency turns once in trained_length={trained_length}.")
        self.head_dim, self.heads, self.trained_length = 2 * len(lengths), heads, trained_length
        self.gain, self.slow, self.heads_first = gain, slow, heads_first
        self.sincos = SinCos(Selected(self.frequencies, kept))
        # Which of the mixtures, and of what pads them, each pair takes: slow ones need not be last.
        columns = [*kept, *(i for i in range(len(lengths)) if i not in kept)]
        self.order = [columns.index(i) for i in range(len(lengths))]
        shape, factory = (heads, len(kept), len(kept)), {"device": device, "dtype": dtype}
        self.cos_coef = nn.Parameter(torch.empty(shape, **factory))
        self.sin_coef = nn.Parameter(torch.empty(shape, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """The identity, and small random numbers around it."""
        for coefficients in (self.cos_coef, self.sin_coef):
            nn.init.xavier_normal_(coefficients, gain=self.gain)
            coefficients += torch.eye(len(self.sincos), device=coefficients.device)

    def table(
        self, positions: Row, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch seq 2 heads pairs"]:
        """What multiplies each pair and its turned neighbor, times the attention factor."""
        dtype = floating(dtype)
        wide = torch.promote_types(dtype, torch.float32)
        factor = self.frequencies.attention_factor
        parts = cos_sin(self.sincos, checked(positions, reals=True), wide, factor=factor)
        rest = factor, factor if self.slow == "code" else 0.0
        made = [
            self._padded(part, coefficients, value)
            for part, coefficients, value in zip(
                parts, (self.cos_coef, self.sin_coef), rest, strict=True
            )
        ]
        return torch.stack(made, dim=-3).to(dtype)

    def _padded(self, part: Tensor, coefficients: Tensor, value: float) -> Tensor:
        """The mixtures of each head, and ``value`` for the pairs that are too slow."""
        mixed = products(part, coefficients.transpose(-1, -2).flatten(0, 1))
        mixed = mixed.unflatten(-1, (self.heads, -1))
        slow = self.head_dim // 2 - mixed.shape[-1]
        padded = nn.functional.pad(mixed, (0, slow), value=value)
        return padded if self.order == sorted(self.order) else padded[..., self.order]

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 heads pairs"]) -> Heads:
        group = q.shape[-3 if self.heads_first else -2] // self.heads
        table = table.repeat_interleave(group, dim=-2)
        return rotate_each_head(q, table, pairing="half", heads_first=self.heads_first)

    def encode_keys(self, k: Heads, table: Float[Tensor, "*rows 2 heads pairs"]) -> Heads:
        check_key_heads(k, self.heads, self.heads_first)
        return self.encode_queries(k, table)
