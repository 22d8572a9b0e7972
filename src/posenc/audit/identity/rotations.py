"""Which schedule a rotation of queries and keys follows, and what slipped in it.

Frequencies that were measured are held against a table of references: schedules with known bases
and known slips, and the base that fits all pairs best.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import exp, isfinite, log, pi

import torch
from torch import Tensor

from posenc.audit.identity.recipes import of_rotary
from posenc.audit.identity.schedules import (
    KNOWN,
    OF_GRIDS,
    base_of,
    describe,
    fits,
    is_round,
    nearest,
    radians,
    shortest,
    that_turn,
    without_defaults,
)
from posenc.audit.identity.structures import Structure
from posenc.encodings.queries_keys import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, Proportional, Schedule, YaRN
from posenc.numerics.pairing import Rotated

OF_SLIPS = (1_000.0, *OF_GRIDS)
"""Bases in use that slips make of larger ones, too."""

USUAL = KNOWN[:3]
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
STRETCHED = (500_000.0, 10_000.0, 1_000_000.0, 150_000.0, 5_000_000.0, 50_000.0)
LENGTHS = (8192, 4096, 32768, 2048, 131072, 16384)
FACTORS = (2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 64.0)


@dataclass(frozen=True)
class Rotation:
    """A rotation by a schedule."""

    structure: Structure  # of the subject
    schedule: Schedule  # ours, whose frequencies it has
    unusual: bool = False  # whether the base is one that nobody publishes
    slip: str = ""  # what slipped in the exponent, in words
    rounded: str = ""  # the dtype in which its frequencies are kept, if that shows
    missing: tuple[int, ...] = ()  # pairs of the schedule that never turn, by index
    said_otherwise: str = ""  # the schedule in words, where it has others

    @property
    def named(self) -> str:
        """The schedule in words."""
        return self.said_otherwise or describe(self.schedule)

    @property
    def factor(self) -> float:
        """The attention factor that belongs to it."""
        return self.schedule.attention_factor

    @property
    def rates(self) -> Tensor:
        """The frequencies of the pairs that turn."""
        rates = radians(self.schedule)
        rates = rates.to(DTYPES[self.rounded]).double() if self.rounded else rates
        return rates[[i for i in range(len(rates)) if i not in self.missing]]

    def exact(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Our cosines and sines of the pairs that turn, float64, without the attention factor.

        Positions are counted from where the subject begins.
        """
        begin, phases = self.structure.begin, self.structure.sense * self.structure.phases
        ours = Rotary(that_turn(self.schedule))
        table = ours.table(positions + (begin or 0), dtype=torch.float64)
        table = table / ours.frequencies.attention_factor
        kept = [i for i in range(table.shape[-1]) if i not in self.missing]
        cos, sin = table[..., kept].unbind(-2)
        if begin is None:
            a, b = phases.cos(), phases.sin()
            return cos * a - sin * b, sin * a + cos * b
        return cos, sin

    @property
    def ours(self) -> str:
        """Ours that it equals, as Python: a recipe where there is one."""
        shape, schedule = self.structure, self.schedule
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


def identify(
    shape: Structure, expected: Schedule | None = None, *, coarse: bool = False
) -> Rotation | None:
    """The first reference whose frequencies a structure has, ``expected`` before all others.

    ``coarse`` says that frequencies were measured from numbers of 16 bits.
    """
    if not shape.firsts or shape.odd:
        return None
    if expected is not None and fits(radians(expected), shape.speeds):
        return Rotation(shape, expected)
    if coarse:
        plain = (Rotation(shape, Geometric(shape.width, base)) for base in KNOWN)
        return next((each for each in plain if fits(each.rates, shape.speeds, 1e-3)), None)
    found = (each for each in references(shape) if fits(each.rates, shape.speeds))
    return next(found, None) or _grown(shape)


def references(shape: Structure) -> Iterator[Rotation]:
    """Schedules that frequencies may be, most usual first."""
    omegas, width = shape.speeds, shape.width
    moving = omegas[omegas > 1e-12]
    if len(moving) < 2:
        yield from (Rotation(shape, Geometric(width, base)) for base in USUAL)
    elif abs(1 / float(moving[0]) - 1) > 1e-4:
        yield from _linear(shape, 1 / float(moving[0]))
    else:
        if len(omegas) * 2 < width:
            yield from _proportional(shape)
        yield from _geometric(shape, (moving[0] / moving[1]).item() ** (width / 2))
        yield from _stretched(shape)
    for base, dtype in product(KNOWN[:10], DTYPES):
        yield Rotation(shape, Geometric(width, base), rounded=dtype)
    yield from _missing(shape)


def _linear(shape: Structure, stretch: float) -> Iterator[Rotation]:
    """Positions divided by a whole or half factor."""
    factor = round(stretch, 3)
    if abs(2 * factor - round(2 * factor)) <= 1e-3 and 1 < factor <= 1024:
        for plain in plain_schedules(shape.width, shape.speeds * factor):
            yield Rotation(shape, Linear(plain, factor), unusual=plain.base not in KNOWN)


def _proportional(shape: Structure) -> Iterator[Rotation]:
    """The first pairs turn as in the whole width, the others not at all."""
    share = len(shape.speeds) / (shape.width / 2)
    if share in (0.125, 0.25, 0.5, 0.75):
        for plain in plain_schedules(shape.width, shape.speeds):
            yield Rotation(shape, Proportional(shape.width, share, plain.base))


def _geometric(shape: Structure, raw: float) -> Iterator[Rotation]:
    """Powers of a known base, of one that a slip makes of it, and of the one that fits best."""
    width = shape.width
    if (known := nearest(raw)) is not None:
        slip = _slipped(shape, known) if known in OF_SLIPS else ""
        yield Rotation(shape, Geometric(width, known), slip=slip)
    elif raw < 1 and (known := nearest(1 / raw)):
        yield Rotation(shape, _fitted(shape, 1 / known), slip="+2i instead of −2i")
    fitted = _fitted(shape, raw)
    if slip := _slipped(shape, float(fitted.base)):
        yield Rotation(shape, fitted, slip=slip)
    unusual = Rotation(shape, fitted, unusual=True)
    if is_round(float(fitted.base)):
        yield unusual
    for base in USUAL if width > 2 else ():
        if fitted.base > base:
            factor = (float(fitted.base) / base) ** ((width - 2) / width)
            near = round(factor * 2) / 2
            if 1 < near <= 64 and abs(factor - near) < 1e-5 * near:
                yield Rotation(shape, NTK(Geometric(width, base), near))
    yield unusual


def _slipped(shape: Structure, base: float) -> str:
    """What slipped in the exponent, if it makes this base of a usual one; empty if nothing does."""
    width, half = shape.width, shape.width // 2
    slips = {
        "i instead of 2i": base**2,
        "4i instead of 2i": base**0.5,
        "log10 in place of log": base ** log(10) if base < 1e6 else 0.0,
        f"i / {half - 1} instead of i / {half}": base ** ((half - 1) / half),
        f"the head's width {shape.dim} instead of the rotated {width}":
            base ** (shape.dim / width) if width != shape.dim else 0.0,
    }  # fmt: skip
    near = lambda meant: any(abs(meant / b - 1) < 1e-5 for b in USUAL)  # noqa: E731
    return next((words for words, meant in slips.items() if near(meant)), "")


def _fitted(shape: Structure, raw: float) -> Geometric:
    """A geometric schedule of the base that all pairs together mean."""
    ours = Geometric(shape.width, shortest(base_of(shape.width, shape.speeds) or raw))
    return ours if fits(radians(ours), shape.speeds) else Geometric(shape.width, raw)


def plain_schedules(width: int, omegas: Tensor) -> Iterator[Geometric]:
    """Geometric schedules that may be meant: of a base in use, of the shortest number, of any."""
    raw = (omegas[0] / omegas[1]).item() ** (width / 2)
    measured = base_of(width, omegas) or raw
    bases = (nearest(raw), shortest(measured), measured)
    yield from (Geometric(width, base) for base in dict.fromkeys(bases) if base and isfinite(base))


def _stretched(shape: Structure) -> Iterator[Rotation]:
    """Llama 3 and YaRN leave the fast pairs alone and divide the slow ones by a factor."""
    omegas = shape.speeds
    for plain in (Geometric(shape.width, base) for base in STRETCHED):
        ours = radians(plain)
        if len(ours) != len(omegas) or abs(omegas[1] / ours[1] - 1) > 1e-4:
            continue
        ratio = float(ours[-1] / omegas[-1]) if omegas[-1] > 1e-8 else 0.0
        factors = [f for f in FACTORS if abs(ratio / f - 1) < 0.3]
        if shape.size > 1.001:  # as the size of the table says
            factors.append(round(exp((shape.size - 1) / 0.1), 1))
        for factor in dict.fromkeys(f for f in factors if f > 1):
            for length in LENGTHS[:3]:
                yield Rotation(shape, Llama3(plain, factor, trained_length=length))
            for length, truncate in product(LENGTHS, (True, False)):
                yield Rotation(shape, YaRN(plain, factor, length, truncate=truncate))


def _missing(shape: Structure) -> Iterator[Rotation]:
    """The plain schedule of which these are all but some pairs."""
    for width, start in ((shape.width, shape.start), (shape.dim, 0)):
        stride = 2 if shape.pairing == "interleaved" else 1
        index = {(first - start) // stride for first in shape.firsts}
        missing = tuple(i for i in range(width // 2) if i not in index)
        if missing and max(index) < width // 2:
            for base in KNOWN[:10]:
                yield Rotation(shape, Geometric(width, base), missing=missing)


def _grown(shape: Structure) -> Rotation | None:
    """Frequencies that grow with the pair, as far as they can be told from their remainders."""
    for plain in (Geometric(shape.width, 1 / base) for base in USUAL):
        rates = radians(plain)
        if len(rates) == len(shape.frequencies):
            apart = torch.remainder(rates - shape.frequencies + pi, 2 * pi) - pi
            # float32 keeps only the fastest angles of the first pairs
            if bool((apart.abs()[: len(apart) // 2] < 1e-3).all()):
                return Rotation(shape, plain, slip="+2i instead of −2i")
    return None


def resembles(shape: Structure) -> str:
    """The nearest schedule, in words; empty where some pairs turn against others."""
    omegas = shape.speeds
    if not len(omegas) or float(omegas.min()) <= 0:
        return ""
    plain = [Rotation(shape, Geometric(shape.width, base)) for base in STRETCHED]
    known = [each for each in (*plain, *_stretched(shape)) if len(each.rates) == len(omegas)]
    for each in plain if known else ():
        stretch = each.rates / omegas
        if abs(stretch[-1] - 1) < 1e-3 < stretch[0] - 1:
            return (
                f"; it is {each.named} with fast pairs divided by {stretch[0]:.3g} and slow ones "
                f"left alone, as where the borders of YaRN or Llama 3 are exchanged"
            )
    off = lambda each: (each.rates / omegas).log().abs().max().item()  # noqa: E731
    if not known:
        return ""
    near = min(known, key=off)
    ratio = omegas / near.rates
    pair = int(ratio.log().abs().argmax())
    return (
        f"; nearest is {near.named}, as whose pair {pair} it turns {ratio[pair]:.3g} times as fast"
    )


def stretched(shape: Structure) -> Rotation | None:
    """Powers of a base times any angle a step, as where coordinates go from −1 to 1."""
    omegas = shape.speeds
    if len(omegas) < 3 or shape.odd or float(omegas.min()) <= 0:
        return None
    for plain in plain_schedules(shape.width, omegas / omegas[0]):
        schedule = Linear(plain, 1 / float(omegas[0]))
        rates = radians(schedule)
        if len(rates) == len(omegas) and fits(rates / omegas, torch.ones_like(omegas), 1e-3):
            words = f"{describe(plain)}, {float(omegas[0]):.4g} radians a step"
            return Rotation(shape, schedule, said_otherwise=words)
    return None
