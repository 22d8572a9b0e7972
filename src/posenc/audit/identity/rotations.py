"""Which schedule a rotation of queries and keys follows, and what slipped in it.

Frequencies that were measured are held against a table of references: schedules with known bases
and known slips, and the base that fits all pairs best.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import exp, isfinite

import torch
from torch import Tensor

from posenc.audit.identity import schedules
from posenc.audit.identity.recipes import of_rotary
from posenc.audit.identity.schedules import KNOWN, OF_GRIDS, USUAL, plain_schedules, radians
from posenc.audit.identity.structures import Structure
from posenc.encodings.queries_keys import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, Proportional, Schedule, YaRN

OF_SLIPS = (1_000.0, *OF_GRIDS)  # bases in use that slips make of larger ones, too
STRETCHED = (500_000.0, 10_000.0, 1_000_000.0, 150_000.0, 5_000_000.0, 50_000.0)
LENGTHS = (8192, 4096, 32768, 2048, 131072, 16384)
SHARES = (0.125, 0.25, 0.5, 0.75)
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

    @property
    def named(self) -> str:
        """The schedule in words."""
        return schedules.describe(self.schedule)

    @property
    def factor(self) -> float:
        """The attention factor that belongs to it."""
        return self.schedule.attention_factor

    @property
    def turning(self) -> list[int]:
        """The pairs of the schedule that turn."""
        lengths = enumerate(self.schedule.wavelengths())
        return [i for i, length in lengths if isfinite(length) and i not in self.missing]

    @property
    def rates(self) -> Tensor:
        """Their frequencies."""
        rates = radians(self.schedule)
        rates = rates[self.turning] if self.missing else rates
        return rates.to(getattr(torch, self.rounded)).double() if self.rounded else rates

    def exact(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Our cosines and sines of the pairs that turn, float64, without the attention factor.

        They begin at the angles at which the subject begins.
        """
        table = Rotary(self.schedule).table(positions, dtype=torch.float64)[..., self.turning]
        begin = self.structure.sense * self.structure.phases
        cos, sin = (table / self.factor).unbind(-2)
        turned = torch.complex(cos, sin) * torch.complex(begin.cos(), begin.sin())
        return turned.real, turned.imag

    @property
    def ours(self) -> str:
        """Ours that it equals, as Python: a recipe where there is one."""
        shape, text = self.structure, schedules.without_defaults(self.schedule)
        if shape.pairing == "other" or 2 * len(self.schedule) != shape.width:
            return f"posenc.Rotary({text})"
        ours = Rotary(
            self.schedule,
            head_dim=shape.width if shape.place == "between" else shape.dim,
            pairing=shape.pairing,
            rotated="suffix" if shape.place == "suffix" else "prefix",
        )
        recipe = of_rotary(ours) if ours.head_dim == shape.dim and not self.missing else ""
        return recipe or f"posenc.{ours!r}".replace(repr(self.schedule), text)

    @property
    def said(self) -> str:
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
    if expected is not None and schedules.fits(radians(expected), shape.speeds):
        return Rotation(shape, expected)
    known = (Rotation(shape, Geometric(shape.width, base)) for base in KNOWN)
    every, tolerance = (known, 1e-3) if coarse else (references(shape), schedules.TOLERANCE)
    return next(
        (each for each in every if schedules.fits(each.rates, shape.speeds, tolerance)), None
    )


def references(shape: Structure) -> Iterator[Rotation]:
    """Schedules that frequencies may be, most usual first."""
    yield from (Rotation(shape, Geometric(shape.width, base)) for base in USUAL)
    yield from _powers(shape)
    yield from _stretched(shape)
    for base, dtype in product(KNOWN[:10], ("bfloat16", "float16")):
        yield Rotation(shape, Geometric(shape.width, base), rounded=dtype)
    yield from _missing(shape)
    for base in USUAL:
        yield Rotation(shape, Geometric(shape.width, 1 / base), slip="+2i instead of −2i")


def _powers(shape: Structure) -> Iterator[Rotation]:
    """Powers of the base that fits best, of positions as they are or divided by n/2."""
    omegas, width = shape.speeds, shape.width
    factor, share = round(1 / max(float(omegas[0]), 1e-9), 3), 2 * len(omegas) / width
    for plain in plain_schedules(width, omegas * factor):
        base = float(plain.base)
        is_chosen = base in KNOWN and base not in OF_SLIPS
        slip = "" if is_chosen else schedules.slipped(base, width, shape.dim)
        unusual = not slip and base not in KNOWN
        is_round = base == float(f"{base:.3g}")  # as those are that somebody chose
        if share in SHARES:
            yield Rotation(shape, Proportional(width, share, base))
        elif factor == 1:
            if unusual and not is_round:
                yield from _ntk(shape, base)
            yield Rotation(shape, plain, unusual, slip)
        elif 1 < factor <= 1024 and 2 * factor % 1 == 0:
            yield Rotation(shape, Linear(plain, factor), base not in KNOWN)


def _ntk(shape: Structure, grown: float) -> Iterator[Rotation]:
    """A usual base grown by a whole or half factor, as NTK scaling does."""
    width = shape.width
    for base in USUAL if width > 2 else ():
        factor = (grown / base) ** ((width - 2) / width)
        near = round(factor * 2) / 2
        if 1 < near <= 64 and abs(factor - near) < 1e-5 * near:
            yield Rotation(shape, NTK(Geometric(width, base), near))


def _stretched(shape: Structure) -> Iterator[Rotation]:
    """Llama 3 and YaRN leave the fast pairs alone and divide the slow ones by a factor."""
    omegas = shape.speeds
    for plain in (Geometric(shape.width, base) for base in STRETCHED):
        ours = radians(plain)
        if len(ours) != len(omegas) or bool((omegas / ours - 1)[:2].abs().max() > 1e-4):
            continue
        ratio = float(ours[-1] / omegas[-1])
        factors = [f for f in FACTORS if abs(ratio / f - 1) < 0.3]
        if shape.size > 1.001:  # as the size of the table says
            factors.append(round(exp((shape.size - 1) / 0.1), 1))
        for factor in dict.fromkeys(factors):
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


def resembles(shape: Structure) -> str:
    """The nearest schedule, in words; empty where some pairs turn against others."""
    omegas = shape.speeds
    plain = [Rotation(shape, Geometric(shape.width, base)) for base in STRETCHED]
    known = [each for each in (*plain, *_stretched(shape)) if len(each.rates) == len(omegas)]
    if not known or not bool((omegas > 0).all()):
        return ""
    for each in plain:
        fast, slow = (each.rates / omegas)[[0, -1]].tolist()
        if abs(slow - 1) < 1e-3 < fast - 1:
            return (
                f"; it is {each.named} with fast pairs divided by {fast:.3g} and slow ones left "
                f"alone, as where the borders of YaRN or Llama 3 are exchanged"
            )
    ratios = torch.stack([omegas / each.rates for each in known])
    off, pairs = ratios.log().abs().max(1)
    near = int(off.argmin())
    pair, times = int(pairs[near]), ratios[near, pairs[near]]
    return f"; nearest is {known[near].named}: pair {pair} turns {times:.3g} times as fast"


def stretched(shape: Structure) -> Rotation | None:
    """Powers of a base times any angle a step, as where coordinates go from −1 to 1."""
    omegas = shape.speeds
    if len(omegas) < 3 or shape.odd or float(omegas.min()) <= 0:
        return None
    for plain in plain_schedules(shape.width, omegas / omegas[0]):
        found = Rotation(shape, Linear(plain, 1 / float(omegas[0])))
        if len(found.rates) == len(omegas) and torch.allclose(found.rates, omegas, 1e-3, 0.0):
            return found
    return None
