"""Rounding for certain: the few values that float64 leaves in doubt are computed in integers.

A float64 value v within d of the truth is rounded twice, as v·(1 − d) and v·(1 + d). Where both
give one number, that number is right (Ziv 1991). Where they do not, which befalls one value in
millions, or one that somebody looked for, cos and sin are summed again to some 380 bits.
"""

from fractions import Fraction
from math import isfinite, ldexp

import torch
from torch import Tensor

from posenc.frequencies.schedule import TURN_BITS, TWO_PI
from posenc.numerics.phases import Phases, cos_sin_of
from posenc.numerics.rounding import rounded

DOUBT = 2.0**-49
"""d: 3 units in the last place, and what a factor and the products with 1 ± d round away."""

BITS = 384
"""Of a sum. Of all positions, 2^64, and all midpoints, the nearest two are some 2^-90 apart."""

WHOLE = int(Fraction(TWO_PI) * 2**BITS)

WORD = 64


def round_for_certain(
    phase: Phases, dtype: torch.dtype, factor: float = 1.0
) -> tuple[Tensor, Tensor]:
    """factor · cos and factor · sin of each phase, correctly rounded; values must be known.

    Example:
        >>> eighth, none = torch.tensor([2**61]), torch.tensor([0])
        >>> round_for_certain(Phases(eighth, none, none), torch.float16, -2.0)
        (tensor([-1.4141], dtype=torch.float16), tensor([-1.4141], dtype=torch.float16))
    """
    both = torch.stack(cos_sin_of(phase))
    if factor != 1.0:
        both = both * factor
    below, above = rounded(torch.stack((both * (1 - DOUBT), both * (1 + DOUBT))), dtype)
    doubtful = below != above
    if isfinite(factor) and doubtful.any():
        below[doubtful] = rounded(_exactly(phase, doubtful, factor), dtype)
    cos, sin = below
    return cos, sin


def _exactly(phase: Phases, doubtful: Tensor, factor: float) -> Tensor:
    """The values where ``doubtful``, in float64 rounded to odd."""
    words = torch.stack([word.expand(doubtful.shape)[doubtful] for word in phase])
    which = doubtful.nonzero()[:, :1].mT  # 0: cos, 1: sin
    # A position may stand in every row of a batch.
    asked, each = torch.cat((words, which)).unique(dim=1, return_inverse=True)
    values = [exact_value(_joined(words), bool(sine), factor) for *words, sine in asked.mT.tolist()]
    return torch.tensor(values, dtype=torch.float64, device=doubtful.device)[each]


def _joined(words: list[int]) -> int:
    high, middle, low = (word % 2**WORD for word in words)
    return (high << (2 * WORD)) + (middle << WORD) + low


def exact_value(phase: int, sine: bool, factor: float = 1.0) -> float:
    """factor · cos or factor · sin of a fraction of a turn, rounded to odd.

    To odd: where the value is no float64, of its two neighbors the one that ends in 1. What is
    rounded from it to a narrower format is as if it were rounded from the whole value.

    Args:
        phase: In units of 2^-192 of a turn.
        sine: Which of both.
        factor: What it is multiplied with.

    Example:
        >>> exact_value(1 << 189, sine=True)  # an eighth of a turn
        0.7071067811865476
    """
    quarters = ((phase >> (TURN_BITS - 3)) + 1) >> 1  # to the nearest, 0 … 4
    rest, quadrant = phase - (quarters << (TURN_BITS - 2)), quarters % 4
    across = bool(quadrant & 1) != sine
    size = _series((abs(rest) * WHOLE) >> TURN_BITS, odd=across)
    minus = quadrant >= 2 if sine else quadrant in (1, 2)
    minus ^= across and rest < 0
    numerator, denominator = factor.as_integer_ratio()
    product = size * abs(numerator)
    shift = max(product.bit_length() - 53, 0)
    digits = product >> shift
    if rest or digits << shift != product:  # a sum that was cut, or a product that is
        digits |= 1
    value = ldexp(digits, shift - BITS - denominator.bit_length() + 1)
    return -value if minus != (factor < 0) else value


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
