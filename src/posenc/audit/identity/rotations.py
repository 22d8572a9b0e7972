"""Which schedule a rotation of queries and keys follows, and what slipped in it."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from math import exp, isfinite, pi

import torch
from torch import Tensor

from posenc.audit.identity.bases import KNOWN, OF_GRIDS, is_round, nearest, shortest
from posenc.audit.identity.recipes import of_rotary
from posenc.audit.identity.structures import Structure
from posenc.encodings.queries_keys import Rotary
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
from posenc.numerics.pairing import Rotated


@dataclass(frozen=True)
class Rotation:
    """A fitted rotation.

    Attributes:
        structure: Of the subject.
        schedule: Ours, whose frequencies it has.
        named: The schedule in words.
        factor: The attention factor that belongs to it.
        unusual: Whether the base is one that nobody publishes.
        slip: What slipped in the exponent, in words; empty if nothing did.
        rounded: The dtype in which its frequencies are kept, if that shows.
        missing: Pairs of the schedule that never turn, by index.
        whole: The schedule with those of its pairs that do not turn by design.
    """

    structure: Structure
    schedule: Schedule
    named: str
    factor: float = 1.0
    unusual: bool = False
    slip: str = ""
    rounded: str = ""
    missing: tuple[int, ...] = ()
    whole: Schedule | None = None

    def exact(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Our cosines and sines of the pairs that turn, float64, without the attention factor.

        Positions are counted from where the subject begins.
        """
        begin, phases = self.structure.begin, self.structure.sense * self.structure.phases
        table = Rotary(self.schedule).table(positions + (begin or 0), dtype=torch.float64)
        table = table / self.schedule.attention_factor
        kept = [i for i in range(table.shape[-1]) if i not in self.missing]
        cos, sin = table[..., kept].unbind(-2)
        if begin is None:
            a, b = phases.cos(), phases.sin()
            return cos * a - sin * b, sin * a + cos * b
        return cos, sin

    @property
    def ours(self) -> str:
        """Ours that it equals, as Python: a recipe where there is one."""
        shape, schedule = self.structure, self.whole or self.schedule
        said = [without_defaults(schedule)]
        if shape.pairing == "other" or 2 * len(schedule.wavelengths()) != shape.width:
            return f"posenc.Rotary({said[0]})"
        dim = shape.width if shape.place == "between" else shape.dim  # ours of these channels alone
        rotated: Rotated = "suffix" if shape.place == "suffix" else "prefix"
        recipe = of_rotary(Rotary(schedule, head_dim=dim, pairing=shape.pairing, rotated=rotated))
        if recipe and not self.missing and dim == shape.dim:
            return recipe
        said += [f"head_dim={dim}"] if dim != shape.width else []
        said += [f"pairing={shape.pairing!r}"] if shape.pairing != "half" else []
        said += [f"rotated={rotated!r}"] if rotated != "prefix" else []
        return f"posenc.Rotary({', '.join(said)})"

    @property
    def said(self) -> str:
        """One line."""
        shape = self.structure
        width = f"{shape.width} of {shape.dim} channels, " if shape.width != shape.dim else ""
        if shape.place == "between":
            width = f"channels {shape.start} to {shape.start + shape.width - 1} of {shape.dim}, "
        where = "the last " if width and shape.place == "suffix" else ""
        return f"a rotary encoding, {where}{width}{shape.pairing} pairing, {self.named}"


def radians(schedule: Schedule) -> Tensor:
    """The frequencies of a schedule, float64."""
    return torch.tensor([2 * pi / w for w in schedule.wavelengths()], dtype=torch.float64)


def identify(
    shape: Structure, expected: Schedule | None = None, *, coarse: bool = False
) -> Rotation | None:
    """The schedule that a structure has, if it is one that is known.

    Args:
        shape: The structure.
        expected: A schedule to try first.
        coarse: Whether frequencies were measured from numbers of 16 bits.
    """
    if not shape.firsts or shape.odd:
        return None
    omegas = shape.speeds
    if expected is not None and _fits(expected, omegas):
        moving, factor = that_turn(expected), expected.attention_factor
        return Rotation(shape, moving, describe(expected), factor, whole=expected)
    if coarse:
        return _roughly(shape, omegas)
    for found in _candidates(shape, omegas):
        if _fits(found.schedule, omegas):
            return found
    return _rounded(shape, omegas) or _missing(shape, omegas) or _grown(shape)


def _roughly(shape: Structure, omegas: Tensor) -> Rotation | None:
    """The plain schedule that these are to 16 bits."""
    for base in KNOWN:
        if _fits(Geometric(shape.width, base), omegas, 1e-3):
            return Rotation(shape, Geometric(shape.width, base), f"base {base:,.10g}")
    return None


def _grown(shape: Structure) -> Rotation | None:
    """Frequencies that grow with the pair, as far as they can be told from their remainders."""
    for base in KNOWN[:3]:
        plain = Geometric(shape.width, 1 / base)
        turned = torch.remainder(radians(plain) + pi, 2 * pi) - pi
        if len(turned) == len(shape.frequencies):
            apart = torch.remainder(turned - shape.frequencies + pi, 2 * pi) - pi
            # float32 keeps only the fastest angles of the first pairs
            if bool((apart.abs()[: len(apart) // 2] < 1e-3).all()):
                return Rotation(shape, plain, f"base 1/{base:,.10g}", slip="+2i instead of −2i")
    return None


TOLERANCE = 2e-6
"""Radians per position that a measurement at some tens of positions leaves open."""


def _fits(schedule: Schedule, omegas: Tensor, tolerance: float = TOLERANCE) -> bool:
    return fits(radians(that_turn(schedule)), omegas, tolerance)


def fits(ours: Tensor, omegas: Tensor, tolerance: float = TOLERANCE) -> bool:
    """Whether measured frequencies are these."""
    if len(ours) != len(omegas):
        return False
    return bool(((ours - omegas).abs() < tolerance + 2e-6 * ours).all())


def that_turn(schedule: Schedule) -> Schedule:
    """Those of its frequencies that are not zero."""
    lengths = schedule.wavelengths()
    if float("inf") not in lengths:
        return schedule
    return FromCheckpoint([2 * pi / w for w in lengths if w != float("inf")])


def describe(schedule: Schedule) -> str:
    """A schedule in words.

    Example:
        >>> describe(Llama3(Geometric(128, 500_000.0), 8.0))
        'base 500,000, Llama 3 scaling by 8 from 8,192'
    """
    match schedule:
        case Geometric():
            return f"base {schedule.base:,.10g}"
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
    """A schedule as Python, without what it would have unsaid.

    Example:
        >>> without_defaults(YaRN(Geometric(64), 4.0, 2048))
        'YaRN(Geometric(64), 4.0, trained_length=2048)'
    """
    said = []
    for each in fields(schedule):  # type: ignore[arg-type]
        value = getattr(schedule, each.name)
        if value == each.default:
            continue
        text = without_defaults(value) if isinstance(value, Schedule) else repr(value)
        first = each.name in ("of", "dim", "factor")
        said.append(text if first else f"{each.name}={text}")
    return f"{type(schedule).__name__}({', '.join(said)})"


def _candidates(shape: Structure, omegas: Tensor) -> Iterator[Rotation]:
    """Schedules that the first, second and last frequencies suggest."""
    width, above_zero = shape.width, omegas[omegas > 1e-12]
    if len(above_zero) < 2:
        for base in KNOWN[:3]:
            yield Rotation(shape, Geometric(width, base), f"base {base:,.10g}")
        return
    raw = (above_zero[0] / above_zero[1]).item() ** (width / 2)
    stretch = 1 / above_zero[0].item()
    if abs(stretch - 1) > 1e-4:
        whole = round(stretch, 3)
        if raw > 1 and abs(2 * whole - round(2 * whole)) <= 1e-3 and 1 < whole <= 1024:
            for plain in plain_schedules(width, omegas * whole):
                linear = Linear(plain, whole)
                yield Rotation(shape, linear, describe(linear), unusual=plain.base not in KNOWN)
        return
    if len(omegas) * 2 < width:
        yield from _proportional(shape, width, omegas)
    yield from _geometric(shape, width, raw)
    yield from _stretched(shape, width, omegas)


def _geometric(shape: Structure, width: int, raw: float) -> Iterator[Rotation]:
    known = nearest(raw)
    if known is not None:
        slip = _slipped(shape, width, known) if known in OF_SLIPS else ""
        yield Rotation(shape, Geometric(width, known), f"base {known:,.10g}", slip=slip)
    fitted = _measured_geometric(shape, width, raw)
    if known is None and raw < 1:
        sign = nearest(1 / raw)
        if sign:
            yield Rotation(shape, _measured_geometric(shape, width, 1 / sign), f"base "
                                        f"1/{sign:,.10g}",
                           slip="+2i instead of −2i")  # fmt: skip
    base = float(fitted.base)
    named = f"base {base:,.10g}"
    if words := _slipped(shape, width, base):
        yield Rotation(shape, fitted, named, slip=words)
    unusual = Rotation(shape, fitted, named, unusual=True)
    if is_round(base):
        yield unusual
    yield from _ntk(shape, width, base)
    yield unusual


OF_SLIPS = (1_000.0, *OF_GRIDS)
"""Bases in use that slips make of larger ones, too."""


def _slipped(shape: Structure, width: int, base: float) -> str:
    """What slipped in the exponent, if it makes this base of a usual one; empty if nothing does."""
    half = width // 2
    slips = (
        ("i instead of 2i", base**2),
        ("4i instead of 2i", base**0.5),
        (f"i / {half - 1} instead of i / {half}", base ** ((half - 1) / half)),
        (f"the head's width {shape.dim} instead of the rotated {width}",
         base ** (shape.dim / width) if width != shape.dim else 0.0),
    )  # fmt: skip
    return next(
        (words for words, meant in slips if any(abs(meant / b - 1) < 1e-5 for b in KNOWN[:3])), ""
    )


def _measured_geometric(shape: Structure, width: int, raw: float) -> Geometric:
    """A geometric schedule of the base that all pairs together mean."""
    omegas = shape.speeds
    ours = Geometric(width, shortest(_base_of(width, omegas) or raw))
    return ours if _fits(ours, omegas) else Geometric(width, raw)


def _base_of(width: int, omegas: Tensor) -> float | None:
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


def plain_schedules(width: int, omegas: Tensor) -> Iterator[Geometric]:
    """Geometric schedules that may be meant: of a base in use, of the shortest number, of any."""
    raw = (omegas[0] / omegas[1]).item() ** (width / 2)
    measured = _base_of(width, omegas) or raw
    bases = (nearest(raw), shortest(measured), measured)
    yield from (Geometric(width, base) for base in dict.fromkeys(bases) if base and isfinite(base))


def stretched(shape: Structure) -> Rotation | None:
    """Powers of a base times any angle a step, as where coordinates go from −1 to 1."""
    omegas = shape.speeds
    if len(omegas) < 3 or shape.odd or float(omegas.min()) <= 0:
        return None
    for plain in plain_schedules(shape.width, omegas / omegas[0]):
        schedule = Linear(plain, 1 / float(omegas[0]))
        rates = radians(schedule)
        if len(rates) == len(omegas) and bool(((rates - omegas).abs() < 1e-3 * omegas).all()):
            named = f"base {plain.base:,.10g}, {float(omegas[0]):.4g} radians a step"
            return Rotation(shape, schedule, named)
    return None


def _ntk(shape: Structure, width: int, measured: float) -> Iterator[Rotation]:
    if width <= 2:
        return
    for base in KNOWN[:3]:
        factor = (measured / base) ** ((width - 2) / width) if measured > base else 0
        near = round(factor * 2) / 2
        if 1 < near <= 64 and abs(factor - near) < 1e-5 * near:
            scaled = NTK(Geometric(width, base), near)
            yield Rotation(shape, scaled, describe(scaled))


def _proportional(shape: Structure, width: int, omegas: Tensor) -> Iterator[Rotation]:
    """The first pairs turn as in the whole width, the others not at all."""
    share = len(omegas) / (width / 2)
    if any(abs(share - s) < 1e-6 for s in (0.125, 0.25, 0.5, 0.75)):
        for plain in plain_schedules(width, omegas):
            schedule = Proportional(width, share, plain.base)
            yield Rotation(shape, that_turn(schedule), describe(schedule), whole=schedule)


def _stretched(shape: Structure, width: int, omegas: Tensor) -> Iterator[Rotation]:
    """Llama 3 and YaRN leave the fast pairs alone and divide the slow ones by a factor."""
    for base in (500_000.0, 10_000.0, 1_000_000.0, 150_000.0, 5_000_000.0, 50_000.0):
        plain = Geometric(width, base)
        ours = radians(plain)
        if len(ours) != len(omegas) or abs(omegas[1] / ours[1] - 1) > 1e-4:
            continue
        for factor in _factors(ours, omegas, shape.size):
            for schedule in _stretches(plain, factor):
                named = describe(schedule)
                yield Rotation(shape, schedule, named, schedule.attention_factor)


def _factors(ours: Tensor, omegas: Tensor, size: float) -> list[float]:
    """By how much the slow pairs are divided: measured, and as the size of the table says."""
    found = []
    ratio = float(ours[-1] / omegas[-1]) if omegas[-1] > 1e-8 else 0.0
    found += [f for f in (2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0) if abs(ratio / f - 1) < 0.3]
    if size > 1.001:
        found.append(round(exp((size - 1) / 0.1), 1))
    return list(dict.fromkeys(f for f in found if f > 1))


@cache
def _stretches(plain: Geometric, factor: float) -> tuple[Schedule, ...]:
    lengths = (8192, 4096, 32768, 2048, 131072, 16384)
    llama = tuple(Llama3(plain, factor, trained_length=n) for n in lengths[:3])
    yarns = tuple(YaRN(plain, factor, n, truncate=t) for n in lengths for t in (True, False))
    return llama + yarns


DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def _rounded(shape: Structure, omegas: Tensor) -> Rotation | None:
    """The plain schedule whose frequencies, rounded to 16 bits, these are."""
    for base in KNOWN[:10]:
        plain = Geometric(shape.width, base)
        ours = radians(plain)
        if len(ours) != len(omegas):
            continue
        for name, dtype in DTYPES.items():
            close = (ours.to(dtype).double() - omegas).abs() < TOLERANCE + 2e-6 * ours
            if close.all():
                return Rotation(shape, plain, f"base {base:,.10g}", rounded=name)
    return None


def _missing(shape: Structure, omegas: Tensor) -> Rotation | None:
    """The plain schedule of which these are all but some pairs."""
    for width, start in ((shape.width, shape.start), (shape.dim, 0)):
        stride = 2 if shape.pairing == "interleaved" else 1
        index = [(first - start) // stride for first in shape.firsts]
        if len(index) == width // 2 or max(index) >= width // 2:
            continue
        for base in KNOWN[:10]:
            plain = Geometric(width, base)
            if bool(((radians(plain)[index] - omegas).abs() < TOLERANCE).all()):
                missing = tuple(i for i in range(width // 2) if i not in index)
                return Rotation(shape, plain, f"base {base:,.10g}", missing=missing)
    return None
