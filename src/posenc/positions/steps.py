"""Real numbers as whole numbers of one exact step: how a step is chosen, written and changed."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import gcd, lcm
from numbers import Rational
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.guards import may_look

Step = Fraction | tuple[Fraction, ...]
"""The size of a step, or one for each entry of the last axis."""

Text = str | tuple[str, ...]
"""A step as text, which graphs take for a constant, unlike the integers of a Fraction."""

Factor = float | tuple[float, ...]
Counts = tuple[Int64[Tensor, "..."], Fraction]

ONE = "1/1"
MOST = 2**63 - 1  # the largest count
NEAR = 2**62 - 1  # a sum or difference of two of these fits into int64
BITS, DIGITS = 62, 53  # of a rounded count, and of a float64

# Steps --------------------------------------------------------------------------------------------


def written(step: Step) -> Text:
    """A step as text."""
    if isinstance(step, tuple):
        return tuple(f"{each.numerator}/{each.denominator}" for each in step)
    return f"{step.numerator}/{step.denominator}"


def read(text: Text) -> Step:
    """What was ``written``."""
    return tuple(map(_fraction, text)) if isinstance(text, tuple) else _fraction(text)


def _fraction(text: str) -> Fraction:
    above, below = text.split("/")
    return Fraction(int(above), int(below))


def the_one(step: Step) -> Fraction:
    """The step of coordinates that must have a single one."""
    if isinstance(step, tuple):
        raise ValueError(f"Coordinates have {len(step)} scales, one an axis; one scale is needed.")
    return step


def product(one: Step, other: Step) -> Step:
    """The product, axis by axis where one has several."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one * other
    axes = len(one) if isinstance(one, tuple) else len(other)  # type: ignore[arg-type]
    both = (each if isinstance(each, tuple) else (each,) * axes for each in (one, other))
    return tuple(a * b for a, b in zip(*both, strict=True))


def checked_scale(scale: Any, values: Tensor | None = None) -> Step:
    """A positive scale, or one for each entry of the last axis of ``values``."""
    if isinstance(scale, Sequence) and values is not None:
        if values.shape[-1:] != (len(scale),):
            raise ValueError(f"{len(scale)} scales were given for values of shape {values.shape}.")
        return tuple(checked_scale(each) for each in scale)  # type: ignore[misc]
    if isinstance(scale, bool) or not isinstance(scale, Rational) or scale <= 0:
        raise ValueError(f"scale is {scale!r}; it must be a positive whole number or Fraction.")
    return Fraction(scale)


def factors(text: Text) -> tuple[Factor, Factor]:
    """The floats that counts are multiplied with, and then divided by; 1 where none is needed."""
    if isinstance(text, str):
        return _factors(_fraction(text))
    above, below = zip(*(_factors(_fraction(each)) for each in text), strict=True)
    return above, below


def _factors(step: Fraction) -> tuple[float, float]:
    above, below = step.numerator, step.denominator
    if below & (below - 1) == 0 or max(above, below).bit_length() > 1000:
        return above / below, 1.0
    if above & (above - 1) == 0:
        return 1.0, below / above
    return float(above), float(below)


def step_of_all(steps: Sequence[Fraction]) -> Fraction:
    """The largest step of which all are multiples."""
    below = lcm(*(step.denominator for step in steps))
    return Fraction(gcd(*(int(step * below) for step in steps)), below)


def step_for(largest: Fraction) -> Fraction:
    """The smallest power of two of which the largest number takes 62 bits."""
    power = largest.numerator.bit_length() - largest.denominator.bit_length() - BITS - 1
    while largest > NEAR * Fraction(2) ** power:
        power += 1
    return Fraction(2) ** power


# Numbers to counts --------------------------------------------------------------------------------


def counts_of(values: Any, device: torch.device | str | None = None) -> Counts:
    """(n, s) with values = n · s, rounded where int64 holds no such n; see ``Coordinates``."""
    if hasattr(values, "ndim"):
        if not isinstance(values, Tensor):
            values = torch.as_tensor(values, device=device)
        if values.dtype == torch.bool or values.is_complex():
            raise TypeError(f"values are {values.dtype}; coordinates are real numbers.")
        return _of_floats(values) if values.is_floating_point() else (values.long(), Fraction(1))
    numbers, shape = _flat(values)
    if numbers and all(isinstance(number, float) for number in numbers):
        counts, step = _of_floats(torch.tensor(numbers, dtype=torch.float64, device="cpu"))
        return counts.reshape(shape).to(device), step
    counts, step = _in_few_bits(numbers)
    return torch.tensor(counts, dtype=torch.int64, device=device).reshape(shape), step


def nearest_counts(
    values: Any, step: Fraction, device: torch.device | str | None = None
) -> Int64[Tensor, "*shape"]:
    """round(values / step), ties to even, exactly."""
    device = values.device if isinstance(values, Tensor) else device
    numbers, shape = _flat(values)
    return torch.tensor(list(nearest(numbers, step)), dtype=torch.int64, device=device).view(shape)


def nearest(numbers: Iterable[Any], step: Fraction) -> Iterable[int]:
    """round(n / step) of each, ties to even, in Python's integers."""
    above, below = step.as_integer_ratio()
    for number in numbers:
        numerator, denominator = number.as_integer_ratio()
        denominator *= above
        whole, rest = divmod(numerator * below, denominator)
        yield whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def _in_few_bits(numbers: list[Any]) -> tuple[list[int], Fraction]:
    """Numbers as counts of one step, exact where int64 holds them."""
    ratios = [number.as_integer_ratio() for number in numbers]
    below = lcm(*(denominator for _, denominator in ratios))
    counts, step = [n * (below // d) for n, d in ratios], Fraction(1, below)
    most = max([0, *map(abs, counts)])
    if most > MOST:
        common = gcd(*counts)
        counts, step, most = [n // common for n in counts], step * common, most // common
    if most > MOST:
        step = step_for(most * step)
        counts = list(nearest(numbers, step))
    return counts, step


def _of_floats(values: Tensor) -> Counts:
    if values.dtype.itemsize < 4:
        raise TypeError(f"values are {values.dtype}; coordinates need float32 or float64.")
    if not bool(values.isfinite().all()):
        raise ValueError("A coordinate is infinite or not a number.")
    near = values.detach().cpu().double()
    power = _power(near)
    half = -power // 2  # 2^1074 is no float64
    counts = near.mul(2.0**half).mul_(2.0 ** (-power - half)).round_().long()
    return counts.to(values.device), Fraction(2) ** power


def _power(values: Tensor) -> int:
    """The power of two that floats are counted in."""
    fraction, exponent = torch.frexp(values[values != 0])
    if not len(fraction):
        return 0
    digits = (fraction * 2.0**DIGITS).long()
    zeros = torch.frexp((digits & -digits).double())[1] - 1
    least, most = int((exponent - DIGITS + zeros).min()), int(exponent.max())
    if most - min(least, 0) <= BITS + 1:
        return min(least, 0)
    if most - least <= BITS + 1:
        return least
    step = step_for(Fraction(float(values.abs().max())))
    return step.numerator.bit_length() - step.denominator.bit_length()


def _flat(values: Any) -> tuple[list[Any], list[int]]:
    """The numbers of nested lists, and their shape."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(values, list | tuple | range):
        if isinstance(values, bool) or not hasattr(values, "as_integer_ratio"):
            raise TypeError(f"values are a {type(values).__name__}; give real numbers or lists.")
        return [values], []
    rows = [_flat(row) for row in values]
    shape = rows[0][1] if rows else []
    return [number for numbers, _ in rows for number in numbers], [len(rows), *shape]


# Counts of one step to counts of another ----------------------------------------------------------


def in_one_step(given: Sequence[Counts]) -> tuple[list[Tensor], Fraction]:
    """Counts of a common step: exact where 62 bits hold them, else rounded as in ``counts_of``."""
    step = step_of_all([own for _, own in given])
    times = [(own / step).numerator for _, own in given]
    counts = [values for values, _ in given]
    if all(map(_fit, counts, times)):
        return [_cut(values, n) for values, n in zip(counts, times, strict=True)], step
    step = step_for(max(size_of(values) * own for values, own in given))
    return [rounded_counts(values, step / own) for values, own in given], step


def in_step(values: Int64[Tensor, "*shape"], own: Fraction, step: Fraction) -> Tensor:
    """Counts of one step as counts of another, exactly or not at all."""
    times, into = (own / step).as_integer_ratio()
    if into != 1 and bool((values % into != 0).any()):
        raise ValueError(f"A coordinate in steps of {own} is no whole number of steps of {step}.")
    values = values if into == 1 else values // into
    if not _fit(values, times, MOST):
        raise ValueError(f"Coordinates in steps of {step} take more than 63 bits.")
    return _cut(values, times)


def rounded_counts(values: Int64[Tensor, "*shape"], step: Fraction) -> Int64[Tensor, "*shape"]:
    """Whole numbers in coarser steps, rounded to nearest, ties to even."""
    return values if step == 1 else nearest_counts(values, step)


def size_of(values: Tensor) -> int:
    """The largest |value|; 0 where nobody can look."""
    if not may_look(values) or not values.numel():
        return 0
    low, high = values.aminmax()
    return max(-int(low), int(high))


def _fit(values: Tensor, times: int, most: int = NEAR) -> bool:
    """Whether |values · times| ≤ ``most``, as far as can be seen."""
    if times == 1:
        return True
    if may_look(values):
        return size_of(values) * times <= most
    return times <= MOST or values.is_meta


def _cut(values: Tensor, times: int) -> Tensor:
    return values * times if times <= MOST else torch.zeros_like(values)  # as all of them are 0
