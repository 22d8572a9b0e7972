"""The size of a step of coordinates: one rational number, or one an axis."""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from numbers import Integral, Rational
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_dynamo_compiling

Step = Fraction | tuple[Fraction, ...]
"""A scale, or one for each entry of the last axis."""


Text = str | tuple[str, ...]

ONE = "1/1"
"""The text of a scale of 1."""


def written(scale: Step | Text) -> Text:
    """A scale as text, which may be one already.

    Example:
        >>> written(Fraction(1, 3)), written((Fraction(2), Fraction(1, 4)))
        ('1/3', ('2/1', '1/4'))
    """
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


def short(text: str) -> float | None:
    """The scale of a text, if a float64 holds it and it is no very small or large one.

    Example:
        >>> short("3/4"), short("1/3")
        (0.75, None)
    """
    return _short(text) if is_dynamo_compiling() else _kept_short(text)


def _short(text: str) -> float | None:
    scale = _fraction(text)
    below = scale.denominator
    holds = scale.numerator < 2**53 and below < 2**512 and below & (below - 1) == 0
    return scale.numerator / below if holds else None


_kept_short = lru_cache(maxsize=256)(_short)


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
    if isinstance(scale, tuple) and not any(isinstance(each, list) for each in values):
        return [value * step for value, step in zip(values, scale, strict=True)]
    return [as_fractions(each, scale) for each in values]


def of_last_axis(index: Any, ndim: int) -> Any:
    """What of ``index`` is asked of the last axis."""
    entries = index if isinstance(index, tuple) else (index,)
    taken = [entry for entry in entries if entry is not None]
    ellipses = [place for place, entry in enumerate(taken) if entry is Ellipsis]
    axes = sum(_axes_of(entry) for entry in taken)
    if (ellipses and ellipses[0] == len(taken) - 1) or (not ellipses and axes < ndim):
        return slice(None)
    if ellipses and axes > ndim:
        raise IndexError(f"{axes} axes were asked of {ndim}.")
    last = taken[-1]
    if not isinstance(last, slice) and not isinstance(last, Integral):
        raise TypeError(
            f"The last axis was indexed with a {type(last).__name__}, and has a scale for each "
            f"entry. Index it with a number or a slice."
        )
    return last


def _axes_of(entry: Any) -> int:
    if entry is Ellipsis:
        return 0
    if isinstance(entry, Tensor) and entry.dtype == torch.bool:
        return entry.ndim
    return 1
