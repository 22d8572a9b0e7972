"""The oracle of these tests: mpmath for every value, Fractions for every rounding."""

import random
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import torch
from mpmath import mp, mpf

DIGITS = 130
"""Enough to take 2^64 radians modulo a turn and keep 100 digits of what is left."""

FORMATS = {  # dtype: bits of the significand, least exponent of a normal number
    torch.float64: (53, -1022),
    torch.float32: (24, -126),
    torch.bfloat16: (8, -126),
    torch.float16: (11, -14),
}


class Oracle:
    """cos and sin to 130 digits, and what each float format makes of them."""

    def frequency(self, base: float, numerator: int, denominator: int) -> mpf:
        """base^(−numerator / denominator), by way of no code of the package."""
        with mp.workdps(DIGITS):
            return mpf(base) ** (-mpf(numerator) / denominator)

    def frequencies(self, base: float, dim: int) -> list[mpf]:
        """base^(−2i/dim) for i = 0 … dim/2 − 1."""
        return [self.frequency(base, i, dim) for i in range(0, dim, 2)]

    def cos_sin(self, position: int, frequency: mpf) -> tuple[mpf, mpf]:
        with mp.workdps(DIGITS):
            return mp.cos_sin(position * frequency)

    def unit(self, truth: mpf, dtype: torch.dtype) -> Fraction:
        """The unit in the last place of ``dtype`` at ``truth``."""
        bits, least = FORMATS[dtype]
        _, mantissa, exponent, length = truth._mpf_
        top = exponent + length - 1 if mantissa else least
        return Fraction(2) ** (max(top, least) - bits + 1)

    def ulps(self, got: float, truth: mpf, dtype: torch.dtype) -> float:
        """|got − truth| in units in the last place."""
        return float(abs(Fraction(got) - fraction(truth)) / self.unit(truth, dtype))

    def nearest(self, truth: mpf, dtype: torch.dtype) -> float:
        """``truth`` rounded to nearest, ties to even, subnormals included."""
        unit = self.unit(truth, dtype)
        return float(round(fraction(truth) / unit) * unit)

    def near_multiples(self, frequency: mpf, limit: int) -> list[int]:
        """Positions p at which p·ω lies nearest to a multiple of π/2 of all that are smaller.

        They are the denominators of the convergents of ω / (π/2).
        """
        return _denominators(frequency, limit)

    def near_angle(self, frequency: mpf, angle: mpf, limit: int) -> int:
        """A position p, |p| within ``limit``, at which p·ω ≡ angle modulo 2π but for about 1/limit.

        What is left is divided greedily by the ever smaller errors of the convergents of ω / 2π.
        """
        with mp.workdps(DIGITS):
            turns = frequency / (2 * mp.pi)
            rest = angle / (2 * mp.pi)
            position = 0
            for denominator in self.near_multiples(frequency / 4, limit // 8):
                step = denominator * turns
                step -= mp.nint(step)
                count = int(mp.nint(rest / step))
                if abs(position + count * denominator) > limit:
                    break
                position += count * denominator
                rest -= count * step
            return position

    def next_to_midpoints(
        self, dtype: torch.dtype, function: str, count: int, *, seed: int, limit: int = 2**62
    ) -> Iterator[tuple[int, int, mpf]]:
        """Positions, columns of ``Geometric(64)``, and cos or sin there: next to where rounding
        turns.

        The values are no random ones: they are nearer to the middle between two neighbors of
        ``dtype`` than a float64 can tell, on either side of it.
        """
        draw, frequencies = random.Random(seed), self.frequencies(1e4, 64)
        while count:
            column = draw.randrange(32)
            unit = self.unit(mpf(2) ** -draw.randint(1, 3), dtype)
            steps = draw.randrange(2 ** (FORMATS[dtype][0] - 1), 2 ** FORMATS[dtype][0])
            with mp.workdps(DIGITS):
                middle = draw.choice([-1, 1]) * (mpf(steps) + 0.5) * mpf(unit.numerator)
                middle /= unit.denominator
                angle = mp.acos(middle) if function == "cos" else mp.asin(middle)
                position = self.near_angle(frequencies[column], angle, limit)
                truth = self.cos_sin(position, frequencies[column])[function == "sin"]
            if abs(truth - middle) < mpf(2) ** -55:
                yield position, column, truth
                count -= 1


@cache
def _denominators(frequency: mpf, limit: int) -> list[int]:
    with mp.workdps(DIGITS):
        rest = frequency * 2 / mp.pi
        before, now, found = 1, 0, []
        while True:
            whole = int(mp.floor(rest))
            before, now = now, whole * now + before
            if now > limit:
                return found
            found.append(now)
            rest = 1 / (rest - whole)


def fraction(value: mpf) -> Fraction:
    sign, mantissa, exponent, _ = value._mpf_
    return (-1) ** sign * int(mantissa) * Fraction(2) ** exponent
