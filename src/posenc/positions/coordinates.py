"""Real coordinates: seconds, pixels, timesteps, held as whole numbers of one exact step."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor
from numbers import Rational
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from posenc.positions.counted import NOWHERE, Counted, common_scale
from posenc.positions.steps import (
    MOST,
    checked_scale,
    counts_of,
    in_step,
    nearest_counts,
    product,
    rounded_counts,
    size_of,
    the_one,
    written,
)


def _relation(relation: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def related(self: "Coordinates", other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, relation)

    return related


class Coordinates(Counted):
    """Real numbers as whole numbers of one exact step: coordinate = values · scale.

    ``values`` is an int64 tensor, and ``scale`` a positive rational number, or one an axis. A float
    is taken as the binary fraction that it is. Encodings whose formula takes reals take coordinates
    wherever positions go, and are as exact there as at whole positions.

    Numbers are exact where int64 holds them in one step. Where it does not, as for 0.1 beside
    3600.1, the step is the power of two that leaves 62 bits to the largest, and each number is
    rounded to nearest: off by 2^-62 of the largest at most, so 1e-9 beside 1e9 is off by 7e-11.

    Shape, indices and joining are those of tensors.

    Args:
        values: Floats (float64, float32; a tensor, an array of numpy, or a list), whole numbers, or
            a list with fractions in it.
        scale: What all of them are multiplied with: a whole number or a ``Fraction``, or several,
            one for each entry of the last axis. Integers over a common denominator are
            ``Coordinates(integers, scale=Fraction(1, denominator))``.
        device: Where to make the tensor, if ``values`` are none yet.

    Example:
        >>> seconds = Coordinates([0.0, 0.5, 2.25])
        >>> seconds.values, seconds.scale
        (tensor([0, 2, 9]), Fraction(1, 4))
        >>> (seconds + Fraction(1, 3)).tolist()
        [Fraction(1, 3), Fraction(5, 6), Fraction(31, 12)]
        >>> frames = Coordinates(torch.arange(3), scale=Fraction(1, 30))
        >>> frames[2].tolist()
        Fraction(1, 15)
    """

    __array_ufunc__ = None  # arrays of numpy on the left leave operators to coordinates

    def __init__(
        self,
        values: Any,
        *,
        scale: Rational | Sequence[Rational] | None = None,
        device: torch.device | str | None = None,
    ):
        if isinstance(values, Coordinates):
            counts, own = values.values, values.scale
        elif isinstance(values, Tensor) and values.dtype == torch.int64:
            counts, own = values, Fraction(1)
        else:
            counts, own = counts_of(values, device)
        self.values = counts
        self.scale_text = written(
            own if scale is None else product(own, checked_scale(scale, counts))
        )

    @classmethod
    def rounded(
        cls, values: Any, step: Rational, *, device: torch.device | str | None = None
    ) -> "Coordinates":
        """The multiples of ``step`` that are nearest to ``values``, ties to even.

        For floats that stand for something rounder than they are: 0.1 is
        0.1000000000000000055…, and a tenth in steps of ``Fraction(1, 10)``.

        Example:
            >>> Coordinates.rounded([0.1, 0.2, 0.3], Fraction(1, 10)).values
            tensor([1, 2, 3])
        """
        chosen = the_one(checked_scale(step))
        return cls(nearest_counts(values, chosen, device), scale=chosen)

    # In order -------------------------------------------------------------------------------------

    def _compared(self, other: Any, relation: Callable[..., Tensor]) -> Bool[Tensor, "*shape"]:
        if not isinstance(other, Rational):
            here, there = common_scale(self, self._beside(other))
            return relation(here.values, there.values)
        if isinstance(self.scale_text, tuple):
            axes = [axis._compared(other, relation) for axis in self.unbind(-1)]
            return torch.stack(axes, dim=-1)
        # For whole n: n < x is n < ⌈x⌉, n ≤ x is n ≤ ⌊x⌋, and n = x only where x is whole.
        steps = Fraction(other) / the_one(self.scale)
        bound = ceil(steps) if relation in (torch.lt, torch.ge) else floor(steps)
        never = steps != bound and relation in (torch.eq, torch.ne)
        if never or not NOWHERE <= bound <= MOST:  # all compare as 0 does
            return relation(torch.zeros_like(self.values), 1 if steps > 0 else -1)
        return relation(self.values, bound)

    __lt__, __le__ = _relation(torch.lt), _relation(torch.le)
    __gt__, __ge__ = _relation(torch.gt), _relation(torch.ge)
    __eq__, __ne__ = _relation(torch.eq), _relation(torch.ne)  # type: ignore[assignment]
    __hash__ = object.__hash__

    # Arithmetic -----------------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Coordinates":
        """The sum with a whole number, a ``Fraction``, whole positions or coordinates.

        It is exact where 62 bits hold both in one step.
        """
        if isinstance(other, Rational) and isinstance(self.scale_text, str):
            steps = Fraction(other) / the_one(self.scale)
            if steps.denominator == 1 and abs(steps) + size_of(self.values) <= MOST:
                return self.with_values(lambda values: values + steps.numerator)
        here, there = _summable(self, self._beside(other))
        return here.with_values(lambda values: values + there.values)

    __radd__ = __add__

    def __neg__(self) -> "Coordinates":
        return self.with_values(torch.neg)

    def __sub__(self, other: Any) -> "Coordinates":
        """The difference, as exact as a sum."""
        return self + (-self._beside(other))

    def __rsub__(self, other: Any) -> "Coordinates":
        return -self + other

    def __mul__(self, other: Any) -> "Coordinates":
        """The exact product with a whole number or a ``Fraction``."""
        if not isinstance(other, Rational):
            return NotImplemented
        if other == 0:
            return Coordinates(torch.zeros_like(self.values))
        text = written(product(self.scale, abs(Fraction(other))))
        made = self.with_values(lambda values: values, text)
        return made if Fraction(other) > 0 else -made

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Coordinates":
        """The exact quotient by a whole number or a ``Fraction``."""
        return self * (1 / Fraction(other)) if isinstance(other, Rational) else NotImplemented

    def with_scale(self, scale: Rational) -> "Coordinates":
        """The same coordinates in other steps, as for a graph that shall not be compiled anew.

        Example:
            >>> Coordinates([0.0, 0.5]).with_scale(Fraction(1, 64)).values
            tensor([ 0, 32])
        """
        if isinstance(self.scale_text, tuple):
            return Coordinates.stack([axis.with_scale(scale) for axis in self.unbind(-1)], dim=-1)
        chosen = the_one(checked_scale(scale))
        return Coordinates(in_step(self.values, the_one(self.scale), chosen), scale=chosen)

    def window(self, reach: int) -> int:
        """The least number of steps that is ``reach`` or more, for comparing distances.

        Example:
            >>> Coordinates([0.25]).window(3)
            12
        """
        return min(ceil(reach / the_one(self.scale)), MOST)

    def _beside(self, other: Any) -> "Coordinates":
        """Whole numbers, fractions and whole positions as coordinates; 0.1 may mean a tenth."""
        if isinstance(other, Coordinates):
            return other
        if isinstance(other, Rational):
            return Coordinates(Fraction(other), device=self.device)
        if not hasattr(other, "dtype") or torch.as_tensor(other).is_floating_point():
            raise TypeError(
                f"Coordinates meet a {type(other).__name__}; give whole numbers, a Fraction, or "
                f"other Coordinates."
            )
        return Coordinates(other, device=self.device)


def _summable(one: Coordinates, other: Coordinates) -> tuple[Coordinates, ...]:
    """Both in one step, in which no sum or difference leaves int64."""
    both = common_scale(one, other)
    if size_of(both[0].values) + size_of(both[1].values) <= MOST:
        return both
    text = written(product(both[0].scale, Fraction(2)))
    return tuple(
        each.with_values(lambda values: rounded_counts(values, Fraction(2)), text) for each in both
    )
