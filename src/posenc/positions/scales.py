"""The size of a step of coordinates: one rational number, or one an axis."""

from array import array
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, wraps
from math import gcd, lcm
from numbers import Integral, Rational
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from posenc._rounding import rounded
from posenc.guards import demand, graph_looks, may_look

Step = Fraction | tuple[Fraction, ...]
"""A scale, or one for each entry of the last axis."""

Text = str | tuple[str, ...]
"""The same as text: graphs take a text for a constant, and the numbers in a Fraction for variables.
"""

Factor = float | tuple[float, ...]

P = ParamSpec("P")
T = TypeVar("T")

ONE = "1/1"
"""The text of a scale of 1."""


def the_one(scale: Step) -> Fraction:
    """The scale, where there is one.

    Raises:
        ValueError: There is one an axis.
    """
    if isinstance(scale, tuple):
        raise ValueError(
            f"There are {len(scale)} scales, one an axis, where coordinates must have one scale. "
            f"Take an axis first, as coordinates[..., 0]."
        )
    return scale


def written(scale: Step) -> Text:
    """A scale as text.

    Example:
        >>> written(Fraction(1, 3)), written((Fraction(2), Fraction(1, 4)))
        ('1/3', ('2/1', '1/4'))
    """
    if isinstance(scale, tuple):
        return tuple(f"{each.numerator}/{each.denominator}" for each in scale)
    return f"{scale.numerator}/{scale.denominator}"


def kept(make: Callable[P, T]) -> Callable[P, T]:
    """The function with its last results kept, unless a graph is made, which traces no cache."""
    cached = lru_cache(maxsize=256)(make)

    @wraps(make)
    def of(*given: P.args, **named: P.kwargs) -> T:
        return (make if is_dynamo_compiling() else cached)(*given, **named)

    return of


@kept
def read(text: Text) -> Step:
    """What was ``written``."""
    if isinstance(text, tuple):
        return tuple(_fraction(each) for each in text)
    return _fraction(text)


def _fraction(text: str) -> Fraction:
    above, below = text.split("/")
    return Fraction(int(above), int(below))


@kept
def factors(text: Text) -> tuple[Factor, Factor]:
    """Floats that counts are multiplied with, and then divided by: one of both is 1 where a scale
    has a power of two above or below.

    Example:
        >>> factors("3/4"), factors("4/3"), factors("5/3")
        ((0.75, 1.0), (1.0, 0.75), (5.0, 3.0))
        >>> factors(("1/2", "1/3"))
        ((0.5, 1.0), (1.0, 3.0))
    """
    if isinstance(text, str):
        return _of_one(_fraction(text))
    above, below = zip(*(_of_one(_fraction(each)) for each in text), strict=True)
    return above, below


def _of_one(scale: Fraction) -> tuple[float, float]:
    above, below = scale.numerator, scale.denominator
    if below & (below - 1) == 0 or max(above, below).bit_length() > 1000:
        return above / below, 1.0
    if above & (above - 1) == 0:
        return 1.0, below / above
    return float(above), float(below)


def scaled(wide: Tensor, text: Text, dtype: torch.dtype, out: Tensor | None = None) -> Tensor:
    """Counts in float64, which are written to, times a scale, rounded once to a dtype.

    Raises:
        ValueError: float16 makes a number infinite, as far as can be seen.
    """
    above, below = factors(text)
    if above != 1.0:
        wide.mul_(_row(above, wide) if isinstance(above, tuple) else above)
    if below != 1.0:
        wide.div_(_row(below, wide))
    made = wide if dtype.itemsize >= 4 else rounded(wide, dtype)
    if dtype is torch.float16:
        check_finite(made)
    return made.to(dtype) if out is None else out.copy_(made)


def _row(factor: Factor, like: Tensor) -> Tensor | float:
    """A factor, or one for each entry of the last axis; as a tensor where torch would multiply with
    the reciprocal of a divisor."""
    if not like.is_cpu or not may_look(like):
        return torch.tensor(factor, dtype=like.dtype, device=like.device)
    if isinstance(factor, tuple):
        return torch.frombuffer(array("d", factor), dtype=torch.float64)
    return factor


def check_finite(numbers: Tensor) -> None:
    """Refuse positions that float16 has made infinite; unless none may look.

    Raises:
        ValueError: It has.

    Example:
        >>> check_finite(torch.tensor([70_000]).half())
        Traceback (most recent call last):
        ...
        ValueError: A position or distance is beyond 65504, the largest number of float16. Ask for \
float32, and cast what comes out.
    """
    words = (
        "A position or distance is beyond 65504, the largest number of float16. Ask for float32, "
        "and cast what comes out."
    )
    if graph_looks(numbers):
        demand(~numbers.isinf().any(), words)
    elif may_look(numbers) and bool(numbers.isinf().any()):
        raise ValueError(words)


def checked_scale(scale: Any, values: Tensor | None = None) -> Step:
    """A scale, or one for each entry of the last axis of ``values``."""
    if isinstance(scale, Sequence) and not isinstance(scale, str) and values is not None:
        if values.shape[-1:] != (len(scale),):
            raise ValueError(
                f"scale has {len(scale)} numbers for values of shape {tuple(values.shape)}; give "
                f"one, or one for each entry of the last axis."
            )
        return tuple(checked_scale(each) for each in scale)  # type: ignore[return-value]
    if isinstance(scale, bool) or not isinstance(scale, Rational):
        raise TypeError(f"scale is {scale!r}; it must be a whole number or a Fraction.")
    if scale <= 0:
        raise ValueError(f"scale is {scale}; it must be positive.")
    return exact(scale)


def exact(number: Rational) -> Fraction:
    """The same in Python's integers, since those of numpy may wrap.

    Example:
        >>> import numpy
        >>> exact(numpy.uint8(200)) * 2
        Fraction(400, 1)
    """
    return Fraction(int(number.numerator), int(number.denominator))


def product(one: Step, other: Step) -> Step:
    """The product, axis by axis where one has several."""
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one * other
    axes = len(one) if isinstance(one, tuple) else len(other)  # type: ignore[arg-type]
    both = (each if isinstance(each, tuple) else (each,) * axes for each in (one, other))
    return tuple(a * b for a, b in zip(*both, strict=True))


@kept
def multiplied(text: Text, number: Rational) -> Text:
    """The text of a scale times |number|.

    Example:
        >>> multiplied("1/3", Fraction(-6, 5))
        '2/5'
    """
    return written(product(read(text), abs(exact(number))))


@kept
def whole_steps(text: str, number: Rational) -> int | None:
    """How many steps a number is, if they are whole.

    Example:
        >>> whole_steps("1/3", 2), whole_steps("2/3", 1)
        (6, None)
    """
    steps = exact(number) / _fraction(text)
    return steps.numerator if steps.denominator == 1 else None


def step_of_all(scales: Sequence[Fraction]) -> Fraction:
    """The largest step of which all are whole numbers.

    Example:
        >>> step_of_all([Fraction(1, 2), Fraction(1, 3)])
        Fraction(1, 6)
    """
    below = lcm(*(scale.denominator for scale in scales))
    return Fraction(gcd(*(int(scale * below) for scale in scales)), below)


def as_fractions(values: Any, scale: Step) -> Any:
    """Lists of whole numbers, each times its scale."""
    if not isinstance(values, list):
        return values * scale
    if isinstance(scale, tuple) and values and not isinstance(values[0], list):
        return [value * step for value, step in zip(values, scale, strict=True)]
    return [as_fractions(each, scale) for each in values]


def of_last_axis(index: Any, ndim: int) -> Any:
    """What an index asks of the last axis.

    Raises:
        TypeError: Several of its entries, which have a scale each.

    Example:
        >>> of_last_axis((..., 1), 3), of_last_axis(0, 3)
        (1, slice(None, None, None))
    """
    entries = index if isinstance(index, tuple) else (index,)
    taken = [entry for entry in entries if entry is not None]
    skips = any(entry is Ellipsis for entry in taken)
    if sum(map(_axes_of, taken)) < ndim and not (skips and taken[-1] is not Ellipsis):
        return slice(None)
    last = next(entry for entry in reversed(taken) if entry is not Ellipsis)
    if isinstance(last, bool) or not isinstance(last, Integral | slice):
        raise TypeError(
            f"The last axis was indexed with a {type(last).__name__}, and has a scale for each "
            f"entry. Index it with a number or a slice."
        )
    return last


def _axes_of(entry: Any) -> int:
    """How many axes an entry of an index is about; a mask has its own."""
    if entry is Ellipsis:
        return 0
    return entry.ndim if str(getattr(entry, "dtype", "")) in ("bool", "torch.bool") else 1
