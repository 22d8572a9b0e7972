"""Rotary encoding of LTX-Video and LTX-2: the frequencies run over all heads together."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from posenc.arguments import check_flag, check_positive_number, check_whole, is_row
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos, unturned
from posenc.encodings.queries_keys.rotation import rotate_each_head
from posenc.frequencies import Powers
from posenc.frequencies.schedule import TWO_PI, Schedule
from posenc.numerics.pairing import Pairing, checked_pairing
from posenc.positions import Coordinates, Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places

MOST_SIZE = 2**31
"""A bound of numerators and denominators of sizes, which make steps finer."""


@dataclass(frozen=True)
class QuarterTurns(Schedule):
    """π/2 · base^(k/(count − 1)) for k = 0 … count − 1: faster and faster, up to the base.

    Example:
        >>> QuarterTurns(2, 100.0).wavelengths()
        (4.0, 0.04)
    """

    count: int
    base: float
    still: int = 0
    """Frequencies of 0 that come first, for pairs that do not turn."""

    def radians(self) -> tuple[Decimal, ...]:
        grown = Powers(self.base, tuple(-k for k in range(self.count)), max(self.count - 1, 1))
        still = (Decimal(0),) * self.still
        return still + tuple(TWO_PI / 4 * power for power in grown.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return torch.tensor([float(w) for w in self.radians()], dtype=torch.float32)


class LTXRotary(QueryKeyEncoding):
    """Pair i of all heads turns by π/2 · b^(k/(n−1)) · (2p/s − 1), for time, height and width.

    s is the size of an axis, so coordinates run from −1 to 1, and the fastest pairs turn b times as
    fast as the slowest. The n = ⌊heads · d / 6⌋ frequencies of each axis are dealt out t, h, w, t,
    h, w, … over the pairs of all heads, one head after the other; of the pairs, the first one or
    two may be left over, which do not turn. So each head has other frequencies, and keys need as
    many heads as queries.

    Positions are ``[*batch, seq, 3]`` with (t, h, w) in the units of the sizes: whole numbers, or
    ``posenc.positions.Coordinates``, as for seconds and middles of patches. Sizes may be fractions;
    the table is exact in any case. LTX-2's sound, and its attention between sound and video, have
    time alone: ``sizes=(20,)``, n = ⌊heads · d / 2⌋, positions ``[*batch, seq, 1]`` in seconds.

    Args:
        head_dim: d.
        heads: Number of heads.
        sizes: s of time, height and width. In LTX-Video 20 seconds and 2048 pixels, which are
            ``Fraction(125, 2)`` latent frames of 8/25 seconds and 64 patches of 32 pixels. As many
            as positions have axes, from one on.
        base: b.
        pairing: ``"interleaved"`` (LTX-Video) or ``"half"`` (the ``split`` of LTX-2), within a
            head.
        heads_first: Whether content is ``[*batch, heads, seq, head_dim]``.

    Raises:
        ValueError: An odd width, no head, fewer than two channels an axis in all, or a size that
            is no positive rational number.

    Reference:
        HaCohen et al. 2024, "LTX-Video", section 2.3 (arXiv:2501.00103);
        ``LTXVideoRotaryPosEmbed`` and ``LTX2AudioVideoRotaryPosEmbed`` of diffusers.

    Example:
        >>> from posenc.positions import grid
        >>> LTXRotary(64, heads=32).table(grid(2, 4, 4)).shape
        torch.Size([32, 2, 32, 32])
        >>> sound = LTXRotary(64, heads=32, sizes=(20,), pairing="half")  # seconds, 25 a second
        >>> sound.table(Coordinates(grid(126), scale=Fraction(1, 25))).shape
        torch.Size([126, 2, 32, 32])
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self,
        head_dim: int,
        heads: int,
        sizes: Sequence[int | float | Fraction] = (Fraction(125, 2), 64, 64),
        base: float = 10_000.0,
        *,
        pairing: Pairing = "interleaved",
        heads_first: bool = True,
    ):
        super().__init__()
        check_whole(heads=heads)
        check_whole(2, head_dim=head_dim)
        check_positive_number(base=base)
        self.sizes = _checked_sizes(sizes)
        inner, axes = head_dim * heads, len(self.sizes)
        if head_dim % 2 or inner < 2 * axes:
            raise ValueError(
                f"head_dim is {head_dim} with {heads} heads; it must be even, and heads · head_dim "
                f"{2 * axes} or more."
            )
        self.head_dim, self.heads, self.base = head_dim, heads, base
        self.pairing: Pairing = checked_pairing(pairing)
        check_flag(heads_first=heads_first)
        self.heads_first = heads_first
        count, still = inner // (2 * axes), inner // 2 % axes
        # The pairs that are left over belong to time, with a frequency of 0.
        dealt = (0,) * still + tuple(range(axes)) * count
        schedules = (QuarterTurns(count, base, still if axis == 0 else 0) for axis in range(axes))
        self.sincos = AxisSinCos(tuple(schedules), dealt)

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 heads pairs"]:
        """cos and sin for every head, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have a coordinate for each size.
        """
        positions, nowhere = among_places(checked_points(positions, len(self.sizes)))
        given = (Coordinates(positions[..., axis]) for axis in range(len(self.sizes)))
        centered = (2 * p / size - 1 for p, size in zip(given, self.sizes, strict=True))
        table = self.sincos.table(Coordinates.stack(tuple(centered), dim=-1), dtype)
        return unturned(table, nowhere).unflatten(-1, (self.heads, -1))

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 heads pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated, each head by its own frequencies.

        Raises:
            ValueError: Width, length or number of heads is not that of the table.
        """
        return rotate_each_head(
            q,
            table,
            name="LTXRotary",
            built=self.heads,
            head_dim=self.head_dim,
            pairing=self.pairing,
            heads_first=self.heads_first,
        )

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 heads pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self.encode_queries(k, table)

    def extra_repr(self) -> str:
        """Width, heads, sizes and what is not as in LTX-Video."""
        told = [str(self.head_dim), f"heads={self.heads}"]
        told.append(f"sizes=({', '.join(map(str, self.sizes))}{',' * (len(self.sizes) == 1)})")
        told.append(f"base={self.base}")
        if self.pairing != "interleaved":
            told.append(f"pairing={self.pairing!r}")
        return ", ".join(told)


def _checked_sizes(sizes: object) -> tuple[Fraction, ...]:
    if not is_row(sizes) or not sizes:
        raise ValueError(
            f"sizes are {sizes!r}; give those of time, height and width, or of time alone."
        )
    for size in sizes:
        check_positive_number(**{"A size": size})
    exact = tuple(Fraction(size) for size in sizes)
    for size in exact:
        if max(size.numerator, size.denominator) > MOST_SIZE:
            raise ValueError(
                f"A size is {size}; give a ratio of whole numbers up to 2^31, as Fraction(125, 2)."
            )
    return exact
