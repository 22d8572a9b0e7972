"""Real numbers taken apart into whole numbers and one exact step, losing nothing."""

from decimal import Decimal
from fractions import Fraction
from math import isfinite, lcm
from numbers import Rational
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc._guards import check_dense, check_timeless, check_unmasked, may_look
from posenc.positions.scales import exact
from posenc.positions.words import MOST_BITS, REST_BITS, of_digits, of_integers, too_long

ONE = Fraction(1)

BITS = 63
"""Of a whole number without its sign."""

DIGITS = 53
"""Of a float64."""


Parts = tuple[Int64[Tensor, "*shape"], Int64[Tensor, "*shape"] | None, Fraction]
"""(n, r, s) of numbers (n + r · 2^-62) · s; there is no r where n holds them."""


def exact_parts(values: Any, device: torch.device | str | None = None) -> Parts:
    """(n, r, s) with values = (n + r · 2^-62) · s, and r only where 63 bits hold no n · s.

    Without r the step s is 1 where all are whole, else the coarsest there is. With r it is 1 where
    that serves, so that steps are whole numbers of units; else the coarsest again.

    Raises:
        TypeError: ``values`` are no real numbers, or floats that nobody can look at.
        ValueError: A number is not finite, or they span more than 124 bits.

    Example:
        >>> exact_parts([0.5, -0.75])
        (tensor([ 2, -3]), None, Fraction(1, 4))
        >>> exact_parts([Fraction(1, 3), 2])
        (tensor([1, 6]), None, Fraction(1, 3))
        >>> exact_parts([2.0**-62, 2.0**60])
        (tensor([                  0, 1152921504606846976]), tensor([1, 0]), Fraction(1, 1))
    """
    kind = getattr(getattr(values, "dtype", None), "kind", None)  # of a numpy array
    check_unmasked(values=values)
    if kind in ("f", "i", "u") and not isinstance(values, Tensor):
        values = torch.as_tensor(_native(values)).to(device)
    if not isinstance(values, Tensor):
        return _of_numbers(values, device)
    if values.dtype in (torch.float64, torch.float32):
        return _of_floats(values)
    _check_digits(values)
    if values.is_complex() or values.dtype in (torch.bool, torch.uint64):
        raise TypeError(
            f"values are {values.dtype}; coordinates are real numbers: float64, float32, signed "
            f"integers, or fractions in a list."
        )
    return values.to(torch.int64), None, ONE


def _check_digits(values: Any) -> None:
    """Refuse tensors and arrays of floats with fewer digits than float32 has.

    Raises:
        TypeError: They are.
    """
    dtype = values.dtype
    if isinstance(values, Tensor):
        short = dtype.is_floating_point and dtype.itemsize < 4
    else:
        short = dtype.kind not in "iub" and dtype.itemsize < 4  # bfloat16 is none of numpy's own
    if short:
        raise TypeError(
            f"values are {dtype}, which holds so few digits that they are hardly those meant. Make "
            f"coordinates of the float32 or float64 that they come from, or call .float() on a "
            f"tensor of numbers that are meant as they are."
        )


def _check_detached(values: Tensor) -> None:
    if values.requires_grad:
        raise TypeError(
            "values require a gradient, which whole numbers of steps cannot carry. Call .detach()."
        )


def _native(values: Any) -> Any:
    """An array of numpy in this machine's byte order, 64 bits wide."""
    wide = "float64" if values.dtype.kind == "f" and values.dtype.itemsize == 8 else None
    if values.dtype.kind == "f" and values.dtype.itemsize == 4:
        wide = "float32"
    if values.dtype.kind in ("i", "u"):
        if values.dtype.kind == "u" and values.dtype.itemsize == 8:
            raise TypeError("values are uint64; give int64, or floats.")
        wide = "int64"
    if wide is None:
        raise TypeError(f"values are {values.dtype}; give float64, float32 or integers.")
    return values.astype(wide)


def _of_floats(values: Tensor) -> Parts:
    _check_detached(values)
    if not may_look(values):
        raise TypeError(
            "values are floats, and nobody can look at them here (in a graph, a transform, or on "
            "the meta device) for the step that they are whole numbers of. Make the coordinates "
            "before, or give integers and a scale."
        )
    if not bool(values.isfinite().all()):
        raise ValueError("A coordinate is infinite or no number; coordinates must be finite.")
    on_cpu = values.detach().cpu().to(torch.float64)
    whole, rest, power = _whole(on_cpu)
    rest = None if rest is None else rest.to(values.device)
    return whole.to(values.device), rest, Fraction(2) ** power


def _whole(values: Tensor) -> tuple[Tensor, Tensor | None, int]:
    """(n, r, k) with values = (n + r · 2^-62) · 2^k; no r, or else k = 0, where that serves."""
    fraction, exponent = torch.frexp(values)
    digits = (fraction * 2.0**DIGITS).to(torch.int64)
    exponent = exponent.to(torch.int64) - DIGITS
    there = digits != 0
    if not bool(there.any()):
        return digits, None, 0
    lowest = torch.frexp((digits & -digits).double())[1] - 1
    least = int((exponent + lowest)[there].min())
    most = int((exponent + DIGITS)[there].max())
    power = 0 if least >= 0 and most <= BITS else least
    if most - power > MOST_BITS:
        raise ValueError(_span(most - power, values))
    if most - power > BITS:
        power = -REST_BITS if least >= -REST_BITS and most <= REST_BITS else least
        words = of_digits(digits, torch.where(there, exponent - power, 0))
        return words.steps, words.rest, power + REST_BITS
    shift = exponent - power
    left, right = shift.clamp(0, BITS - 1), (-shift).clamp(0, BITS - 1)
    # Where digits are shifted to the right they end in as many zeros.
    return torch.where(there, (digits << left) >> right, 0), None, power


def _of_numbers(values: Any, device: torch.device | str | None) -> Parts:
    exact: list[Fraction] = []
    shape = _gathered(values, exact)
    denominator = lcm(*(number.denominator for number in exact))
    steps = [number.numerator * (denominator // number.denominator) for number in exact]
    words, scale = words_of(steps, Fraction(1, denominator), device)
    rest = None if words[1] is None else words[1].reshape(shape)
    return words[0].reshape(shape), rest, scale


def words_of(
    steps: list[int], scale: Fraction, device: torch.device | str | None = None
) -> tuple[tuple[Tensor, Tensor | None], Fraction]:
    """Whole numbers of a step as tensors, and the step that these count.

    Raises:
        ValueError: They span more than 124 bits.
    """
    if max(map(abs, steps), default=0) >= 2**BITS:
        steps, scale = _without_common_zeros(steps, scale)
    most = max(map(abs, steps), default=0)
    if most >= 2**BITS:
        step = scale * 2**REST_BITS
        if step.denominator == 1 and most * step.numerator < 2**MOST_BITS:  # a step of 1 serves
            return of_integers([each * step.numerator for each in steps], device), ONE
        return of_integers(steps, device), step
    return (torch.tensor(steps, dtype=torch.int64, device=device), None), scale


def _without_common_zeros(steps: list[int], scale: Fraction) -> tuple[list[int], Fraction]:
    zeros = min((step & -step).bit_length() - 1 for step in steps if step)
    return [step >> zeros for step in steps], scale * 2**zeros


def _gathered(values: Any, into: list[Fraction]) -> list[int]:
    """The shape of nested lists, whose numbers are put ``into`` a list."""
    check_timeless(values=values)  # one of numpy's durations is an Integral
    if hasattr(values, "dtype"):
        _check_digits(values)
    if isinstance(values, Tensor):
        _check_detached(values)
    listed = values.tolist() if hasattr(values, "tolist") else values
    number = _number(listed)
    if number is not None:
        into.append(number)
        return []
    try:
        entries = list(listed)
    except TypeError:
        entries = None
    if entries is None or isinstance(values, str | bytes | dict | set | frozenset):
        raise TypeError(
            f"values are a {type(values).__name__}; coordinates are a tensor or an array of floats "
            f"or whole numbers, or a list of them and of fractions."
        )
    shapes = [_gathered(entry, into) for entry in entries]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("values are lists of different lengths; give rows of one length.")
    return [len(entries), *(shapes[0] if shapes else [])]


def _number(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, Rational | float | Decimal):
        return None
    if not isfinite(value):
        raise ValueError(f"A coordinate is {value}; coordinates must be finite.")
    return exact(value) if isinstance(value, Rational) else Fraction(value)


def _span(bits: int, values: Tensor) -> str:
    sizes = values.abs()
    sizes = sizes[sizes > 0]
    return too_long(bits, f", sizes from {float(sizes.min())} to {float(sizes.max())},")


def steps_nearest(
    values: Any, step: Fraction, device: torch.device | str | None = None
) -> Int64[Tensor, "*shape"]:
    """round(values / step), ties to even, without an error on the way.

    Raises:
        TypeError: ``values`` are no real numbers, or floats that nobody can look at.
        ValueError: A number is not finite, or of 2^63 steps.

    Example:
        >>> steps_nearest([0.1, 0.25, 1e9], Fraction(1, 10))
        tensor([          1,           2, 10000000000])
    """
    check_dense(values=values)
    if isinstance(values, Tensor):
        if values.is_floating_point():
            return _nearest_to_floats(values, step)
        device, values = values.device, values.tolist()
    exact: list[Fraction] = []
    shape = _gathered(values, exact)
    return torch.tensor(_counts(exact, step), dtype=torch.int64, device=device).reshape(shape)


def _counts(numbers: list[Fraction], step: Fraction) -> list[int]:
    counts = [round(number / step) for number in numbers]
    if max(map(abs, counts), default=0) >= 2**BITS:
        raise ValueError(f"A coordinate is 2^63 steps of {step} or more. Give a coarser step.")
    return counts


def _nearest_to_floats(values: Tensor, step: Fraction) -> Tensor:
    """By a quotient in float64 where it tells, and by fractions where it is in doubt."""
    if values.requires_grad or not may_look(values) or not bool(values.isfinite().all()):
        _of_floats(values)  # which tells what is wrong
    wide = values.detach().cpu().to(torch.float64)
    quotient = wide / step.numerator * step.denominator if _small(step) else wide * torch.nan
    nearest = quotient.round()
    # Three roundings off, and at least as near to its whole number as to the middle of two.
    sure = (quotient - nearest).abs() + quotient.abs() * 2.0**-50 < 0.5
    counts = torch.where(sure, nearest, 0).to(torch.int64)
    exact = [Fraction(number) for number in wide[~sure].tolist()]
    counts[~sure] = counts.new_tensor(_counts(exact, step))
    return counts.to(values.device)


def _small(step: Fraction) -> bool:
    return max(step.numerator, step.denominator) < 2**DIGITS
