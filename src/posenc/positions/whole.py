"""Sizes, counts and starts are whole numbers: torch would cut 2.5 to 2 without a word."""

from collections.abc import Iterable
from numbers import Integral

import torch
from torch import Tensor


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

    Raises:
        TypeError: A value is none; its name is told, and the place of a number that is not whole.

    Example:
        >>> check_several_whole_numbers(size=(4, 2.5))
        Traceback (most recent call last):
        ...
        TypeError: size[1] is 2.5; it must be a whole number.
    """
    for name, several in values.items():
        if not isinstance(several, Iterable) or (isinstance(several, Tensor) and not several.ndim):
            raise TypeError(
                f"{name} is {several!r}; it must be several whole numbers, as a list of them."
            )
        for place, value in enumerate(several):
            if type(value) is not int and not _is_whole(value):
                raise TypeError(f"{name}[{place}] is {value!r}; it must be a whole number.")


def _is_whole(value: object) -> bool:
    if isinstance(value, Tensor):
        of_reals = value.is_floating_point() or value.is_complex() or value.dtype == torch.bool
        return value.ndim == 0 and not of_reals
    return isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)
