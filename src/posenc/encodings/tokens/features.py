"""Features of real coordinates: octaves, bands, random directions, and learned times."""

import random
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from posenc.arguments import check_choice, check_multiple, check_positive_number, check_whole
from posenc.encodings.shapes import Device, Dtype, Embeddings, Points, Row
from posenc.encodings.tokens.addition import Added
from posenc.encodings.told import arguments_told
from posenc.frequencies import TurnsPerUnit
from posenc.guards import floating
from posenc.kernels.sincos.front import cos_sin
from posenc.numerics.product import joined
from posenc.numerics.sincos import SinCos, cos_sin_of_axes
from posenc.positions import checked, floats, in_float64
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed

GRAIN = 2**32
"""Random frequencies are whole numbers of σ over this, beyond what machines disagree on."""

Directions = list[tuple[Fraction, ...]]


class NeRFFeatures(Added):
    """γ(p) = (sin 2^0 πp, cos 2^0 πp, …, sin 2^(L−1) πp, cos 2^(L−1) πp) for each coordinate p.

    Coordinates are real, in the paper from −1 to 1 (``posenc.positions.Coordinates``). Octaves are
    exact. The authors' code leaves π out and goes through the coordinates within each octave,
    another order of the same channels.

    Args:
        bands: L, at most 64: 10 for places and 4 for directions in the paper.
        include_input: Whether the coordinates themselves come first, as in the authors' code.

    Reference:
        Mildenhall et al. 2020, "NeRF", equation 4 (arXiv:2003.08934).

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
        check_whole(axes=axes, bands=bands)
        dim = axes * (2 * bands + include_input)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.axes, self.bands, self.include_input = axes, bands, include_input
        self.keeps_norm = self.keeps_shift = not include_input
        self.sincos = SinCos(TurnsPerUnit(tuple(Fraction(2**k, 2) for k in range(bands))))

    def table(self, positions: Points, *, dtype: Dtype = None) -> Embeddings:
        points, nowhere = among_places(checked_points(positions, self.axes))
        dtype = floating(dtype)
        parts = [floats(points, dtype)] if self.include_input else []
        for axis in range(self.axes):
            cos, sin = cos_sin(self.sincos, points[..., axis], dtype)
            parts.append(joined((sin, cos), -1, torch.stack).flatten(-2))
        return zeroed(joined(parts, -1) + 0.0, nowhere)  # half a turn has a sine of −0


class PerceiverFeatures(Added):
    """γ(p) = [p | sin π f_ak p_a | cos π f_ak p_a],  f_ak = 1 + (μ_a/2 − 1) · k / (K − 1).

    a counts axes, k the K bands of each, from 1 to the Nyquist frequency μ_a/2. Coordinates run
    from −1 to 1, as of ``posenc.positions.normalized_grid(H, W, at="corners")``.

    Args:
        resolution: μ of each axis, in samples: (224, 224) for images.
        bands: K: 64 for images in the paper.
        include_input: Whether the coordinates themselves come first, as in the paper.

    Reference:
        Jaegle et al. 2021, "Perceiver", section 3.2 (arXiv:2103.03206);
        ``generate_fourier_features`` of transformers.

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
        check_whole(bands=bands)
        check_whole(2, **{f"resolution[{axis}]": each for axis, each in enumerate(resolution)})
        dim = len(resolution) * (2 * bands + include_input)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.resolution, self.axes = tuple(resolution), len(resolution)
        self.bands, self.include_input = bands, include_input
        self.keeps_norm = self.keeps_shift = not include_input
        self.parts = tuple(
            SinCos(TurnsPerUnit(tuple(each / 2 for each in _spaced(Fraction(samples, 2), bands))))
            for samples in self.resolution
        )

    def table(self, positions: Points, *, dtype: Dtype = None) -> Embeddings:
        points, nowhere = among_places(checked_points(positions, self.axes))
        dtype = floating(dtype)
        axes = zip(self.parts, points.unbind(-1), strict=True)
        cosines, sines = zip(*(cos_sin(each, along, dtype) for each, along in axes), strict=True)
        given = [floats(points, dtype)] if self.include_input else []
        made = joined((*given, *sines, *cosines), -1) + 0.0  # half a turn has a sine of −0
        return zeroed(made, nowhere)


def _spaced(last: Fraction, count: int) -> tuple[Fraction, ...]:
    """As many numbers from 1 to the last, evenly."""
    return tuple(1 + (last - 1) * Fraction(k, max(count - 1, 1)) for k in range(count))


class RandomFourierFeatures(Added):
    """γ(p) = [cos 2πBp | sin 2πBp], the rows of B drawn from N(0, σ²) once and for all.

    Coordinates are real (``posenc.positions.Coordinates``). One seed gives one B on every machine;
    B (``directions``, rows of fractions) is no parameter. ``from_directions`` takes the B of a
    trained model.

    Args:
        dim: Width, twice the number of rows of B.
        std: σ, in turns a unit; 10 is a good one for images on [0, 1]² in the paper.
        sines_first: Whether the sines come before the cosines, as in SAM and score models.

    Reference:
        Tancik et al. 2020, "Fourier Features Let Networks Learn High Frequency Functions in Low
        Dimensional Domains", section 6.1 (arXiv:2006.10739); Rahimi & Recht 2007.

    Example:
        >>> from posenc.positions import Coordinates
        >>> features = RandomFourierFeatures(64, axes=2, std=10.0)
        >>> features.table(Coordinates([[0.25, 0.5]])).shape
        torch.Size([1, 64])
    """

    keeps_norm = keeps_shift = takes_reals = True

    def __init__(
        self,
        dim: int,
        axes: int = 2,
        std: float = 10.0,
        seed: int = 0,
        *,
        sines_first: bool = False,
        dropout: float = 0.0,
        batch_first: bool = True,
    ):
        check_multiple(2, dim=dim)
        check_whole(axes=axes)
        check_whole(0, seed=seed)
        check_positive_number(std=std)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.axes, self.std, self.seed, self.sines_first = axes, std, seed, sines_first
        self._look(_drawn(dim // 2, axes, std, seed))

    @classmethod
    def from_directions(
        cls, directions: Float[Tensor, "rows axes"], *, sines_first: bool = False
    ) -> "RandomFourierFeatures":
        """The features of given directions B in turns a unit.

        SAM's are ``positional_embedding.T``, for points (x, y) from −1 to 1. Those of diffusers'
        ``GaussianFourierProjection`` are ``weight[:, None]``, for logarithms of noise levels. Both
        have the sines first.
        """
        rows, axes = directions.shape
        made = cls(2 * rows, axes, sines_first=sines_first)
        made._look([tuple(map(Fraction, row)) for row in directions.detach().double().tolist()])
        made.given, made.std, made.seed = True, None, None
        return made

    def _look(self, directions: Directions) -> None:
        self.directions, self.given = directions, False
        self.parts = tuple(SinCos(TurnsPerUnit(along)) for along in zip(*directions, strict=True))
        steps = [*zip(*directions, strict=True), [sum(row) for row in directions]]
        # Whole turns along an axis, or along all of them, come around at the next position.
        self.keeps_neighbors_apart = not any(all(n % 1 == 0 for n in step) for step in steps)

    def table(self, positions: Points, *, dtype: Dtype = None) -> Embeddings:
        points, nowhere = among_places(checked_points(positions, self.axes))
        cos, sin = cos_sin_of_axes(self.parts, points, floating(dtype))
        return zeroed(joined((sin, cos) if self.sines_first else (cos, sin), -1), nowhere)

    def extra_repr(self) -> str:
        return arguments_told(self) + (", given directions" if self.given else "")


def _drawn(rows: int, axes: int, std: float, seed: int) -> Directions:
    """Normal numbers by their quantiles, from bits that are the same everywhere."""
    bits, normal = random.Random(seed), NormalDist()

    def number() -> Fraction:
        quantile = normal.inv_cdf((bits.getrandbits(52) + 0.5) / 2**52)
        return Fraction(round(quantile * GRAIN), GRAIN) * Fraction(std)

    return [tuple(number() for _ in range(axes)) for _ in range(rows)]


Periodic = Literal["sin", "cos"]


class Time2Vec(Added):
    """t2v(τ)[0] = ω_0 τ + φ_0,   t2v(τ)[i] = f(ω_i τ + φ_i) for i from 1 on, all learned.

    With f = sin this is also the time embedding of mTAN, which has one for each head. Times are
    whole or real (``posenc.positions.Coordinates``). ``weight`` is ω and ``bias`` φ, ``[dim]``.
    Angles are float64.

    Args:
        dim: Width; one channel is linear.
        function: f, ``"sin"`` or ``"cos"``.

    Reference:
        Kazemi et al. 2019, "Time2Vec", equation 1 (arXiv:1907.05321); Shukla & Marlin 2021,
        "Multi-Time Attention Networks for Irregularly Sampled Time Series", equation 1
        (arXiv:2101.10318), whose code begins as ``torch.nn.Linear`` does, as here.

    Example:
        >>> from posenc.positions import Coordinates
        >>> Time2Vec(8).table(Coordinates([0.5, 2.25])).shape
        torch.Size([2, 8])
    """

    takes_reals = True

    def __init__(
        self,
        dim: int,
        function: Periodic = "sin",
        *,
        dropout: float = 0.0,
        batch_first: bool = True,
        device: Device = None,
        dtype: Dtype = None,
    ):
        check_whole(2, dim=dim)
        check_choice(get_args(Periodic), function=function)
        super().__init__(dim, dropout=dropout, batch_first=batch_first)
        self.function = function
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(dim, **factory))
        self.bias = nn.Parameter(torch.empty(dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw ω and φ anew from U(−1, 1)."""
        nn.init.uniform_(self.weight, -1.0, 1.0)
        nn.init.uniform_(self.bias, -1.0, 1.0)

    def table(self, positions: Row, *, dtype: Dtype = None) -> Embeddings:
        positions = checked(positions, device=self.weight.device, reals=True)
        times = in_float64(positions).unsqueeze(-1)
        angles = times * in_float64(self.weight) + in_float64(self.bias)
        periodic = angles[..., 1:].sin() if self.function == "sin" else angles[..., 1:].cos()
        table = torch.cat((angles[..., :1], periodic), dim=-1)
        return table.to(floating(dtype)).to(positions.device)
