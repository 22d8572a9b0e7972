"""Checks of constructors: each takes ``name=value`` and raises a ``ValueError`` that says both."""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from numbers import Integral, Real
from typing import Any, TypeGuard

MOST = 2**62  # larger numbers leave int64 once something is added


def check_whole(least: int = 1, /, **values: object) -> None:
    """Each value is a whole number from ``least`` to 2^62.

    Example:
        >>> check_whole(heads=8, head_dim=2.5)
        Traceback (most recent call last):
        ...
        ValueError: head_dim is 2.5; it must be a whole number from 1 on.
    """
    _check(
        lambda value: (
            isinstance(value, Integral) and _is_number(value) and least <= int(value) <= MOST
        ),
        f"a whole number from {least} on",
        values,
    )


def check_multiple(of: int, /, **values: object) -> None:
    """Each value is a whole number that ``of`` divides, ``of`` itself or more."""
    check_whole(of, **values)
    _check(lambda value: int(value) % of == 0, f"a multiple of {of}", values)


def check_number(least: int | float = -inf, /, **values: object) -> None:
    """Each value is a finite number from ``least`` on."""
    bound = f" from {least:g} on" if least > -inf else ""
    _check(lambda value: _is_number(value) and value >= least, f"a finite number{bound}", values)


def check_positive_number(**values: object) -> None:
    """Each value is a finite number above 0."""
    _check(lambda value: _is_number(value) and value > 0, "a finite number above 0", values)


def check_probability(**values: object) -> None:
    """Each value is a number from 0 to 1."""
    wanted = "a probability between 0 and 1"
    _check(lambda value: _is_number(value) and 0 <= value <= 1, wanted, values)


def check_numbers(**values: object) -> None:
    """Each value is a row of finite numbers: a list, a tuple or a tensor."""
    wanted = "a row of finite numbers"
    _check(lambda row: is_row(row := _listed(row)) and all(map(_is_number, row)), wanted, values)


def check_choice(choices: Sequence[str], /, **values: object) -> None:
    """Each value is one of some names."""
    *others, last = map(repr, choices)
    wanted = f"{', '.join(others)} or {last}" if others else last
    _check(lambda value: value in choices, wanted, values)


def check_flag(**values: object) -> None:
    """Each value is ``True`` or ``False``."""
    _check(lambda value: isinstance(value, bool), "True or False", values)


def is_row(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether ``value`` is a sequence other than text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _check(is_right: Callable[[Any], bool], wanted: str, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if not is_right(value):
            raise ValueError(f"{name} is {value!r}; it must be {wanted}.")


def _is_number(value: object) -> bool:
    """Whether ``value`` is a finite number that torch can hold; a switch is none."""
    if isinstance(value, Integral):
        return not isinstance(value, bool) and abs(int(value)) < 2**63
    return isinstance(value, Real) and isfinite(value)


def _listed(row: Any) -> Any:
    return row.tolist() if hasattr(row, "tolist") else row
