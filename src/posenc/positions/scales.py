"""The size of a step of coordinates: one rational number, or one an axis."""

import sys
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

from posenc.positions.words import REST_BITS

Step = Fraction | tuple[Fraction, ...]
"""A scale, or one for each entry of the last axis."""


Text = str | tuple[str, ...]

Factor = float | tuple[float, ...]
"""One for all numbers, or one for each entry of the last axis."""

LONGEST = 512
"""Bits of a factor that multiplies any count of steps within float64."""

ONE = "1/1"
"""The text of a scale of 1."""


def written(scale: Step | Text) -> Text:
    """A scale as text, which may be one already.

    Example:
        >>> written(Fraction(1, 3)), written((Fraction(2), Fraction(1, 4)))
        ('1/3', ('2/1', '1/4'))
    """
    if isinstance(scale, str) or (isinstance(scale, tuple) and isinstance(scale[0], str)):
        return scale  # type: ignore[return-value]
    if isinstance(scale, tuple):
        return tuple(_text(each) for each in scale)
    return _text(scale)


def _text(scale: Fraction | str) -> str:
    return scale if isinstance(scale, str) else f"{scale.numerator}/{scale.denominator}"


def read(text: Text) -> Step:
    """What was ``written``.

    Example:
        >>> read("1/3")
        Fraction(1, 3)
    """
    if isinstance(text, tuple):
        return tuple(_fraction(each) for each in text)
    return _fraction(text)


def _fraction(text: str) -> Fraction:
    return _read(text) if is_dynamo_compiling() else _kept(text)  # graphs trace no cache


def _read(text: str) -> Fraction:
    above, below = text.split("/")
    return Fraction(int(above), int(below))


_kept = lru_cache(maxsize=256)(_read)


def factors(text: Text) -> tuple[Factor, Factor]:
    """Floats that counts of steps are multiplied with, and then divided by: one of both is 1 where
    a scale has a power of two above or below.

    Example:
        >>> factors("3/4"), factors("4/3"), factors("5/3")
        ((0.75, 1.0), (1.0, 0.75), (5.0, 3.0))
        >>> factors(("1/2", "1/3"))
        (1.0, (2.0, 3.0))
    """
    return _factors(text) if is_dynamo_compiling() else _kept_factors(text)


def _factors(text: Text) -> tuple[Factor, Factor]:
    scales = [_fraction(each) for each in ([text] if isinstance(text, str) else text)]
    if all(_exponent_is_small(each.numerator, each.denominator) for each in scales):
        return one_or_all([each.numerator / each.denominator for each in scales]), 1.0
    if all(_exponent_is_small(each.denominator, each.numerator) for each in scales):
        return 1.0, one_or_all([each.denominator / each.numerator for each in scales])
    parts = [_parts(each.numerator, each.denominator) for each in scales]
    return one_or_all([above for above, _ in parts]), one_or_all([below for _, below in parts])


def _parts(above: int, below: int) -> tuple[float, float]:
    """Both as floats, over a power of two where one is none. Beside one that is so much larger, the
    other is as good as 2^-800: the number leaves float64 with either."""
    longest = max(above.bit_length(), below.bit_length())
    if longest < sys.float_info.max_exp:
        return float(above), float(below)
    unit, least = 1 << (longest - LONGEST), Fraction(1, 2**800)
    return float(max(Fraction(above, unit), least)), float(max(Fraction(below, unit), least))


def _exponent_is_small(digits: int, power: int) -> bool:
    """Whether digits / power is a float and exact, and so are numbers of usual size times it."""
    return digits < 2**53 and power < 2**LONGEST and power & (power - 1) == 0


_kept_factors = lru_cache(maxsize=256)(_factors)


def checked_scale(scale: Any, values: Tensor | None) -> Step:
    if isinstance(scale, Sequence) and not isinstance(scale, str) and values is not None:
        if values.ndim == 0 or values.shape[-1] != len(scale):
            raise ValueError(
                f"scale has {len(scale)} numbers for values of shape {tuple(values.shape)}; give "
                f"one, or one for each entry of the last axis."
            )
        several = tuple(checked_scale(each, None) for each in scale)
        return several  # type: ignore[return-value]
    if isinstance(scale, bool) or not isinstance(scale, Rational):
        raise TypeError(
            f"scale is {scale!r}; it must be a whole number or a Fraction, as Fraction(1, 30). A "
            f"float is Fraction(float), if that very number is meant."
        )
    if scale <= 0:
        raise ValueError(f"scale is {scale}; it must be positive.")
    return exact(scale)


def exact(number: Rational) -> Fraction:
    """The same in Python's integers, since those of numpy may wrap, even within a ``Fraction``.

    Example:
        >>> import numpy
        >>> exact(numpy.uint8(200)) * 2
        Fraction(400, 1)
    """
    return Fraction(int(number.numerator), int(number.denominator))


def product(one: Step, other: Step) -> Step:
    if isinstance(one, Fraction) and isinstance(other, Fraction):
        return one * other
    axes = len(one) if isinstance(one, tuple) else len(other)  # type: ignore[arg-type]
    pairs = zip(per_axis(one, axes), per_axis(other, axes), strict=True)
    return tuple(a * b for a, b in pairs)


def multiplied(text: Text, above: int, below: int) -> Text:
    """The text of a scale times above / below.

    Example:
        >>> multiplied("1/3", 6, 5)
        '2/5'
    """
    return (_multiplied if is_dynamo_compiling() else _kept_multiplied)(text, above, below)


def _multiplied(text: Text, above: int, below: int) -> Text:
    return written(product(read(text), Fraction(above, below)))


_kept_multiplied = lru_cache(maxsize=256)(_multiplied)


def steps_of(number: Rational, scale: Fraction) -> tuple[int, int]:
    """How many steps a number is, as a fraction: two whole numbers, the second positive.

    Example:
        >>> steps_of(2, Fraction(3, 4))
        (8, 3)
    """
    above, below = int(number.numerator), int(number.denominator)
    return above * scale.denominator, below * scale.numerator


class Shift(NamedTuple):
    """What a sum adds to steps that are cut, and to rests: one number, or one an axis.

    Attributes:
        counts: What is added to the steps.
        rests: What is added to the rests.
        cuts: Into how many parts each step is cut before.
        finest: The most of these.
        farthest: The largest size of a count.
        text: The scale of the sum.
    """

    counts: int | tuple[int, ...]
    rests: int | tuple[int, ...]
    cuts: int | tuple[int, ...]
    finest: int
    farthest: int
    text: Text


@lru_cache(maxsize=256)
def shift(text: Text, by: Rational | tuple[Rational, ...], rests: bool) -> Shift | None:
    """How to add a number, or one an axis; with rests None, where units of rests do not hold it.

    Example:
        >>> shift("1/2", 3, False), shift("1/2", (0, Fraction(1, 4)), False)
        (Shift(counts=6, rests=0, cuts=1, finest=1, farthest=6, text='1/2'), \
Shift(counts=(0, 1), rests=0, cuts=(1, 2), finest=2, farthest=1, text=('1/2', '1/4')))
    """
    numbers = by if isinstance(by, tuple) else (by,)
    texts = text if isinstance(text, tuple) else (text,) * len(numbers)
    pairs = zip(numbers, texts, strict=True)
    steps = [Fraction(*steps_of(number, _fraction(each))) for number, each in pairs]
    if rests:
        units = [step * 2**REST_BITS for step in steps]
        if any(unit.denominator != 1 for unit in units):
            return None
        words = [divmod(unit.numerator, 2**REST_BITS) for unit in units]
        cuts = [1] * len(words)
    else:
        words, cuts = [(step.numerator, 0) for step in steps], [step.denominator for step in steps]
    counts, more = zip(*words, strict=True)
    finer = [_multiplied(each, 1, cut) for each, cut in zip(texts, cuts, strict=True)]
    return Shift(
        one_or_all(counts),
        one_or_all(more),
        one_or_all(cuts),
        max(cuts),
        max(map(abs, counts)),
        one_or_all(finer),
    )


def one_or_all(each: Sequence[Any]) -> Any:
    """What all entries are, or all of them."""
    return each[0] if all(entry == each[0] for entry in each) else tuple(each)


def per_axis(scale: Step, axes: int) -> tuple[Fraction, ...]:
    return scale if isinstance(scale, tuple) else (scale,) * axes


def step_of_all(scales: list[Fraction]) -> Fraction:
    """The largest step of which all are whole numbers."""
    step = scales[0]
    for scale in scales[1:]:
        step = _common_divisor(step, scale)
    return step


def _common_divisor(a: Fraction, b: Fraction) -> Fraction:
    first, second = a.numerator * b.denominator, b.numerator * a.denominator
    while second:
        first, second = second, first % second
    return Fraction(first, a.denominator * b.denominator)


def as_fractions(values: Any, scale: Step) -> Any:
    """Lists of whole numbers, each times its scale."""
    if not isinstance(values, list):
        assert isinstance(scale, Fraction)
        return values * scale
    if isinstance(scale, tuple) and values and not any(isinstance(each, list) for each in values):
        return [value * step for value, step in zip(values, scale, strict=True)]
    return [as_fractions(each, scale) for each in values]


def of_last_axis(index: Any, ndim: int) -> Any:
    """What of ``index`` is asked of the last axis."""
    if type(index) is tuple and len(index) == 2 and index[0] is Ellipsis and type(index[1]) is int:
        return index[1]  # as most ask
    if isinstance(index, list) and not all(isinstance(each, Integral) for each in index):
        raise TypeError(
            "Indexed with a list of other than numbers, which torch takes for a tuple or a tensor. "
            "Make it either: the last axis has a scale for each entry."
        )
    entries = index if isinstance(index, tuple) else (index,)
    taken = [entry for entry in entries if entry is not None]
    ellipses = [place for place, entry in enumerate(taken) if entry is Ellipsis]
    axes = sum(_axes_of(entry) for entry in taken)
    if axes < ndim and (not ellipses or ellipses[0] == len(taken) - 1):
        return slice(None)
    if ellipses and axes > ndim:
        raise IndexError(f"{axes} axes were asked of {ndim}.")
    if len(ellipses) > 1:
        raise IndexError("Indexed with more than one Ellipsis; which axes they skip is left open.")
    last = next(entry for entry in reversed(taken) if entry is not Ellipsis)
    if not isinstance(last, slice) and (not isinstance(last, Integral) or isinstance(last, bool)):
        raise TypeError(
            f"The last axis was indexed with a {type(last).__name__}, and has a scale for each "
            f"entry. Index it with a number or a slice."
        )
    return last


def _axes_of(entry: Any) -> int:
    """How many axes an entry of an index is about; a mask, also of numpy or in lists, has its own.

    Example:
        >>> _axes_of(...), _axes_of(2), _axes_of([[True, False]])
        (0, 1, 2)
    """
    if entry is Ellipsis or entry is True or entry is False:
        return 0
    if isinstance(entry, slice | Integral):
        return 1
    given = entry if isinstance(entry, Tensor) else torch.as_tensor(entry)
    return given.ndim if given.dtype == torch.bool else 1
