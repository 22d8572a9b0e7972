"""Rotary encoding of LTX-Video and LTX-2: the frequencies run over all heads together."""

from collections.abc import Sequence
from fractions import Fraction

from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_multiple, check_positive_number, check_whole
from posenc.encodings.queries_keys.axes import AxisSinCos, RotationOfAxes, Turns
from posenc.encodings.queries_keys.rotation import rotate_each_head
from posenc.encodings.shapes import Dtype, Heads, Points
from posenc.frequencies import Powers
from posenc.numerics.pairing import Pairing, checked_pairing
from posenc.positions import Coordinates


class LTXRotary(RotationOfAxes):
    """Pair i of all heads turns by π/2 · b^(k/(n−1)) · (2p/s − 1), for time, height and width.

    s is the size of an axis, so coordinates run from −1 to 1. The n = ⌊heads · d / 6⌋ frequencies
    of each axis are dealt out t, h, w, t, h, w, … over the pairs of all heads, one head after the
    other; the first one or two pairs may be left over and do not turn. Keys need as many heads as
    queries.

    Positions are ``[*batch, seq, 3]`` with (t, h, w) in the units of the sizes, whole or
    ``posenc.positions.Coordinates``. LTX-2's sound has time alone: ``sizes=(20,)``, positions
    ``[*batch, seq, 1]`` in seconds.

    Args:
        sizes: s of time, height and width, one an axis. In LTX-Video 20 seconds and 2048 pixels:
            125/2 latent frames of 8/25 seconds and 64 patches of 32 pixels.
        pairing: ``"interleaved"`` (LTX-Video) or ``"half"`` (the ``split`` of LTX-2), in a head.

    Reference:
        HaCohen et al. 2024, "LTX-Video", section 2.3 (arXiv:2501.00103);
        ``LTXVideoRotaryPosEmbed`` and ``LTX2AudioVideoRotaryPosEmbed`` of diffusers.

    Example:
        >>> from posenc.positions import grid
        >>> LTXRotary(64, heads=32).table(grid(2, 4, 4)).shape
        torch.Size([32, 2, 32, 32])
    """

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
        check_whole(heads=heads, axes=len(sizes))
        check_multiple(2, head_dim=head_dim)
        check_positive_number(base=base)
        for size in sizes:
            check_positive_number(size=size)
        inner, axes = head_dim * heads, len(sizes)
        self.sizes = tuple(Fraction(size) for size in sizes)
        self.head_dim, self.heads, self.base = head_dim, heads, base
        self.pairing: Pairing = checked_pairing(pairing)
        self.heads_first = heads_first
        count, still = inner // (2 * axes), inner // 2 % axes
        powers = Powers(base, tuple(-k for k in range(count)), max(count - 1, 1))
        # The pairs that are left over belong to time, with a frequency of 0.
        turns = [Turns(powers, Fraction(1, 4), 0 if axis else still) for axis in range(axes)]
        self.sincos = AxisSinCos(turns, [0] * still + [*range(axes)] * count)

    def coordinate(self, along: Tensor | Coordinates, axis: int) -> Coordinates:
        """2p/s − 1."""
        return 2 * Coordinates(along) / self.sizes[axis] - 1

    def table(
        self, positions: Points, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch seq 2 heads pairs"]:
        return super().table(positions, dtype=dtype).unflatten(-1, (self.heads, -1))

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 heads pairs"]) -> Heads:
        return rotate_each_head(q, table, pairing=self.pairing, heads_first=self.heads_first)

    def extra_repr(self) -> str:
        sizes = f"({', '.join(map(str, self.sizes))}{',' * (len(self.sizes) == 1)})"
        pairing = "" if self.pairing == "interleaved" else f", pairing={self.pairing!r}"
        return f"{self.head_dim}, heads={self.heads}, sizes={sizes}, base={self.base}{pairing}"
