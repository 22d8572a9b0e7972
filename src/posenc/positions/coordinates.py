"""Real coordinates: seconds, pixels, timesteps, held as whole numbers of one exact step."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil
from numbers import Rational
from typing import Any

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.positions.mantissas import ONE, exact_parts, steps_nearest
from posenc.positions.scales import (
    Step,
    as_fractions,
    checked_scale,
    of_last_axis,
    per_axis,
    product,
    read,
    step_of_all,
    written,
)

MOST = 2**63 - 1
"""The largest count of steps."""


class Coordinates:
    """Real numbers that lose nothing: coordinate = values · scale.

    ``values`` is an int64 tensor, and ``scale`` a positive rational number, or one an axis. A float
    is a whole number times a power of two, so floats are taken as the numbers that they are; thirds
    and hundredths are given as fractions or by their scale. Encodings whose formula takes reals
    take coordinates wherever positions go, and are as exact there as at whole positions.

    Args:
        values: Floats (float64, float32; a tensor, an array of numpy, or a list), whole numbers, or
            a list with fractions in it.
        scale: What all of them are multiplied with: a whole number or a ``Fraction``, or several,
            one for each entry of the last axis. Integers over a common denominator are
            ``Coordinates(integers, scale=Fraction(1, denominator))``.
        device: Where to make the tensor, if ``values`` are none yet.

    Raises:
        TypeError: ``values`` are no real numbers, 16-bit floats, or floats where nobody can look.
        ValueError: A number is not finite; the numbers span more than 63 bits; or the scale is not
            positive.

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

    values: Int64[Tensor, "*shape"]

    def __init__(
        self,
        values: Any,
        *,
        scale: Rational | Sequence[Rational] | None = None,
        device: torch.device | str | None = None,
    ):
        if isinstance(values, Coordinates):
            values, own = values.values, values.scale
        elif isinstance(values, Tensor) and values.dtype == torch.int64:
            own = ONE
        else:
            values, own = exact_parts(values, device)
        self.values = values
        # As text: graphs take a text for a constant, and the number in a Fraction for a variable.
        self._scale = written(own if scale is None else product(own, checked_scale(scale, values)))

    @classmethod
    def rounded(
        cls, values: Any, step: Rational, *, device: torch.device | str | None = None
    ) -> "Coordinates":
        """The multiples of ``step`` that are nearest to ``values``, ties to even.

        For floats that stand for something rounder than they are: 0.1 is
        0.1000000000000000055…, and a tenth in steps of ``Fraction(1, 10)``.

        Raises:
            TypeError: ``values`` are no real numbers.
            ValueError: A number is not finite, or of too many steps.

        Example:
            >>> Coordinates.rounded([0.1, 0.2, 0.3], Fraction(1, 10)).values
            tensor([1, 2, 3])
        """
        chosen = checked_scale(step, None)
        assert isinstance(chosen, Fraction)
        return cls(steps_nearest(values, chosen, device), scale=chosen)

    # Like a tensor --------------------------------------------------------------------------------

    @property
    def shape(self) -> torch.Size:
        """The shape of the coordinates."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.values.ndim

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.values.device

    @property
    def scale(self) -> Step:
        """The size of a step: a ``Fraction``, or one for each entry of the last axis."""
        return read(self._scale)

    def numel(self) -> int:
        """How many there are."""
        return self.values.numel()

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Coordinates({self.values!r}, scale={self.scale!r})"

    def __getitem__(self, index: Any) -> "Coordinates":
        """Some of them, as of a tensor; ``[..., axis]`` takes the scale of that axis along."""
        values, scale = self.values[index], self.scale
        if isinstance(scale, tuple):
            chosen = scale[of_last_axis(index, self.ndim)]
            scale = chosen if isinstance(chosen, Fraction) else tuple(chosen)
        return Coordinates(values, scale=scale)

    def to(self, device: torch.device | str) -> "Coordinates":
        """The same on another device.

        Raises:
            TypeError: ``device`` is a dtype; ``floats`` makes numbers of coordinates.
        """
        if isinstance(device, torch.dtype):
            raise TypeError(f"Coordinates have no dtype; for floats call .floats({device}).")
        return Coordinates(self.values.to(device), scale=self.scale)

    def unsqueeze(self, dim: int) -> "Coordinates":
        """With one axis more, as of a tensor."""
        return Coordinates(self.values.unsqueeze(dim), scale=self._one_scale("unsqueeze"))

    def expand(self, *sizes: int) -> "Coordinates":
        """Repeated without a copy, as of a tensor."""
        return Coordinates(self.values.expand(*sizes), scale=self.scale)

    def clamp(self, *, min: int) -> "Coordinates":
        """None below 0, as of a tensor; 0 is the bound that every scale has.

        Raises:
            ValueError: ``min`` is another number.
        """
        if min != 0:
            raise ValueError(f"min is {min}; coordinates are clamped at 0 alone.")
        return Coordinates(self.values.clamp(min=0), scale=self.scale)

    def floats(self, dtype: torch.dtype = torch.float64) -> Float[Tensor, "*shape"]:
        """As floats, within one rounding to float64 and one to ``dtype``.

        Example:
            >>> Coordinates(torch.tensor([1, 2]), scale=Fraction(1, 3)).floats(torch.float32)
            tensor([0.3333, 0.6667])
        """
        wide = dtype if self.device.type == "mps" else torch.float64  # it has no float64
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        values = self.values.to(wide)
        if all(scale.denominator == 1 for scale in scales):
            made = values * self._row([scale.numerator for scale in scales], wide)
        else:
            made = self._quotient(values, scales, wide)
        return made.to(dtype)

    def _quotient(self, values: Tensor, scales: tuple[Fraction, ...], wide: torch.dtype) -> Tensor:
        """values · numerator / denominator; a power of two below is multiplied with, exactly."""
        above = self._row([scale.numerator for scale in scales], wide)
        below = self._row([scale.denominator for scale in scales], wide)
        return values * above / below

    def _row(self, numbers: list[int], wide: torch.dtype) -> Tensor:
        return torch.tensor([float(n) for n in numbers], dtype=wide, device=self.device)

    def tolist(self) -> Any:
        """As fractions, exactly, in lists."""
        return as_fractions(self.values.tolist(), self.scale)

    # In order -------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.lt)

    def __le__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.le)

    def __gt__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.gt)

    def __ge__(self, other: Any) -> Bool[Tensor, "*shape"]:
        return self._compared(other, torch.ge)

    def __eq__(self, other: Any) -> Bool[Tensor, "*shape"]:  # type: ignore[override]
        return self._compared(other, torch.eq)

    def __ne__(self, other: Any) -> Bool[Tensor, "*shape"]:  # type: ignore[override]
        return self._compared(other, torch.ne)

    __hash__ = object.__hash__

    def _compared(self, other: Any, relation: Callable[..., Tensor]) -> Any:
        others = _as_coordinates(other, self.device)
        if others is None:
            return NotImplemented
        here, there = common_scale(self, others)
        return relation(here.values, there.values)

    # Exact arithmetic -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> "Coordinates":
        """The exact sum with a whole number, a ``Fraction``, whole positions or coordinates.

        Raises:
            ValueError: It takes more than 63 bits.
        """
        others = _as_coordinates(other, self.device)
        if others is None:
            return NotImplemented
        here, there = common_scale(self, others)
        _check_sum(here.values, there.values)
        return Coordinates(here.values + there.values, scale=here.scale)

    __radd__ = __add__

    def __neg__(self) -> "Coordinates":
        return Coordinates(-self.values, scale=self.scale)

    def __sub__(self, other: Any) -> "Coordinates":
        """The exact difference."""
        others = _as_coordinates(other, self.device)
        return NotImplemented if others is None else self + (-others)

    def __rsub__(self, other: Any) -> "Coordinates":
        return -self + other

    def __mul__(self, other: Any) -> "Coordinates":
        """The exact product with a whole number or a ``Fraction``."""
        if isinstance(other, bool) or not isinstance(other, Rational):
            return NotImplemented
        if other == 0:
            return Coordinates(torch.zeros_like(self.values))
        made = Coordinates(self.values, scale=product(self.scale, abs(Fraction(other))))
        return made if Fraction(other) > 0 else -made

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> "Coordinates":
        """The exact quotient by a whole number or a ``Fraction``."""
        if isinstance(other, bool) or not isinstance(other, Rational):
            return NotImplemented
        return self * (1 / Fraction(other))

    def with_scale(self, scale: Rational) -> "Coordinates":
        """The same coordinates in other steps, as for a graph that shall not be compiled anew.

        Raises:
            ValueError: One of them is no whole number of steps, or of too many.

        Example:
            >>> Coordinates([0.0, 0.5]).with_scale(Fraction(1, 64)).values
            tensor([ 0, 32])
        """
        chosen = checked_scale(scale, None)
        assert isinstance(chosen, Fraction)
        times = self._one_scale("with_scale") / chosen
        if times.denominator != 1 and not may_look(self.values):
            raise TypeError("Nobody can look whether these are whole numbers of coarser steps.")
        if times.denominator != 1 and bool((self.values % times.denominator != 0).any()):
            raise ValueError(
                f"A coordinate is no whole number of steps of {chosen}; they go in steps of "
                f"{self.scale}. Coordinates.rounded(floats, step) takes the nearest."
            )
        values = self.values // times.denominator if times.denominator != 1 else self.values
        return Coordinates(_times_whole(values, times.numerator), scale=chosen)

    def window(self, reach: int) -> int:
        """The least number of steps that is ``reach`` or more, for comparing distances.

        Example:
            >>> Coordinates([0.25]).window(3)
            12
        """
        return min(ceil(reach / self._one_scale("window")), MOST)

    def _one_scale(self, operation: str) -> Fraction:
        if isinstance(self.scale, tuple):
            raise ValueError(
                f"{operation} takes coordinates of one scale; these have {len(self.scale)}, one "
                f"an axis. Take an axis first, as coordinates[..., 0]."
            )
        return self.scale

    # Together -------------------------------------------------------------------------------------

    @staticmethod
    def stack(parts: Sequence["Coordinates"], dim: int = 0) -> "Coordinates":
        """As ``torch.stack``; along a new last axis (``dim=-1``) each part keeps its own scale.

        Example:
            >>> y, x = Coordinates([0.5, 1.5]), Coordinates([0, 1])
            >>> Coordinates.stack([y, x], dim=-1)
            Coordinates(tensor([[1, 0],
                    [3, 1]]), scale=(Fraction(1, 2), Fraction(1, 1)))
        """
        last = dim in (-1, parts[0].ndim)
        if last and all(isinstance(part.scale, Fraction) for part in parts):
            scales = tuple(part._one_scale("stack") for part in parts)
            values = torch.stack([part.values for part in parts], dim=-1)
            return Coordinates(values, scale=scales[0] if len(set(scales)) == 1 else scales)
        alike = common_scale(*parts)
        return Coordinates(torch.stack([p.values for p in alike], dim), scale=alike[0].scale)

    @staticmethod
    def cat(parts: Sequence["Coordinates"], dim: int = 0) -> "Coordinates":
        """As ``torch.cat``, at the coarsest scale that all parts are whole numbers of.

        Raises:
            ValueError: A part takes more than 63 bits there.

        Example:
            >>> Coordinates.cat([Coordinates([0.5]), Coordinates([Fraction(1, 3)])])
            Coordinates(tensor([3, 2]), scale=Fraction(1, 6))
        """
        alike = common_scale(*parts)
        return Coordinates(torch.cat([p.values for p in alike], dim), scale=alike[0].scale)


def common_scale(*given: Coordinates) -> tuple[Coordinates, ...]:
    """The same coordinates, all in steps of one size.

    Raises:
        ValueError: One takes more than 63 bits there; or some have a scale an axis, and others of
            another number.

    Example:
        >>> halves, thirds = common_scale(Coordinates([0.5]), Coordinates([Fraction(1, 3)]))
        >>> halves.values, thirds.values, thirds.scale
        (tensor([3]), tensor([2]), Fraction(1, 6))
    """
    scales = [each.scale for each in given]
    if all(scale == scales[0] for scale in scales):
        return given
    axes = {len(scale) for scale in scales if isinstance(scale, tuple)}
    if len(axes) > 1:
        raise ValueError(
            f"Coordinates have {' and '.join(map(str, sorted(axes)))} axes; they must have as many."
        )
    if not axes:
        step = step_of_all([scale for scale in scales if isinstance(scale, Fraction)])
        return tuple(_at(each, step) for each in given)
    given = tuple(_of_axes(each, *axes) for each in given)
    each_axis = [per_axis(scale, *axes) for scale in scales]
    steps = tuple(step_of_all(list(column)) for column in zip(*each_axis, strict=True))
    parts = [
        [_at(each[..., axis], step).values for axis, step in enumerate(steps)] for each in given
    ]
    return tuple(Coordinates(torch.stack(part, dim=-1), scale=steps) for part in parts)


def _of_axes(each: Coordinates, axes: int) -> Coordinates:
    """With so many entries in the last axis, where one stands for all of them."""
    values = each.values
    if values.ndim and values.shape[-1] == axes:
        return each
    return Coordinates(values.expand(*values.shape[:-1], axes), scale=each.scale)


def _at(each: Coordinates, step: Fraction) -> Coordinates:
    times = each._one_scale("common_scale") / step
    return Coordinates(_times_whole(each.values, times.numerator), scale=step)


def _times_whole(values: Tensor, times: int) -> Tensor:
    """values · times, refused where a product leaves int64 and can be looked at."""
    if times == 1:
        return values
    if may_look(values) and values.numel():
        low, high = (int(end) for end in values.aminmax())
        if max(-low, high) * times > MOST:
            raise ValueError(
                f"Coordinates of up to {max(-low, high)} steps, each cut into {times}, take more "
                f"than 63 bits. Give all of them in one coarser step, as Coordinates.rounded("
                f"values, step)."
            )
    if times > MOST:
        if not (may_look(values) or values.is_meta):
            raise TypeError(f"Coordinates are to be cut into {times} steps each, unseen.")
        return torch.zeros_like(values)  # as all of them are
    return values * times


def _check_sum(first: Tensor, second: Tensor) -> None:
    known = may_look(first) and may_look(second) and first.numel() and second.numel()
    if not known:
        return
    most = sum(max(-int(low), int(high)) for low, high in (first.aminmax(), second.aminmax()))
    if most > MOST:
        raise ValueError(
            f"A sum of coordinates may reach {most} steps, more than 63 bits hold. Count from "
            f"another origin, or in coarser steps, as Coordinates.rounded(values, step)."
        )


def _as_coordinates(other: Any, device: torch.device) -> Coordinates | None:
    """Whole numbers, fractions and whole positions as coordinates; nothing of floats is guessed."""
    if isinstance(other, Coordinates):
        return other
    if isinstance(other, Tensor):
        whole = not (other.is_floating_point() or other.is_complex() or other.dtype == torch.bool)
        return Coordinates(other.to(torch.int64)) if whole else None
    if isinstance(other, bool) or not isinstance(other, Rational):
        return None
    exact = Fraction(other)
    if abs(exact.numerator) > MOST:
        raise ValueError(f"{other} has a numerator of more than 63 bits.")
    one = torch.tensor(exact.numerator, dtype=torch.int64, device=device)
    return Coordinates(one, scale=Fraction(1, exact.denominator))
