"""cos and sin of position × frequency on an accelerator, where a frequency is a fraction of a turn.

As ``phase.h`` does it in C: whole numbers of 64 bits until the phase is reduced to its nearest
quarter turn, then series in float64, and where the last bit is in doubt, in pairs of float64. The
pairs need products and sums that are not fused; kernels are compiled so.
"""
# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import triton
import triton.language as tl

WORD, DIGIT = tl.constexpr(2.0**-64), tl.constexpr(2.0**-32)
RADIANS = tl.constexpr(6.283185307179586 * 2.0**-64)
TWO_PI_HIGH, TWO_PI_LOW = tl.constexpr(6.283185307179586), tl.constexpr(2.4492935982947064e-16)
HALVES = tl.constexpr(2.0**27 + 1)


@triton.jit
def phase_of(position, high, middle, low):
    """position · frequency modulo one turn, exact, as three unsigned words.

    The position is int64 and the words are uint64.
    """
    times = position.to(tl.uint64, bitcast=True)
    product = times * middle
    first, carry = times * low, tl.umulhi(times, low)
    second = product + carry
    third = times * high + tl.umulhi(times, middle) + (second < product).to(tl.uint64)
    # times is 2⁶⁴ more than a negative position.
    negative = position < 0
    borrow = (second < low).to(tl.uint64)
    third = tl.where(negative, third - middle - borrow, third)
    second = tl.where(negative, second - low, second)
    return third, second, first


@triton.jit
def reduced(high, middle, low):
    """The rest from the nearest quarter turn, made positive; that quarter; whether it was below."""
    quadrant = (((high >> 61) + 1) >> 1) & 3
    high = high - (quadrant << 62)
    negative = (high >> 63) != 0
    below = 0 - low
    beside = 0 - middle - (low != 0).to(tl.uint64)
    above = 0 - high - ((low | middle) != 0).to(tl.uint64)
    high = tl.where(negative, above, high)
    middle = tl.where(negative, beside, middle)
    low = tl.where(negative, below, low)
    return high, middle, low, quadrant, negative


@triton.jit
def radians_of(high, middle, low):
    """A rest in radians, 3 roundings from the truth; digits are kept where it is small."""
    fraction = high.to(tl.float64) + middle.to(tl.float64) * WORD
    return (fraction + low.to(tl.float64) * (WORD * WORD)) * RADIANS


@triton.jit
def sine_series(x):
    """The Taylor series, for angles from 0 to π/4; what is left off is below 2⁻⁵⁶ of the value."""
    y = x * x
    total = y * (1.0 / 355687428096000.0) - 1.0 / 1307674368000.0
    total = total * y + 1.0 / 6227020800.0
    total = total * y - 1.0 / 39916800.0
    total = total * y + 1.0 / 362880.0
    total = total * y - 1.0 / 5040.0
    total = total * y + 1.0 / 120.0
    total = total * y - 1.0 / 6.0
    return x + x * y * total


@triton.jit
def cosine_series(x):
    """Likewise."""
    y = x * x
    total = y * (1.0 / 20922789888000.0) - 1.0 / 87178291200.0
    total = total * y + 1.0 / 479001600.0
    total = total * y - 1.0 / 3628800.0
    total = total * y + 1.0 / 40320.0
    total = total * y - 1.0 / 720.0
    total = total * y + 1.0 / 24.0
    return 1.0 - (0.5 * y - y * y * total)


@triton.jit
def two_sum(a, b):
    """a + b as the sum of two numbers, exactly (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@triton.jit
def two_times(a_high, a_low, b_high, b_low):
    """A product of two pairs, to about 100 bits; by halves of numbers (Dekker), without fma."""
    product = a_high * b_high
    split = a_high * HALVES
    a_first = split - (split - a_high)
    a_second = a_high - a_first
    split = b_high * HALVES
    b_first = split - (split - b_high)
    b_second = b_high - b_first
    rest = a_first * b_first - product + a_first * b_second + a_second * b_first
    rest = rest + a_second * b_second + (a_high * b_low + a_low * b_high)
    return two_sum(product, rest)


@triton.jit
def two_plus(a_high, a_low, b_high, b_low):
    """A sum of two pairs."""
    high, low = two_sum(a_high, b_high)
    return two_sum(high, low + (a_low + b_low))


@triton.jit
def two_over(a_high, a_low, divisor):
    """A pair over a whole number of few digits."""
    quotient = a_high / divisor
    back, rest = two_times(quotient, quotient * 0.0, divisor, divisor * 0.0)
    return two_sum(quotient, ((a_high - back) - rest + a_low) / divisor)


@triton.jit
def two_radians(high, middle, low):
    """A rest in radians as a pair; six exact pieces of 32 bits, from the smallest up."""
    total = low.to(tl.float64) * 0.0
    lesser = total
    for piece in tl.static_range(6):
        word = low if piece < 2 else middle if piece < 4 else high
        digits = (word >> 32 if piece % 2 else word & 0xFFFFFFFF).to(tl.float64)
        total, lesser = two_plus(digits, digits * 0.0, total * DIGIT, lesser * DIGIT)
    none = total * 0.0
    return two_times(total * DIGIT, lesser * DIGIT, none + TWO_PI_HIGH, none + TWO_PI_LOW)


@triton.jit
def two_series(high, low, odd):
    """cos, or sin where ``odd``, of an angle up to π/4, to about 100 bits."""
    square_high, square_low = two_times(high, low, high, low)
    term_high, term_low = tl.where(odd, high, 1.0), tl.where(odd, low, 0.0)
    sum_high, sum_low = term_high, term_low
    first = odd.to(tl.float64)
    for k in range(1, 30, 2):
        term_high, term_low = two_times(term_high, term_low, square_high, square_low)
        term_high, term_low = two_over(term_high, term_low, -(first + k) * (first + (k + 1)))
        sum_high, sum_low = two_plus(sum_high, sum_low, term_high, term_low)
    return sum_high, sum_low
