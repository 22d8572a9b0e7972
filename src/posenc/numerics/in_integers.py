"""cos and sin of one phase in whole numbers: right to some 380 bits, and without tensors."""

from fractions import Fraction
from math import cos, ldexp, sin, tau

from posenc.frequencies.schedule import TURN_BITS, TWO_PI

BITS = 384
"""Of a sum. Of all positions, 2^64, and all midpoints, the nearest two are some 2^-90 apart."""

WHOLE = int(Fraction(TWO_PI) * 2**BITS)


def exact_value(phase: int, sine: bool, factor: float = 1.0) -> float:
    """factor · cos or factor · sin of a fraction of a turn, rounded to odd.

    Where the value is no float64, that is the neighbor that ends in 1: rounding it once more, to a
    narrower format, is right.

    Args:
        phase: In units of 2^-192 of a turn.
        sine: Which of both.
        factor: What it is multiplied with.

    Example:
        >>> exact_value(1 << 189, sine=True)  # an eighth of a turn
        0.7071067811865476
    """
    size, rest, minus = _summed(phase, sine, TURN_BITS)
    numerator, denominator = factor.as_integer_ratio()
    product = size * abs(numerator)
    shift = max(product.bit_length() - 53, 0)
    digits = product >> shift
    if rest or digits << shift != product:  # a sum that was cut, or a product that is
        digits |= 1
    value = ldexp(digits, shift - BITS - denominator.bit_length() + 1)
    return -value if minus != (factor < 0) else value


def nearest_value(phase: int, sine: bool, bits: int = TURN_BITS) -> float:
    """cos or sin of a fraction of a turn, correctly rounded to float64.

    Args:
        phase: In units of 2^-bits of a turn; whole turns are left out.
        sine: Which of both.
        bits: Fractional bits of the phase.
    """
    size, _, minus = _summed(phase, sine, bits)
    value = size / 2**BITS  # Python divides whole numbers with one rounding
    return -value if minus else value


def near_value(phase: int, sine: bool, bits: int = TURN_BITS) -> float:
    """The same within 3 units in the last place, some thirty times as fast."""
    across, rest, minus = _reduced(phase, sine, bits)
    angle = abs(rest) / 2**bits * tau
    value = sin(angle) if across else cos(angle)
    return -value if minus else value


def _summed(phase: int, sine: bool, bits: int) -> tuple[int, int, bool]:
    """The size of the value in units of 2^-BITS, what is left of the phase, and the sign."""
    across, rest, minus = _reduced(phase, sine, bits)
    return _series((abs(rest) * WHOLE) >> bits, odd=across), rest, minus


def _reduced(phase: int, sine: bool, bits: int) -> tuple[bool, int, bool]:
    """Whether it is the sine of what is left beside the nearest quarter turn, that, and a sign."""
    quarters = ((phase >> (bits - 3)) + 1) >> 1  # to the nearest
    rest, quadrant = phase - (quarters << (bits - 2)), quarters % 4
    across = bool(quadrant & 1) != sine
    minus = quadrant >= 2 if sine else quadrant in (1, 2)
    return across, rest, minus ^ (across and rest < 0)


def _series(angle: int, odd: bool) -> int:
    """The Taylor series of sin where ``odd``, or of cos; all in units of 2^-BITS."""
    square = (angle * angle) >> BITS
    term = angle if odd else 1 << BITS
    total, sign, k = 0, 1, 1 + odd
    while term:
        total += sign * term
        term = ((term * square) >> BITS) // (k * (k + 1))
        sign, k = -sign, k + 2
    return total
