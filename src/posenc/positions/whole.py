"""Sizes, counts and starts are whole numbers: torch would cut 2.5 to 2 without a word."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from functools import wraps
from numbers import Integral, Number
from typing import Any, TypeVar

import torch
from torch import Tensor

from posenc._numbers import python_number

Function = TypeVar("Function", bound=Callable[..., Any])

CODES = (bytes, bytearray)
"""What iterates as numbers that nobody wrote: the codes of its letters."""


def check_whole_numbers(**values: object) -> None:
    """Refuse what is no whole number: floats, switches, texts.

    Numbers of numpy, tensors that hold one whole number, and symbols of a graph are whole numbers.

    Raises:
        TypeError: A value is none; its name is told.

    Example:
        >>> check_whole_numbers(length=4, start=2.5)
        Traceback (most recent call last):
        ...
        TypeError: start is 2.5; it must be a whole number.
    """
    for name, value in values.items():
        if type(value) is not int and not _is_whole(value):
            raise TypeError(f"{name} is {value!r}; it must be a whole number.")


def check_several_whole_numbers(**values: object) -> None:
    """Refuse what is no sequence of whole numbers: one number alone, and any that is not whole.

    Iterators too, which give their numbers once: after this check there would be none.

    Raises:
        TypeError: A value is none; its name is told, and the place of a number that is not whole.

    Example:
        >>> check_several_whole_numbers(size=(4, 2.5))
        Traceback (most recent call last):
        ...
        TypeError: size[1] is 2.5; it must be a whole number.
    """
    for name, several in values.items():
        alone = isinstance(several, Tensor) and not several.ndim
        if not isinstance(several, Iterable) or alone or isinstance(several, CODES):
            raise TypeError(
                f"{name} is {several!r}; it must be several whole numbers, as a list of them."
            )
        if isinstance(several, Iterator):
            raise TypeError(
                f"{name} is a {type(several).__name__}, which gives its numbers once. Pass a list."
            )
        for place, value in enumerate(several):
            if type(value) is not int and not _is_whole(value):
                raise TypeError(f"{name}[{place}] is {value!r}; it must be a whole number.")


def _is_whole(value: object) -> bool:
    if isinstance(value, Tensor):
        of_reals = value.is_floating_point() or value.is_complex() or value.dtype == torch.bool
        return value.ndim == 0 and not of_reals
    return isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)


def plain(value: Any) -> Any:
    """A number of numpy as Python's own, in a list or tuple too; all else as it is.

    numpy's numbers wrap: -numpy.uint8(2) is 254, and 16 heads of 16 are none. So does a tensor that
    holds one; it gets 64 bits.

    Example:
        >>> import numpy
        >>> plain((numpy.uint8(200), 2.5)), plain(torch.tensor(100, dtype=torch.int8)).dtype
        ((200, 2.5), torch.int64)
    """
    kind = type(value)
    if kind is tuple or kind is list:
        made = kind(map(plain, value))
        return value if all(map(_is_same, made, value)) else made
    if kind is Tensor and value.ndim == 0 and _is_whole(value):
        return value.to(torch.int64)
    return python_number(value)


def with_plain_numbers(function: Function) -> Function:
    """A function whose arguments are ``plain`` when it is called, and have an order.

    Raises:
        TypeError: By that function: an argument is a set, whose order is nobody's, or bytes.

    Example:
        >>> import numpy
        >>> with_plain_numbers(lambda reach: -reach)(numpy.uint8(2))
        -2
    """

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        check_ordered(*given, *named.values())
        return function(*map(plain, given), **{name: plain(value) for name, value in named.items()})

    return called  # type: ignore[return-value]


def check_ordered(*values: object) -> None:
    """Refuse sets, which give their numbers in an order of their own, and bytes, which are text.

    Raises:
        TypeError: A value is one.

    Example:
        >>> check_ordered([0.5], {0.25, 0.5})
        Traceback (most recent call last):
        ...
        TypeError: {0.25, 0.5} is a set, which has no order. Pass a list.
        >>> check_ordered(b"half")
        Traceback (most recent call last):
        ...
        TypeError: b'half' is bytes, whose numbers are codes of letters. Pass a list, or text.
    """
    for value in values:
        if isinstance(value, set | frozenset):
            raise TypeError(f"{value!r} is a set, which has no order. Pass a list.")
        if isinstance(value, CODES):
            raise TypeError(
                f"{value!r} is {type(value).__name__}, whose numbers are codes of letters. Pass a "
                f"list, or text."
            )


def check_listed(**values: object) -> None:
    """Refuse what is no list: sets, bytes, text, one number, and dictionaries, which give keys.

    Raises:
        TypeError: A value is one; its name is told.

    Example:
        >>> check_listed(lengths={3: "first", 2: "second"})
        Traceback (most recent call last):
        ...
        TypeError: lengths are a dict, which is no list of them. Pass a list, as list(...values()).
    """
    for name, value in values.items():
        if isinstance(value, Mapping):
            raise TypeError(
                f"{name} are a {type(value).__name__}, which is no list of them. Pass a list, as "
                f"list(...values())."
            )
        if isinstance(value, str):
            raise TypeError(f"{name} are {value!r}, which is text. Pass a list.")
        if isinstance(value, Number) or getattr(value, "ndim", 1) == 0:
            raise TypeError(f"{name} are {value!r}, which is one number. Pass a list.")
        check_ordered(value)


def keep_plain_numbers(made: Any) -> None:
    """Make the fields of a dataclass ``plain``, of a frozen one too.

    Example:
        >>> import numpy
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Window:
        ...     reach: int
        >>> window = Window(numpy.uint8(2))
        >>> keep_plain_numbers(window)
        >>> -window.reach
        -2
    """
    for each in fields(made):
        object.__setattr__(made, each.name, plain(getattr(made, each.name)))


def _is_same(one: object, other: object) -> bool:
    return one is other
