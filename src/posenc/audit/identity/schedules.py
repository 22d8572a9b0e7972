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

SCALINGS = {
    Linear: "linear scaling", NTK: "NTK scaling", Llama3: "Llama 3 scaling", YaRN: "YaRN"
}  # fmt: skip

TOLERANCE = 2e-6  # radians per position that a measurement at some tens of positions leaves open


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


def nearest(base: float) -> float | None:
    """The known base that a measured one means, within a share of its logarithm."""
    return next((b for b in KNOWN if abs(log(base) - log(b)) < 2e-3 * log(b)), None)


def shortest(base: float) -> float:
    """The number of fewest digits that a measured base may be."""
    digits = range(1, 18)
    return next(b for d in digits if abs((b := float(f"{base:.{d}g}")) / base - 1) <= 1e-6)


def slipped(base: float, width: int, dim: int = 0, usual: Sequence[float] = USUAL) -> str:
    """What slipped in the exponent, in words, if it makes this base of a usual one."""
    half = width // 2
    slips = {
        "i instead of 2i": 2.0,
        "4i instead of 2i": 0.5,
        "log10 in place of log": log(10),
        f"i / {half - 1} instead of i / {half}": (half - 1) / max(half, 1),
        f"the head's width {dim} instead of the rotated {width}": dim / width,
    }
    for words, share in slips.items():  # base = meant^(1 / share)
        if share != 1 and any(abs(share * log(base) - log(meant)) < 1e-5 for meant in usual):
            return words
    return ""


def plain_schedules(width: int, omegas: Tensor) -> list[Geometric]:
    """The geometric schedules that fit best: of a base in use, of the shortest number, of any."""
    shares = 2 * torch.arange(len(omegas), dtype=torch.float64) / width
    moving = (omegas > 1e-9) & (shares > 0)
    omegas, shares = omegas[moving], shares[moving]
    weights = omegas.square() * shares  # angles have one error: logarithms of slow ones say less
    measured = (-(weights * omegas.log()).sum() / (weights * shares).sum()).exp().item()
    if not 0 < measured < inf:
        return []
    bases = nearest(measured), shortest(measured), measured
    return [Geometric(width, base) for base in dict.fromkeys(bases) if base]


def describe(schedule: Schedule) -> str:
    """A schedule in words."""
    if isinstance(schedule, Geometric):
        base = float(schedule.base)
        return f"base {base:,.10g}" if base >= 1 else f"base 1/{shortest(1 / base):,.10g}"
    if isinstance(schedule, Proportional):
        plain = describe(Geometric(schedule.dim, schedule.base))
        return f"{plain}, {schedule.fraction:g} of the pairs turn (proportional)"
    if not isinstance(schedule, Linear | NTK | Llama3 | YaRN):
        return repr(schedule)
    factor, length = float(schedule.factor), getattr(schedule, "trained_length", None)
    said = f"{SCALINGS[type(schedule)]} by {factor:g}" + (f" from {length:,}" if length else "")
    said += ", borders not rounded" * (not getattr(schedule, "truncate", True))
    if isinstance(schedule, Linear) and factor != float(f"{factor:.4g}"):
        said = f"{1 / factor:.4g} radians a step"
    return f"{describe(schedule.of)}, {said}"


def without_defaults(schedule: Schedule) -> str:
    """A schedule as Python, without what it would have unsaid."""
    said = []
    for each in fields(schedule):  # type: ignore[arg-type]
        value = getattr(schedule, each.name)
        text = without_defaults(value) if isinstance(value, Schedule) else repr(value)
        if value != each.default:
            said.append(text if each.name in ("of", "dim", "factor") else f"{each.name}={text}")
    return f"{type(schedule).__name__}({', '.join(said)})"
