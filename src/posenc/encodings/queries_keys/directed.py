"""Rotary in several axes at once: each pair looks in a direction of its own."""

from collections.abc import Sequence
from math import cos, pi, sin, sqrt
from statistics import NormalDist
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from posenc.arguments import (
    check_choice,
    check_multiple,
    check_positive_number,
    check_probability,
    check_whole,
)
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import unturned
from posenc.encodings.queries_keys.rotation import rotate_each_head, rotate_heads
from posenc.encodings.shapes import Dtype, Heads
from posenc.frequencies import FromCheckpoint, Powers
from posenc.guards import floating
from posenc.kernels.rotary.front import RotaryLayout
from posenc.numerics.pairing import Pairing
from posenc.numerics.product import joined
from posenc.numerics.sincos import SinCos, cos_sin_of_axes
from posenc.positions import Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

Spread = Literal["angle", "normal"]

GOLDEN = (sqrt(5) - 1) / 2


def golden_gate_vectors(
    head_dim: int,
    axes: int = 2,
    heads: int = 1,
    *,
    slowest: float = 0.2,
    fastest: float = 20.0,
    still: float = 0.0,
    spread: Spread | None = None,
) -> Float64[Tensor, "heads pairs axes"]:
    """Golden-gate frequencies: geometric in size, spread over all directions by a golden ratio.

    Pair i of head h is number j = h · d/2 + i. ``"angle"``, for two axes (y, x), looks at (sin,
    cos) of jπ(√5 − 1)/2. ``"normal"`` looks at the normal quantiles of frac((j + 1) / g^(a+1)) for
    the axes a, thrown onto the sphere, where g > 1 solves g^(axes+1) = g + 1.

    Args:
        slowest: Size of the first frequencies, as ``fastest`` of the last, in radians a unit.
        still: Share of the pairs, from the first on, that do not turn.
        spread: ``"angle"`` for two axes unless ``"normal"`` is asked for.
    """
    check_multiple(2, head_dim=head_dim)
    check_whole(axes=axes, heads=heads)
    check_positive_number(slowest=slowest, fastest=fastest)
    check_probability(still=still)
    spread = spread or ("angle" if axes == 2 else "normal")
    check_choice(get_args(Spread), spread=spread)
    pairs = head_dim // 2
    resting = round(still * pairs)
    moving = pairs - resting
    ratio = fastest / slowest
    sizes = [0.0] * resting + [slowest * ratio ** (i / max(moving - 1, 1)) for i in range(moving)]
    looks = [
        _by_angle(number) if spread == "angle" else _by_normal(number, axes)
        for number in range(heads * pairs)
    ]
    directions = torch.tensor(looks, dtype=torch.float64).view(heads, pairs, axes)
    return directions * torch.tensor(sizes, dtype=torch.float64)[:, None]


def _by_angle(number: int) -> list[float]:
    turn = number * pi * GOLDEN
    return [sin(turn), cos(turn)]


def _by_normal(number: int, axes: int) -> list[float]:
    g = 2.0
    for _ in range(60):  # contracts to the root of g^(axes + 1) = g + 1
        g = (1 + g) ** (1 / (axes + 1))
    parts = [(number + 1) / g ** (axis + 1) % 1.0 for axis in range(axes)]
    drawn = [NormalDist().inv_cdf(part) for part in parts]
    length = sqrt(sum(each * each for each in drawn))
    return [each / length for each in drawn]


def spiral_vectors(
    head_dim: int, directions: int = 4, *, base: float = 10_000.0, fastest: float = 1.5
) -> Float64[Tensor, "pairs axes"]:
    """Spiral RoPE: K directions at equal angles over half a turn, dealt out to pairs of pairs.

    Of the d/2 pairs the first half looks at (cos, sin) of k · 180°/K along (y, x), where pairs
    2n and 2n + 1 have k = n mod K/2; the second half looks a quarter turn further. Frequencies are
    ``fastest`` · b^(−4i/d) in each half. ``fastest`` is in radians a patch.

    Reference:
        "Spiral RoPE", ``RoPE_DeiT/rope.py`` of huajianduzhuo-code/Spiral_RoPE, whose code turns a
        sampled map of angles about its middle. This is the linear formula: inside the image it is
        the same up to one angle for all tokens.
    """
    check_multiple(2, directions=directions)
    check_multiple(4 * directions, head_dim=head_dim)
    check_positive_number(base=base, fastest=fastest)
    turns = directions // 2
    sizes = Powers(base, tuple(range(0, head_dim, 4)), head_dim)
    made = []
    for quarter in (0, 1):
        for pair, wavelength in enumerate(sizes.wavelengths()):
            angle = pi / 2 * (pair // 2 % turns) / turns
            size = fastest * 2 * pi / wavelength
            along = (cos(angle), sin(angle)) if not quarter else (-sin(angle), cos(angle))
            made.append([size * each for each in along])
    return torch.tensor(made, dtype=torch.float64)


class DirectedRotary(QueryKeyEncoding):
    """Pair i turns by ⟨w_i, p⟩ = Σ_a w_i,a · p_a, for a point p and fixed vectors w_i.

    w_i is a direction times a speed. q·k depends on the difference of two points. Directions may
    differ by head; keys then need as many heads as queries. The table is exact. ``RoPEMixed``
    learns such vectors.

    Args:
        vectors: w, ``[pairs, axes]`` or ``[heads, pairs, axes]``, in radians a unit: a tensor or
            nested lists.

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
        """Directions of ``golden_gate_vectors``, for coordinates from −1 to 1."""
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
        """Directions of ``spiral_vectors``, for (y, x) in patches."""
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
