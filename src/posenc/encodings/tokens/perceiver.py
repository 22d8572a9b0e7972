"""The Fourier features of Perceiver: each coordinate at even frequencies up to Nyquist's."""

from collections.abc import Sequence
from fractions import Fraction

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_flag, check_whole, is_row
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


class PerceiverFeatures(TokenEncoding):
    """γ(p) = [p | sin π f_ak p_a | cos π f_ak p_a],  f_ak = 1 + (μ_a/2 − 1) · k / (K − 1).

    a goes through the axes and within each k through its K bands: frequencies from 1 to half of the
    resolution μ_a, beyond which samples of that axis could not tell them apart. Coordinates run
    from −1 to 1: ``posenc.positions.normalized_grid(H, W, at="corners")``, or any
    ``posenc.positions.Coordinates``. Bands are exact fractions, so values have one rounding.

    The features are usually not added but put beside the inputs, or read by a network: that is
    ``table``.

    Args:
        resolution: μ of each axis, in samples: (224, 224) for images.
        bands: K: 64 for images in the paper.
        include_input: Whether the coordinates themselves come first, as in the paper.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.

    Attributes:
        dim: axes · 2K, and ``axes`` more with the input.

    Raises:
        ValueError: ``bands`` is not positive, or a resolution is less than 2.

    Reference:
        Jaegle et al. 2021, "Perceiver: General Perception with Iterative Attention", section 3.2
        (arXiv:2103.03206); ``generate_fourier_features`` of transformers.

    Example:
        >>> from posenc.positions import normalized_grid
        >>> features = PerceiverFeatures((224, 224), bands=64)
        >>> features.table(normalized_grid(2, 3, at="corners")).shape
        torch.Size([6, 258])
    """

    takes_reals = True
    keeps_neighbors_apart = False  # bands are fractions, which come around at whole numbers

    def __init__(
        self,
        resolution: Sequence[int],
        bands: int = 64,
        *,
        include_input: bool = True,
        dropout: float = 0.0,
        batch_first: bool = True,
    ):
        super().__init__()
        check_whole(bands=bands)
        check_flag(include_input=include_input)
        self.resolution, self.bands = _checked_resolution(resolution), bands
        self.axes, self.include_input = len(self.resolution), include_input
        self.dim = self.axes * (2 * bands + include_input)
        check_flag(batch_first=batch_first)
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        self.keeps_norm = self.keeps_shift = not include_input
        self.parts = tuple(
            SinCos(TurnsPerUnit(tuple(each / 2 for each in _spaced(last, bands))))
            for last in (Fraction(samples, 2) for samples in self.resolution)
        )

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
        axes = zip(self.parts, points.unbind(-1), strict=True)
        cosines, sines = zip(*(cos_sin(each, along, dtype) for each, along in axes), strict=True)
        given = [floats(points, dtype)] if self.include_input else []
        made = joined((*given, *sines, *cosines), -1) + 0.0  # half a turn has a sine of −0
        return zeroed(made, nowhere)

    def encode(
        self, x: Float[Tensor, "*batch seq dim"], table: Float[Tensor, "*rows dim"]
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``."""
        return add(
            x,
            table,
            name="PerceiverFeatures",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        told = "" if self.include_input else ", include_input=False"
        return f"resolution={self.resolution}, bands={self.bands}{told}"


def _checked_resolution(resolution: object) -> tuple[int, ...]:
    if not is_row(resolution) or not resolution:
        raise ValueError(
            f"resolution is {resolution!r}; give the samples of each axis, as (224, 224)."
        )
    for axis, samples in enumerate(resolution):
        check_whole(2, **{f"resolution[{axis}]": samples})
    return tuple(int(samples) for samples in resolution)


def _spaced(last: Fraction, count: int) -> tuple[Fraction, ...]:
    """As many numbers from 1 to the last, evenly."""
    return tuple(1 + (last - 1) * Fraction(k, max(count - 1, 1)) for k in range(count))
