"""Schedules as frequencies, as Python and in words, and the bases that frequencies mean."""

from dataclasses import fields
from functools import cache
from math import exp, log, pi

import torch
from torch import Tensor

from posenc.frequencies import (
    NTK,
    FromCheckpoint,
    Geometric,
    Linear,
    Llama3,
    Proportional,
    Schedule,
    YaRN,
)

KNOWN = (
    10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 150_000.0, 160_000.0, 1_000.0, 5_000.0,
    5_000_000.0, 8_000_000.0, 10_000_000.0, 2_000_000.0, 50_000.0, 75_000_000.0, 250_000.0,
    640_000.0, 12_000_000.0, 11_158_840.0, 100.0, 10.0,
)  # fmt: skip
"""Bases in public use, from most to least usual; 100 and 10 belong to grids."""

OF_GRIDS = (100.0, 10.0)

TOLERANCE = 2e-6
"""Radians per position that a measurement at some tens of positions leaves open."""


@cache
def radians(schedule: Schedule) -> Tensor:
    """The frequencies of a schedule that are not zero, float64."""
    return torch.tensor(
        [2 * pi / w for w in schedule.wavelengths() if w != float("inf")], dtype=torch.float64
    )


def that_turn(schedule: Schedule) -> Schedule:
    """The schedule of those of its frequencies that are not zero."""
    if float("inf") not in schedule.wavelengths():
        return schedule
    return FromCheckpoint(radians(schedule).tolist())


def fits(ours: Tensor, omegas: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether measured frequencies are these."""
    if len(ours) != len(omegas):
        return False
    return bool(((ours - omegas).abs() < tolerance + 2e-6 * ours).all())


def nearest(base: float, tolerance: float = 2e-3) -> float | None:
    """The known base that a measured one means, within a share of its logarithm."""
    if base <= 0:
        return None
    return next((b for b in KNOWN if abs(log(base) - log(b)) < tolerance * log(b)), None)


def shortest(base: float, tolerance: float = 1e-6) -> float:
    """The number of fewest digits that a measured base may be."""
    digits = range(1, 18)
    return next(b for d in digits if abs((b := float(f"{base:.{d}g}")) / base - 1) <= tolerance)


def is_round(base: float) -> bool:
    """Whether a base has three digits or fewer, as those have that somebody chose."""
    return base == float(f"{base:.3g}")


def base_of(width: int, omegas: Tensor) -> float | None:
    """The base whose powers these are, by least squares.

    Angles are measured to one error, so that logarithms of slow frequencies say less.
    """
    shares = 2 * torch.arange(len(omegas), dtype=torch.float64) / width
    moving = (omegas > 1e-9) & (shares > 0)
    if not moving.any():
        return None
    omegas, shares = omegas[moving], shares[moving]
    weights = omegas.square() * shares
    return exp(-float((weights * omegas.log()).sum() / (weights * shares).sum()))


def describe(schedule: Schedule) -> str:
    """A schedule in words."""
    match schedule:
        case Geometric():
            base = float(schedule.base)
            return f"base {base:,.10g}" if base >= 1 else f"base 1/{shortest(1 / base):,.10g}"
        case Linear():
            return f"{describe(schedule.of)}, linear scaling by {float(schedule.factor):g}"
        case Llama3():
            said = f"Llama 3 scaling by {float(schedule.factor):g} from {schedule.trained_length:,}"
            return f"{describe(schedule.of)}, {said}"
        case YaRN():
            borders = "" if schedule.truncate else ", borders not rounded"
            said = f"YaRN by {float(schedule.factor):g} from {schedule.trained_length:,}{borders}"
            return f"{describe(schedule.of)}, {said}"
        case NTK():
            return f"{describe(schedule.of)}, NTK scaling by {float(schedule.factor):g}"
        case Proportional():
            said = f"{schedule.fraction:g} of the pairs turn (proportional)"
            return f"base {schedule.base:,.10g}, {said}"
    return repr(schedule)


def without_defaults(schedule: Schedule) -> str:
    """A schedule as Python, without what it would have unsaid."""
    said = []
    for each in fields(schedule):  # type: ignore[arg-type]
        value = getattr(schedule, each.name)
        if value == each.default:
            continue
        text = without_defaults(value) if isinstance(value, Schedule) else repr(value)
        first = each.name in ("of", "dim", "factor")
        said.append(text if first else f"{each.name}={text}")
    return f"{type(schedule).__name__}({', '.join(said)})"
