"""The Fourier features of NeRF: each coordinate at octaves of half a turn a unit."""

from fractions import Fraction

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_flag, check_whole
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import add, checked_dropout
from posenc.frequencies.given import TurnsPerUnit
from posenc.guards import floating
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.joined import joined
from posenc.numerics.sincos import SinCos
from posenc.positions import Positions, floats
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed

MOST_BANDS = 64


class NeRFFeatures(TokenEncoding):
    """γ(p) = (sin 2^0 πp, cos 2^0 πp, …, sin 2^(L−1) πp, cos 2^(L−1) πp) for each coordinate p.

    Coordinates are real numbers, in the paper from −1 to 1 (``posenc.positions.Coordinates``); at
    whole positions all sines are 0. Their octaves are exact, so that γ(1) is what it should be.

    The features are usually not added but read by a network: that is ``table``. The authors' code
    leaves π out and goes through the coordinates within each octave, which is another order of the
    same channels.

    Args:
        axes: Number of coordinates.
        bands: L: 10 for places and 4 for directions in the paper.
        include_input: Whether the coordinates themselves come first, as in the authors' code.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.

    Attributes:
        dim: axes · 2L, and ``axes`` more with the input.

    Raises:
        ValueError: A number is not positive, or there are more than 64 bands.

    Reference:
        Mildenhall et al. 2020, "NeRF: Representing Scenes as Neural Radiance Fields for View
        Synthesis", equation 4 (arXiv:2003.08934).

    Example:
        >>> from posenc.positions import Coordinates
        >>> NeRFFeatures(axes=1, bands=2).table(Coordinates([[0.25], [1]]))
        tensor([[ 0.7071,  0.7071,  1.0000,  0.0000],
                [ 0.0000, -1.0000,  0.0000,  1.0000]])
    """

    takes_reals = True
    keeps_neighbors_apart = False  # its sines of whole numbers of half turns are equal

    def __init__(
        self,
        axes: int = 3,
        bands: int = 10,
        *,
        include_input: bool = False,
        dropout: float = 0.0,
        batch_first: bool = True,
    ):
        super().__init__()
        check_whole(axes=axes, bands=bands)
        check_flag(include_input=include_input)
        if bands > MOST_BANDS:
            raise ValueError(f"bands is {bands}; there are {MOST_BANDS} octaves at most.")
        self.axes, self.bands, self.include_input = axes, bands, include_input
        self.dim = axes * (2 * bands + include_input)
        check_flag(batch_first=batch_first)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        self.keeps_norm = self.keeps_shift = not include_input
        self.sincos = SinCos(TurnsPerUnit(tuple(Fraction(2**k, 2) for k in range(bands))))

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq dim"]:
        """γ at ``positions``, float32 unless another dtype is asked for; zeros at no place.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have one coordinate an axis.
        """
        points, nowhere = among_places(checked_points(positions, self.axes))
        dtype = floating(dtype)
        parts = [floats(points, dtype)] if self.include_input else []
        for axis in range(self.axes):
            cos, sin = cos_sin(self.sincos, points[..., axis], dtype)
            parts.append(joined((sin, cos), -1, torch.stack).flatten(-2))
        return zeroed(joined(parts, -1) + 0.0, nowhere)  # half a turn has a sine of −0

    def encode(
        self, x: Float[Tensor, "*batch seq dim"], table: Float[Tensor, "*rows dim"]
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``."""
        return add(
            x,
            table,
            name="NeRFFeatures",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        told = ", include_input=True" if self.include_input else ""
        return f"axes={self.axes}, bands={self.bands}{told}"
