"""Numbers of other kinds as Python's own, which do not wrap; nothing of torch is needed here."""

from fractions import Fraction
from numbers import Real
from typing import Any


def python_number(value: Any) -> Any:
    """A number of numpy, or a fraction of such, as Python's own; all else as it is.

    Example:
        >>> import numpy
        >>> python_number(numpy.uint8(200)) * 2, python_number("200")
        (400, '200')
        >>> python_number(Fraction(numpy.int32(3))).numerator ** 50 == 3**50
        True
    """
    if type(value) is Fraction and type(value.numerator) is not int:
        return Fraction(int(value.numerator), int(value.denominator))
    if type(value).__module__ == "numpy" and isinstance(value, Real):
        return value.item()  # type: ignore[attr-defined]
    return value
