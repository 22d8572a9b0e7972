"""Sizes, counts and starts are whole numbers: torch would cut 2.5 to 2 without a word."""

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


def _is_whole(value: object) -> bool:
    if isinstance(value, Tensor):
        of_reals = value.is_floating_point() or value.is_complex() or value.dtype == torch.bool
        return value.ndim == 0 and not of_reals
    return isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)
