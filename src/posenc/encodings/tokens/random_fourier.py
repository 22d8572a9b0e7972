"""Random Fourier features: coordinates along random directions, at random speeds."""

import random
from fractions import Fraction
from statistics import NormalDist

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_flag, check_positive_number, check_whole
from posenc.encodings.base import TokenEncoding
from posenc.encodings.tokens.addition import add, checked_dropout
from posenc.frequencies.given import TurnsPerUnit
from posenc.guards import floating
from posenc.numerics.joined import joined
from posenc.numerics.several_axes import cos_sin_of_axes
from posenc.numerics.sincos import SinCos
from posenc.positions import Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places, zeroed

GRAIN = 2**32
"""Frequencies are whole numbers of σ over this, beyond what machines disagree on."""


class RandomFourierFeatures(TokenEncoding):
    """γ(p) = [cos 2πBp | sin 2πBp], the rows of B drawn from N(0, σ²) once and for all.

    Coordinates are real numbers (``posenc.positions.Coordinates``), one for each axis. σ says how
    fine the features are: small ones are smooth, large ones tell near points apart. The same seed
    gives the same B on every machine; B is no parameter, and in no state dict. That of a trained
    model, as SAM's prompts or the noise levels of score models, is taken by ``from_directions``.

    Args:
        dim: Width, twice the number of rows of B.
        axes: Number of coordinates.
        std: σ, in turns a unit; 10 is a good one for images on [0, 1]² in the paper.
        seed: Where B comes from.
        sines_first: Whether the sines come before the cosines, as in SAM and score models.
        dropout: Probability of dropping an element of the sum while training.
        batch_first: Whether ``x`` is ``[*batch, seq, dim]`` or ``[seq, batch, dim]``.

    Attributes:
        directions: B, a list of rows of fractions.

    Raises:
        ValueError: ``dim`` is odd, or a number is not positive.

    Reference:
        Tancik et al. 2020, "Fourier Features Let Networks Learn High Frequency Functions in Low
        Dimensional Domains", section 6.1 (arXiv:2006.10739); Rahimi & Recht 2007.

    Example:
        >>> from posenc.positions import Coordinates
        >>> features = RandomFourierFeatures(64, axes=2, std=10.0)
        >>> features.table(Coordinates([[0.25, 0.5]])).shape
        torch.Size([1, 64])
    """

    keeps_norm = True
    keeps_shift = True
    takes_reals = True

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
        super().__init__()
        check_whole(2, dim=dim)
        check_whole(axes=axes)
        check_whole(0, seed=seed)
        check_positive_number(std=std)
        if dim % 2:
            raise ValueError(f"dim is {dim}; each sine has its cosine, so it must be even.")
        self.dim, self.axes, self.std, self.seed = dim, axes, std, seed
        check_flag(sines_first=sines_first, batch_first=batch_first)
        self.sines_first = sines_first
        self.dropout, self.batch_first = checked_dropout(dropout), batch_first
        self._look(_drawn(dim // 2, axes, std, seed))

    @classmethod
    def from_directions(
        cls, directions: Float[Tensor, "rows axes"], *, sines_first: bool = False
    ) -> "RandomFourierFeatures":
        """The features of given directions, taken as the exact numbers that they hold.

        SAM's are ``positional_embedding.T``, for points (x, y) from −1 to 1; those of diffusers'
        ``GaussianFourierProjection`` are ``weight[:, None]``, for logarithms of noise levels. Both
        have the sines first.

        Args:
            directions: B, in turns a unit.
            sines_first: As above.

        Raises:
            TypeError: It is no tensor of floats.
            ValueError: It is not ``[rows, axes]``, or a number is not finite.

        Example:
            >>> features = RandomFourierFeatures.from_directions(torch.tensor([[0.125]]))
            >>> features.table([[1]])
            tensor([[0.7071, 0.7071]])
        """
        if not isinstance(directions, Tensor) or not directions.is_floating_point():
            kind = getattr(directions, "dtype", type(directions).__name__)
            raise TypeError(f"directions are {kind}; they must be a tensor of floats.")
        if directions.ndim != 2 or not directions.numel() or not directions.isfinite().all():
            raise ValueError(
                f"directions have shape {tuple(directions.shape)}; they must be finite numbers "
                f"[rows, axes]."
            )
        rows, axes = directions.shape
        made = cls(2 * rows, axes, sines_first=sines_first)
        made._look([tuple(map(Fraction, row)) for row in directions.detach().double().tolist()])
        made.given = True
        return made

    def _look(self, directions: list[tuple[Fraction, ...]]) -> None:
        self.directions, self.given = directions, False
        self.parts = tuple(SinCos(TurnsPerUnit(along)) for along in zip(*directions, strict=True))
        steps = [*zip(*directions, strict=True), [sum(row) for row in directions]]
        # Whole turns along an axis, or along all of them, come around at the next position.
        self.keeps_neighbors_apart = not any(all(n % 1 == 0 for n in step) for step in steps)

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
        cos, sin = cos_sin_of_axes(self.parts, points, floating(dtype))
        return zeroed(joined((sin, cos) if self.sines_first else (cos, sin), -1), nowhere)

    def encode(
        self, x: Float[Tensor, "*batch seq dim"], table: Float[Tensor, "*rows dim"]
    ) -> Float[Tensor, "*batch seq dim"]:
        """``dropout(x + table)``."""
        return add(
            x,
            table,
            name="RandomFourierFeatures",
            dropout=self.dropout if self.training else 0.0,
            batch_first=self.batch_first,
        )

    def extra_repr(self) -> str:
        """The arguments."""
        first = ", sines_first=True" if self.sines_first else ""
        if self.given:
            return f"{self.dim}, axes={self.axes}, given directions{first}"
        return f"{self.dim}, axes={self.axes}, std={self.std}, seed={self.seed}{first}"


def _drawn(rows: int, axes: int, std: float, seed: int) -> list[tuple[Fraction, ...]]:
    """Normal numbers by their quantiles, from bits that are the same everywhere."""
    bits, normal = random.Random(seed), NormalDist()

    def number() -> Fraction:
        quantile = normal.inv_cdf((bits.getrandbits(52) + 0.5) / 2**52)
        return Fraction(round(quantile * GRAIN), GRAIN) * Fraction(std)

    return [tuple(number() for _ in range(axes)) for _ in range(rows)]
