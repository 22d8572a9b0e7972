"""Rotary in several axes at once: each pair looks in a direction of its own."""

from collections.abc import Sequence
from typing import Any, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_choice
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import unturned
from posenc.encodings.queries_keys.directions import golden_gate_vectors, spiral_vectors
from posenc.encodings.queries_keys.rotation import rotate_each_head, rotate_heads
from posenc.encodings.shapes import Dtype, Heads
from posenc.frequencies import FromCheckpoint
from posenc.guards import floating
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.joined import joined
from posenc.numerics.pairing import Pairing
from posenc.numerics.several_axes import cos_sin_of_axes
from posenc.numerics.sincos import SinCos
from posenc.positions import Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class DirectedRotary(QueryKeyEncoding):
    """Pair i turns by ⟨w_i, p⟩ = Σ_a w_i,a · p_a, for a point p and fixed vectors w_i.

    w_i is a direction times a speed. q·k depends on the difference of two points. Directions may
    differ by head; keys then need as many heads as queries. The table is exact. ``RoPEMixed``
    learns such vectors.

    Args:
        vectors: w, ``[pairs, axes]`` or ``[heads, pairs, axes]``, in radians a unit: a tensor or
            nested lists. ``golden_gate`` and ``spiral`` build the published ones.

    Reference:
        Xiong 2025, "On N-dimensional Rotary Positional Embeddings"
        (https://jerryxio.ng/posts/nd-rope); Heo et al. 2024, equation 9 (arXiv:2403.13298).

    Example:
        >>> from fractions import Fraction
        >>> from posenc.positions import Coordinates, grid
        >>> points = Coordinates(2 * grid(14, 14) - 13, scale=Fraction(1, 13))  # −1 … 1
        >>> DirectedRotary.golden_gate(64, heads=6).table(points).shape
        torch.Size([196, 2, 6, 32])
    """

    is_relative = takes_reals = True

    def __init__(
        self,
        vectors: Tensor | Sequence[Any],
        *,
        pairing: Pairing = "half",
        heads_first: bool = True,
    ):
        super().__init__()
        check_choice(get_args(Pairing), pairing=pairing)
        given = torch.as_tensor(vectors, dtype=torch.float64, device="cpu").detach()
        if given.ndim not in (2, 3) or not given.isfinite().all():
            wanted = "finite numbers [pairs, axes] or [heads, pairs, axes]"
            raise ValueError(f"vectors have shape {tuple(given.shape)}; they must be {wanted}.")
        self.by_head, self.axes = given.ndim == 3, given.shape[-1]
        if self.by_head:
            self.heads = given.shape[0]
        self.head_dim = 2 * given.shape[-2]
        self.pairing: Pairing = pairing
        self.heads_first = heads_first
        self.layout = RotaryLayout(pairing == "interleaved", heads_first=heads_first)
        self.vectors = given.tolist()
        self.parts = tuple(
            SinCos(FromCheckpoint(along)) for along in given.flatten(end_dim=-2).unbind(-1)
        )

    @classmethod
    def golden_gate(
        cls,
        head_dim: int,
        axes: int = 2,
        heads: int = 1,
        *,
        pairing: Pairing = "half",
        heads_first: bool = True,
        **speeds: Any,
    ) -> "DirectedRotary":
        """Directions spread by the golden ratio, for coordinates from −1 to 1.

        ``speeds`` are ``slowest``, ``fastest``, ``still`` and ``spread`` of
        ``directions.golden_gate_vectors``.

        Example:
            >>> DirectedRotary.golden_gate(64, axes=3, heads=12, fastest=40.0)
            DirectedRotary(heads=12, pairs=32, axes=3)
        """
        vectors = golden_gate_vectors(head_dim, axes, heads, **speeds)
        return cls(vectors, pairing=pairing, heads_first=heads_first)

    @classmethod
    def spiral(
        cls,
        head_dim: int,
        directions: int = 4,
        *,
        pairing: Pairing = "interleaved",
        heads_first: bool = True,
        **speeds: float,
    ) -> "DirectedRotary":
        """K directions at equal angles, for (y, x) in patches.

        ``speeds`` are ``base`` and ``fastest`` of ``directions.spiral_vectors``.

        Example:
            >>> DirectedRotary.spiral(64)
            DirectedRotary(pairs=32, axes=2, pairing='interleaved')
        """
        vectors = spiral_vectors(head_dim, directions, **speeds)
        return cls(vectors, pairing=pairing, heads_first=heads_first)

    def table(
        self, positions: Tensor | Positions, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch_seq"]:
        """cos and sin, ``[*batch, seq, 2, pairs]`` or ``[*batch, seq, 2, heads, pairs]``."""
        points, nowhere = among_places(checked_points(positions, self.axes))
        table = joined(cos_sin_of_axes(self.parts, points, floating(dtype)), -2, torch.stack)
        table = unturned(table, nowhere)
        return table.unflatten(-1, (self.heads, -1)) if self.by_head else table

    def encode_queries(self, q: Heads, table: Float[Tensor, "..."]) -> Heads:
        if self.by_head:
            return rotate_each_head(q, table, pairing=self.pairing, heads_first=self.heads_first)
        width = self.head_dim
        return rotate_heads(q, table, self.layout, width, width)

    def extra_repr(self) -> str:
        heads = f"heads={self.heads}, " if self.by_head else ""
        pairing = "" if self.pairing == "half" else f", pairing={self.pairing!r}"
        return f"{heads}pairs={self.head_dim // 2}, axes={self.axes}{pairing}"
