"""What constructors ask of their arguments: sizes are whole numbers, and numbers are numbers."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from math import inf
from numbers import Integral, Real
from typing import Any, TypeGuard, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

MOST = 2**62  # larger numbers leave int64 once something is added


def check_whole(least: int = 1, /, **values: object) -> None:
    """Refuse what is no whole number from ``least`` on.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_whole(heads=8, head_dim=2.5)
        Traceback (most recent call last):
        ...
        ValueError: head_dim is 2.5; it must be a whole number from 1 on.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise ValueError(f"{name} is {value!r}; it must be a whole number from {least} on.")
        if int(value) > MOST:
            raise ValueError(f"{name} is {value}; positions are int64, so it must be 2^62 or less.")


def check_number(least: float = -inf, /, **values: object) -> None:
    """Refuse what is no finite number from ``least`` on.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_number(0.0, std=-1.0)
        Traceback (most recent call last):
        ...
        ValueError: std is -1.0; it must be a finite number from 0 on.
    """
    bound = "" if least == -inf else f" from {least:g} on"
    for name, value in values.items():
        if not _is_finite(value) or float(value) < least:  # type: ignore[arg-type]
            raise ValueError(f"{name} is {value!r}; it must be a finite number{bound}.")


def check_positive_number(**values: object) -> None:
    """Refuse what is no finite number above 0.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_positive_number(scale_base=0)
        Traceback (most recent call last):
        ...
        ValueError: scale_base is 0; it must be a finite number above 0.
    """
    for name, value in values.items():
        if not _is_finite(value) or float(value) <= 0:  # type: ignore[arg-type]
            raise ValueError(f"{name} is {value!r}; it must be a finite number above 0.")


def check_probability(**values: object) -> None:
    """Refuse what is no number between 0 and 1.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_probability(dropout=1.5)
        Traceback (most recent call last):
        ...
        ValueError: dropout is 1.5; it must be a probability between 0 and 1.
    """
    for name, value in values.items():
        if not _is_finite(value) or not 0.0 <= value <= 1.0:  # type: ignore[operator]
            raise ValueError(f"{name} is {value!r}; it must be a probability between 0 and 1.")


def check_numbers(**values: object) -> None:
    """Refuse what is no row of finite numbers.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_numbers(slopes=(0.5, float("nan")))
        Traceback (most recent call last):
        ...
        ValueError: slopes is (0.5, nan); it must be a row of finite numbers.
    """
    for name, value in values.items():
        row = value.tolist() if hasattr(value, "tolist") else value  # type: ignore[attr-defined]
        if not is_row(row) or not all(map(_is_finite, row)):
            raise ValueError(f"{name} is {value!r}; it must be a row of finite numbers.")


def check_choice(choices: Sequence[str], /, **values: object) -> None:
    """Refuse what is none of some names.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_choice(("log", "power"), kernel="linear")
        Traceback (most recent call last):
        ...
        ValueError: kernel is 'linear'; it must be 'log' or 'power'.
    """
    for name, value in values.items():
        if not isinstance(value, str) or value not in choices:
            *others, last = map(repr, choices)
            listed = f"{', '.join(others)} or {last}" if others else last
            raise ValueError(f"{name} is {value!r}; it must be {listed}.")


def check_flag(**values: object) -> None:
    """Refuse what is neither true nor false.

    Raises:
        ValueError: A value is not; its name is told.

    Example:
        >>> check_flag(bias="no")
        Traceback (most recent call last):
        ...
        ValueError: bias is 'no'; it must be True or False.
    """
    for name, value in values.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {value!r}; it must be True or False.")


def or_none(check: Callable[..., None]) -> Callable[..., None]:
    """A check that lets ``None`` pass.

    Example:
        >>> or_none(check_whole)(clamp_len=None)
        >>> or_none(check_whole)(clamp_len=0)
        Traceback (most recent call last):
        ...
        ValueError: clamp_len is 0; it must be a whole number from 1 on.
    """

    def checked(**values: object) -> None:
        check(**{name: value for name, value in values.items() if value is not None})

    return checked


def is_row(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether ``value`` is a sequence, and not a text or bytes, which are rows of letters.

    Example:
        >>> is_row((14, 14)), is_row("14"), is_row(b"14"), is_row({14})
        (True, False, False, False)
    """
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def with_checked_flags(function: Function) -> Function:
    """A function that refuses what is neither true nor false where its default is one of both.

    Example:
        >>> @with_checked_flags
        ... def hides(ahead, is_causal=False):
        ...     return is_causal and ahead
        >>> hides(True, "False")
        Traceback (most recent call last):
        ...
        ValueError: is_causal is 'False'; it must be True or False.
    """
    parameters = signature(function).parameters
    names = [*parameters]
    flags = [name for name, each in parameters.items() if isinstance(each.default, bool)]
    if not flags:
        return function

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        said = dict(zip(names, given, strict=False)) | named
        check_flag(**{name: said[name] for name in flags if name in said})
        return function(*given, **named)

    return called  # type: ignore[return-value]


def _is_finite(value: object) -> bool:
    """Whether ``value`` is a finite number, a switch being none, nor what torch cannot hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    if isinstance(value, Integral):
        return abs(int(value)) < 2**63
    return -inf < float(value) < inf
