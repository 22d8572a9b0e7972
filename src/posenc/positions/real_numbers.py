"""Real numbers as counts of one exact step."""

from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.guards import may_look

ONE = Fraction(1)

MOST = 2**63 - 1
"""The largest count."""

NEAR = 2**62 - 1
"""The largest of 62 bits, of which no sum or difference of two leaves int64."""

BITS, DIGITS = 62, 53
"""Of a count that is rounded, and of a float64."""

Counts = tuple[Int64[Tensor, "*shape"], Fraction]


def counts_of(values: Any, device: torch.device | str | None = None) -> Counts:
    """(n, s) with values = n · s.

    The step s is 1 where all are whole, else the coarsest there is. Where int64 holds no such n, s
    is the power of two that leaves 62 bits to the largest, and n is the nearest.

    Raises:
        TypeError: ``values`` are no real numbers, or floats that cannot be taken.
        ValueError: A number is not finite, or rows have different lengths.

    Example:
        >>> counts_of([0.5, -0.75])
        (tensor([ 2, -3]), Fraction(1, 4))
        >>> counts_of([Fraction(1, 3), 2])
        (tensor([1, 6]), Fraction(1, 3))
        >>> counts_of([2.0**-62, 2.0**60])
        (tensor([                  0, 2305843009213693952]), Fraction(1, 2))
    """
    values = _tensor_of_array(values, device)
    if not isinstance(values, Tensor):
        numbers, shape = _flat(values)
        if numbers and all(isinstance(number, float) for number in numbers):
            counts, step = _of_floats(torch.tensor(numbers, dtype=torch.float64, device="cpu"))
            return counts.reshape(shape).to(device), step
        counts, step = in_few_bits(numbers)
        return torch.tensor(counts, dtype=torch.int64, device=device).reshape(shape), step
    if values.is_floating_point():
        return _of_floats(_checked_floats(values))
    if values.dtype == torch.bool or values.is_complex():
        raise TypeError(f"values are {values.dtype}; coordinates are real numbers.")
    return values.to(torch.int64), ONE


def nearest_counts(
    values: Any, step: Fraction, device: torch.device | str | None = None
) -> Int64[Tensor, "*shape"]:
    """round(values / step), ties to even, without an error on the way.

    Raises:
        TypeError: ``values`` are no real numbers, or floats that cannot be taken.
        ValueError: A number is not finite, or rows have different lengths.

    Example:
        >>> nearest_counts([0.1, 0.25, 1e9], Fraction(1, 10))
        tensor([          1,           2, 10000000000])
    """
    values = _tensor_of_array(values, device)
    if isinstance(values, Tensor):
        device = values.device
        values = _checked_floats(values) if values.is_floating_point() else values
    numbers, shape = _flat(values)
    counts = list(nearest(numbers, step))
    return torch.tensor(counts, dtype=torch.int64, device=device).reshape(shape)


def nearest(numbers: Iterable[Any], step: Fraction) -> Iterable[int]:
    """round(n / step) of each, ties to even, in Python's integers."""
    above, below = step.as_integer_ratio()
    for number in numbers:
        numerator, denominator = number.as_integer_ratio()
        denominator *= above
        whole, rest = divmod(numerator * below, denominator)
        yield whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def in_few_bits(numbers: list[Any]) -> tuple[list[int], Fraction]:
    """Numbers as counts of one step, exact where int64 holds them."""
    ratios = [number.as_integer_ratio() for number in numbers]
    below = lcm(*(denominator for _, denominator in ratios))
    counts, step = [n * (below // d) for n, d in ratios], Fraction(1, below)
    most = max(map(abs, counts), default=0)
    if most > MOST:
        common = gcd(*counts)
        counts, step, most = [n // common for n in counts], step * common, most // common
    if most > MOST:
        step = step_for(most * step)
        counts = list(nearest(numbers, step))
    return counts, step


def step_for(largest: Fraction) -> Fraction:
    """The least power of two of which the largest number takes 62 bits.

    Example:
        >>> step_for(Fraction(3600)) == Fraction(1, 2**50)
        True
    """
    power = largest.numerator.bit_length() - largest.denominator.bit_length() - BITS - 1
    while largest > NEAR * Fraction(2) ** power:
        power += 1
    return Fraction(2) ** power


def _of_floats(values: Tensor) -> Counts:
    if not bool(values.isfinite().all()):
        raise ValueError("A coordinate is infinite or no number; coordinates must be finite.")
    near = values.detach().cpu().double()
    power = _power(near)
    half = -power // 2  # 2^1074 is no float64
    counts = near.mul(2.0**half).mul_(2.0 ** (-power - half)).round_().long()
    return counts.to(values.device), Fraction(2) ** power


def _power(values: Tensor) -> int:
    """The power of two that floats are counted in."""
    fraction, exponent = torch.frexp(values)
    digits = (fraction * 2.0**DIGITS).long()
    there = digits != 0
    if not bool(there.any()):
        return 0
    zeros = torch.frexp((digits & -digits).double())[1] - 1
    least = int((exponent - DIGITS + zeros)[there].min())
    most = int(exponent[there].max())
    if most - min(least, 0) <= BITS + 1:
        return min(least, 0)
    if most - least <= BITS + 1:
        return least
    step = step_for(Fraction(float(values.abs().max())))
    return step.numerator.bit_length() - step.denominator.bit_length()


def _checked_floats(values: Tensor) -> Tensor:
    if values.dtype.itemsize < 4:
        _refuse_short(values.dtype)
    if values.requires_grad:
        raise TypeError("values require a gradient, which counts cannot carry. Call .detach().")
    if not may_look(values):
        raise TypeError(
            "values are floats, and nobody can look at them here (in a graph, a transform, or on "
            "the meta device). Make the coordinates before, or give integers and a scale."
        )
    return values


def _refuse_short(dtype: Any) -> None:
    raise TypeError(
        f"values are {dtype}, which holds too few digits. Give the float32 or float64 that they "
        f"come from, or call .float()."
    )


def _tensor_of_array(values: Any, device: torch.device | str | None) -> Any:
    """An array of numpy as a tensor, whatever its byte order and strides."""
    dtype = getattr(values, "dtype", None)
    kind = getattr(dtype, "kind", None)  # none of torch's dtypes has one
    if kind in ("i", "u") or (kind == "f" and dtype.itemsize > 2):  # type: ignore[union-attr]
        values = torch.as_tensor(values.astype("float64" if kind == "f" else "int64")).to(device)
    elif kind == "f" or str(dtype) == "bfloat16":
        _refuse_short(dtype)
    return values


def _flat(values: Any) -> tuple[list[Any], list[int]]:
    """The numbers of nested lists, and their shape."""
    if not isinstance(values, list | tuple | range) and hasattr(values, "tolist"):
        if isinstance(values, Tensor) and values.is_floating_point():
            values = _checked_floats(values)
        values = values.tolist()
    if not isinstance(values, list | tuple | range):
        if isinstance(values, bool) or not hasattr(values, "as_integer_ratio"):
            raise TypeError(
                f"values are a {type(values).__name__}; give real numbers, or lists of them."
            )
        return [values], []
    rows = [_flat(row) for row in values]
    shapes = [shape for _, shape in rows] or [[]]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("values are lists of different lengths; give rows of one length.")
    return [number for numbers, _ in rows for number in numbers], [len(rows), *shapes[0]]
