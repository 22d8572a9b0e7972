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


def rounded(base: float) -> float:
    """A measured base to the digits that a measurement has.

    Example:
        >>> rounded(12345.678)
        12350.0
    """
    return float(f"{base:.4g}")
