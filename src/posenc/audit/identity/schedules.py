"""Schedules as frequencies, as Python and in words, and the bases that frequencies mean."""

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from math import inf, log, pi

import torch
from torch import Tensor

from posenc.frequencies import NTK, Geometric, Linear, Llama3, Proportional, Schedule, YaRN

KNOWN = (
    10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 150_000.0, 160_000.0, 1_000.0, 5_000.0,
    5_000_000.0, 8_000_000.0, 10_000_000.0, 2_000_000.0, 50_000.0, 75_000_000.0, 250_000.0,
    640_000.0, 12_000_000.0, 11_158_840.0, 100.0, 10.0,
)  # fmt: skip
"""Bases in public use, from most to least usual; 100 and 10 belong to grids."""

USUAL = KNOWN[:3]
OF_GRIDS = (100.0, 10.0)

TOLERANCE = 2e-6
"""Radians per position that a measurement at some tens of positions leaves open."""


@cache
def radians(schedule: Schedule) -> Tensor:
    """The frequencies of a schedule that are not zero, float64."""
    rates = 2 * pi / torch.tensor(schedule.wavelengths(), dtype=torch.float64)
    return rates[rates != 0]


def fits(ours: Tensor, omegas: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether measured frequencies are these, up to whole turns."""
    if len(ours) != len(omegas):
        return False
    apart = torch.remainder(ours - omegas + pi, 2 * pi) - pi
    return bool((apart.abs() < tolerance + 2e-6 * ours.abs()).all())


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


def slipped(base: float, width: int, dim: int = 0, usual: Sequence[float] = USUAL) -> str:
    """What slipped in the exponent, if it makes this base of a usual one; empty if nothing does.

    ``dim`` is that of a head of which ``width`` channels are encoded.
    """
    half = width // 2
    slips = {
        "i instead of 2i": 2.0,
        "4i instead of 2i": 0.5,
        "log10 in place of log": log(10),
        f"i / {half - 1} instead of i / {half}": (half - 1) / half,
        f"the head's width {dim} instead of the rotated {width}": dim / width,
    }
    for words, share in slips.items():  # base = meant^(1 / share)
        if share != 1 and any(abs(share * log(base) - log(meant)) < 1e-5 for meant in usual):
            return words
    return ""


def plain_schedules(width: int, omegas: Tensor) -> list[Geometric]:
    """Geometric schedules that may be meant: of a base in use, of the shortest number, of any.

    The base is that of least squares. Angles are measured to one error, so that logarithms of slow
    frequencies say less.
    """
    shares = 2 * torch.arange(len(omegas), dtype=torch.float64) / width
    moving = (omegas > 1e-9) & (shares > 0)
    omegas, shares = omegas[moving], shares[moving]
    weights = omegas.square() * shares
    measured = (-(weights * omegas.log()).sum() / (weights * shares).sum()).exp().item()
    if not 0 < measured < inf:
        return []
    bases = nearest(measured), shortest(measured), measured
    return [Geometric(width, base) for base in dict.fromkeys(bases) if base]


def describe(schedule: Schedule) -> str:
    """A schedule in words."""
    match schedule:
        case Geometric():
            base = float(schedule.base)
            return f"base {base:,.10g}" if base >= 1 else f"base 1/{shortest(1 / base):,.10g}"
        case Proportional(width, share, base):
            return f"{describe(Geometric(width, base))}, {share:g} of the pairs turn (proportional)"
        case Linear(of, factor) if float(factor) != float(f"{float(factor):.4g}"):
            said = f"{1 / float(factor):.4g} radians a step"
        case Linear(of, factor):
            said = f"linear scaling by {float(factor):g}"
        case NTK(of, factor):
            said = f"NTK scaling by {float(factor):g}"
        case Llama3(of, factor, trained_length=length):
            said = f"Llama 3 scaling by {float(factor):g} from {length:,}"
        case YaRN(of, factor, length):
            borders = "" if schedule.truncate else ", borders not rounded"
            said = f"YaRN by {float(factor):g} from {length:,}{borders}"
        case _:
            return repr(schedule)
    return f"{describe(of)}, {said}"


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
