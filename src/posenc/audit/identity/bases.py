"""Bases in public use, and the one that given frequencies mean."""

from math import log

KNOWN = (
    10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 150_000.0, 160_000.0, 1_000.0, 5_000.0,
    5_000_000.0, 8_000_000.0, 10_000_000.0, 2_000_000.0, 50_000.0, 75_000_000.0, 250_000.0,
    640_000.0,    12_000_000.0, 11_158_840.0, 100.0, 10.0,
)  # fmt: skip
"""From most to least usual; 100 and 10 belong to grids."""

OF_GRIDS = (100.0, 10.0)


def nearest(base: float, tolerance: float = 2e-3) -> float | None:
    """The known base that a measured one means, within a share of its logarithm.

    Example:
        >>> nearest(500_100.0), nearest(3_000.0)
        (500000.0, None)
    """
    if base <= 0:
        return None
    return next((b for b in KNOWN if abs(log(base) - log(b)) < tolerance * log(b)), None)


def shortest(base: float, tolerance: float = 1e-6) -> float:
    """The number of fewest digits that a measured base may be.

    Example:
        >>> shortest(12345.6781), shortest(80_000_001.0)
        (12345.68, 80000000.0)
    """
    digits = range(1, 18)
    return next(b for d in digits if abs((b := float(f"{base:.{d}g}")) / base - 1) <= tolerance)


def is_round(base: float) -> bool:
    """Whether a base has three digits or fewer, as those have that somebody chose.

    Example:
        >>> is_round(80_000_000.0), is_round(41_829.0)
        (True, False)
    """
    return base == float(f"{base:.3g}")
