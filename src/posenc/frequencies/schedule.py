"""What a frequency schedule is: exact numbers that depend on nothing but its own fields."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import fields
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import wraps
from math import isfinite, log10
from numbers import Integral, Rational
from typing import TYPE_CHECKING, Any

from posenc._numbers import python_number

if TYPE_CHECKING:
    from torch import Tensor

TURN_BITS = 192
"""Fractional bits of a fixed-point frequency in turns per position."""

FINE_TURN_BITS = TURN_BITS + 128
"""Of ``fine_turns``, so that a scale may be folded in before the one rounding."""

# Digits that keep a frequency below 1 turn exact to well under one unit of 2^-320.
PRECISION = Context(prec=int(FINE_TURN_BITS * log10(2)) + 14, Emin=-(10**9), Emax=10**9)

# 2π, cut after 120 decimals; more than PRECISION can use.
TWO_PI = Decimal(
    "6.283185307179586476925286766559005768394338798750211641949889184615632812572417997256069650684234"
    "135964296173026564613294"
)

Number = int | float | Fraction

OPTIONAL = (float | None, Number | None)
"""How fields are annotated that are a number or nothing."""

FLOATS = (float, float | None)
"""Fields of these types hold no ratio, which tensors do not take."""

NO_ROW = (set, frozenset, dict, str, bytes, bytearray)
"""What gives numbers without an order, or codes of letters for numbers."""


def plain(value: Any) -> Any:
    """A number of numpy as Python's own, in a list or tuple too; all else as it is.

    Example:
        >>> import numpy
        >>> plain(numpy.uint8(200)), plain((numpy.int32(3), 0.5))
        (200, (3, 0.5))
    """
    if type(value) in (tuple, list):
        return type(value)(map(plain, value))
    return python_number(value)


def plain_first(settle: Callable[..., None]) -> Callable[..., None]:
    """A ``__post_init__`` that finds the fields of its dataclass ``plain``, as they stay.

    Every ``Schedule`` has its own made such; what resolves to one by a length says it itself, or
    refuses what would wrap.
    """

    @wraps(settle)
    def __post_init__(self: Any, *given: Any) -> None:
        for each in fields(self):
            value = plain(getattr(self, each.name))
            if each.type in FLOATS and isinstance(value, Fraction):
                value = float(value)
            object.__setattr__(self, each.name, value)
        settle(self, *given)

    return __post_init__


def in_usual_defaults(method: Callable[..., "Tensor"]) -> Callable[..., "Tensor"]:
    """A ``float32`` that makes tensors as torch does where nobody has set another default.

    Loaders set the dtype of a model and the meta device while they build it. Every ``Schedule`` has
    its own made such, and nothing is set where nothing is to be changed.
    """

    @wraps(method)
    def float32(self: Any, form: str) -> "Tensor":
        import torch

        before = torch.get_default_dtype()
        if before is not torch.float32:
            torch.set_default_dtype(torch.float32)
        try:
            with torch.device("cpu"):
                return method(self, form)
        finally:
            if before is not torch.float32:
                torch.set_default_dtype(before)

    return float32


def wraps_around(value: object) -> bool:
    """Whether ``value`` is a number of numpy, or a fraction of such, whose products soon wrap.

    Those of fewer than 64 bits do, and those without a sign below 0.

    Example:
        >>> import numpy
        >>> wraps_around(numpy.int32(200)), wraps_around(Fraction(numpy.int8(3))), wraps_around(200)
        (True, True, False)
    """
    number = value.numerator if isinstance(value, Fraction) else value
    dtype = getattr(number, "dtype", None) if isinstance(number, Integral) else None
    return dtype is not None and (dtype.kind == "u" or dtype.itemsize < 8)


def rational(number: Number) -> Fraction:
    """A number as the rational that it is, in Python's integers: powers of numpy's wrap.

    Example:
        >>> import numpy
        >>> rational(numpy.int64(3)) ** 50 == 3**50
        True
    """
    return Fraction(plain(number))


def exact(number: Number) -> Decimal:
    """The same to the digits of the context."""
    whole = rational(number)
    return Decimal(whole.numerator) / Decimal(whole.denominator)


def check_positive(owner: object, **values: Number) -> None:
    """Refuse what is not a positive and finite number.

    Raises:
        ValueError: A value is not; its name is told.
    """
    for name, value in values.items():
        if is_no_number(value) or wraps_around(value) or not (value > 0 and isfinite(value)):
            raise ValueError(
                f"{type(owner).__name__}: {name} is {_told(value)}; it must be a positive and "
                f"finite number."
            )


def check_extension(owner: object, factor: Number) -> None:
    """Refuse a factor that extends nothing; 1 is as good as no extension.

    Raises:
        ValueError: It is below 1, or not finite.
    """
    check_positive(owner, factor=factor)
    if factor < 1:
        raise ValueError(
            f"{type(owner).__name__}: factor is {factor}; it says by how much the trained length "
            f"is extended, so it must be 1 or more. For half of the frequencies pass 2, not 0.5."
        )


def check_length(owner: object, length: int, least: int = 1, name: str = "trained_length") -> None:
    """Refuse a length, trained or other, that is no number of tokens.

    Raises:
        ValueError: It is no whole number, or too small.
    """
    whole = isinstance(length, Integral) and not isinstance(length, bool)
    if not whole or wraps_around(length) or length < least:
        raise ValueError(
            f"{_name_of(owner)}: {name} is {_told(length)}; it must be a whole number of tokens "
            f"from {least} on."
        )


def _told(value: object) -> str:
    return (
        f"{value!r}, whose products wrap (pass int of it)" if wraps_around(value) else repr(value)
    )


def _name_of(owner: object) -> str:
    """What a function is called, or the class of a schedule."""
    return owner if isinstance(owner, str) else type(owner).__name__


def check_schedule(owner: object, of: object) -> None:
    """Refuse what is no schedule to rescale.

    Raises:
        TypeError: ``of`` is none.
    """
    if not isinstance(of, Schedule):
        raise TypeError(
            f"{type(owner).__name__}: of is {of!r}; it must be a schedule, as Geometric(128). "
            f"Resolve one that depends on the length by .at(length)."
        )


def listed(owner: object, name: str, values: Iterable[Number]) -> tuple[Number, ...]:
    """Several numbers as a tuple.

    Raises:
        TypeError: ``values`` are no numbers.
    """
    try:
        given = None if isinstance(values, NO_ROW) else tuple(map(plain, values))
    except TypeError:
        given = None
    if given is None or any(is_no_number(value) for value in given):
        raise TypeError(
            f"{_name_of(owner)}: {name} is {values!r}; it must be several numbers, as a list."
        )
    return given


def is_no_number(value: object) -> bool:
    """Whether ``value`` is none that frequencies are computed from; a switch is none.

    Example:
        >>> is_no_number(True), is_no_number(0.5)
        (True, False)
    """
    return isinstance(value, bool) or not isinstance(value, Rational | float)


class Schedule(ABC):
    """Frequencies, in radians per position, as exact as they are needed.

    A schedule is a frozen dataclass: equal fields, equal numbers, on every machine. Numbers of
    numpy in its fields become Python's own, which do not wrap. Schedules that
    rescale another hold it as a field, so they nest. What a schedule is stands in its fields, which
    extensions and exports read; so one with other frequencies than the one it derives from is
    refused.
    """

    attention_factor = 1.0
    """What cosines and sines are multiplied with, and so each of queries and keys."""

    softmax_factor = 1.0
    """What attention multiplies its softmax scale with."""

    def __init_subclass__(cls, **named: object):
        super().__init_subclass__(**named)
        if "__post_init__" in vars(cls):
            cls.__post_init__ = plain_first(cls.__post_init__)
        if "float32" in vars(cls):
            cls.float32 = in_usual_defaults(cls.float32)
        known = [
            each for each in cls.__mro__[1:] if "radians" in vars(each) and each is not Schedule
        ]
        if known and {"radians", "float32"} & vars(cls).keys():
            raise TypeError(
                f"{cls.__name__} derives from {known[0].__name__} and has frequencies of its own; "
                f"whoever reads base and width would take it for a {known[0].__name__}. Derive it "
                f"from Schedule, with a field for the {known[0].__name__} that it changes."
            )

    @plain_first  # noqa: B027 (those without checks have none)
    def __post_init__(self) -> None:
        """What a schedule checks and keeps; its fields are ``plain`` by then."""

    @abstractmethod
    def radians(self) -> tuple[Decimal, ...]:
        """The frequencies ω_i, in radians per position; called within ``PRECISION``."""

    @abstractmethod
    def float32(self, form: str) -> "Tensor":
        """The frequencies as the common float32 formulas round them, for parity."""

    def _settle(self, *, attention_factor: float = 1.0, softmax_factor: float = 1.0) -> None:
        """Keep what follows from the fields: computed once, so that a graph sees a number.

        Raises:
            ValueError: A field that is true or false by default is neither, or an optional
                number is none.
        """
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if isinstance(each.default, bool) and not isinstance(value, bool):
                raise ValueError(
                    f"{type(self).__name__}: {each.name} is {value!r}; it must be True or False."
                )
            if each.type in OPTIONAL and value is not None and is_no_number(value):
                raise ValueError(
                    f"{type(self).__name__}: {each.name} is {value!r}; it must be a number, or "
                    f"None."
                )
        object.__setattr__(self, "attention_factor", attention_factor)
        object.__setattr__(self, "softmax_factor", softmax_factor)

    def __len__(self) -> int:
        return len(self.turns())

    def turns(self) -> tuple[int, ...]:
        """The frequencies as fixed-point turns per position: round(ω_i / 2π · 2^192)."""
        return self._turns_of(TURN_BITS)

    def fine_turns(self) -> tuple[int, ...]:
        """The same in units of 2^-320: what turns at any scale of coordinates are made of."""
        return self._turns_of(FINE_TURN_BITS)

    def _turns_of(self, bits: int) -> tuple[int, ...]:
        with localcontext(PRECISION):
            return tuple(int((w / TWO_PI * 2**bits).to_integral_value()) for w in self._radians())

    def _radians(self) -> tuple[Decimal, ...]:
        """``radians``, kept: powers in 110 digits take milliseconds."""
        if "_kept" not in self.__dict__:
            object.__setattr__(self, "_kept", self.radians())
        return self._kept  # type: ignore[attr-defined]

    def wavelengths(self) -> tuple[float, ...]:
        """Positions per turn, 2π / ω_i; infinite for a frequency of 0."""
        with localcontext(PRECISION):
            return tuple(float(TWO_PI / w) if w else float("inf") for w in self.radians())
