"""Which sinusoidal encoding a table is: convention, base, first position, size."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import asin, isfinite

import torch
from torch import Tensor

from posenc.audit.identity.schedules import KNOWN, nearest, shortest
from posenc.encodings.tokens.conventions import CONVENTIONS, Convention, timestep
from posenc.encodings.tokens.sinusoidal import Sinusoidal

NEAR = 24
"""Positions by which a table is fitted: float32 angles are still good there."""

CLOSE = 2e-5
"""How far a table that is fitted may be off there, beside a size of one."""

FLOAT32 = 20 * 2.0**-23
"""The share of an angle that float32 loses, most of it where an exponent is rounded."""

COARSE = {"bfloat16": 1.2e-2, "float16": 1.5e-3}
"""How far one may be off whose numbers are kept in such a dtype."""

LATEST = 2
"""The largest number that a first position has in conventions that are known."""

WHOLE = 1e-5
"""How far a sine in float32 may be from that of whole radians."""


@dataclass(frozen=True)
class Sinusoid:
    """A fitted table: ours, times a number."""

    encoding: Sinusoidal  # which it equals near position 0
    size: float  # what its sines and cosines are multiplied with
    off: float  # how far it is from ours there

    def exact(self, positions: Tensor) -> Tensor:
        """Our rows at these positions, float64."""
        return self.size * self.encoding.table(positions, dtype=torch.float64)

    @property
    def is_plain(self) -> bool:
        """Whether its sines and cosines are multiplied with nothing."""
        return abs(self.size - 1) <= 1e-4

    @property
    def said(self) -> str:
        """One line."""
        ours = self.encoding
        offset = f", first position {ours.offset}" if ours.offset else ""
        size = "" if self.is_plain else f", times {self.size:.4g}"
        return (
            f"the sinusoidal encoding, convention {ours.convention.name}, base {ours.base:,.6g}"
            f"{offset}{size}"
        )


@dataclass(frozen=True)
class Form:
    """One convention at one width, its exponents as floats: many bases are tried with it."""

    dim: int
    convention: Convention
    offset: int
    exponents: tuple[tuple[float, ...], tuple[float, ...]]  # of sines and of cosines
    channels: tuple[tuple[int, ...], tuple[int, ...]]

    @property
    def first(self) -> int:
        """The number of the first position."""
        return self.convention.first + self.offset

    def angles(self, base: float, count: int) -> list[Tensor]:
        """Those of the first positions, for sines and for cosines."""
        positions = torch.arange(self.first, self.first + count, dtype=torch.float64)[:, None]
        rates = ([base**-e for e in side] for side in self.exponents)
        return [positions * torch.tensor(side, dtype=torch.float64) for side in rates]

    def off(self, rows: Tensor, angles: list[Tensor]) -> Tensor:
        """How far rows are from sines and cosines of these angles."""
        made = torch.zeros_like(rows)
        for channels, each, wave in zip(self.channels, angles, (torch.sin, torch.cos), strict=True):
            made[:, channels] = wave(each)
        return (rows - made).abs()

    def ours(self, base: float) -> Sinusoidal:
        """The encoding of this convention."""
        return Sinusoidal(self.dim, base, convention=self.convention, offset=self.offset)


@cache
def _forms(dim: int) -> tuple[Form, ...]:
    found = []
    conventions = (*CONVENTIONS.values(), timestep(shift=1), timestep(flip=False))
    for offset, convention in product((0, 1, 2), conventions):
        try:
            held = convention.sincos(dim, 10_000.0)
        except ValueError:  # a width that it does not have
            continue
        sines, cosines = (tuple(map(float, p.exponents)) for p in (held.sines, held.cosines))
        channels = tuple(held.sine_channels), tuple(held.cosine_channels)
        found.append(Form(dim, convention, offset, (sines, cosines), channels))
    return tuple(found)


def identify(rows: Tensor, coarse: float = CLOSE) -> Sinusoid | None:
    """The sinusoidal encoding that these rows ``[seq, dim]`` are, if they are one."""
    rows = rows[:NEAR].double()
    size = _size(rows)
    if not isfinite(size) or size < 1e-6:
        return None
    for scale, known in product(dict.fromkeys((1.0, size)), (True, False)):
        best: tuple[float, Form, float] | None = None
        for form, base in _candidates(rows / scale, known):
            off = _off(rows / scale, form, base)
            if best is None or off < best[0]:
                best = off, form, base
            if off < 3e-6:
                break
        if best is not None and best[0] < coarse:
            off, form, base = best
            return Sinusoid(form.ours(base), scale, off)
    return None


def _size(rows: Tensor) -> float:
    """The amplitude: sines and cosines of a pair have a length, whichever channels they are."""
    return (2 * rows.square().sum(1).mean() / rows.shape[1]).sqrt().item()


def _candidates(rows: Tensor, known: bool) -> Iterator[tuple[Form, float]]:
    """Every convention with the base that it means here: a known one, or as measured."""
    for form in _forms(rows.shape[1]):
        measured = _base(rows, form)
        if measured is None:
            bases: tuple[float | None, ...] = (*KNOWN[:3], 1e-4, 1.0) if known else ()
        else:
            bases = (nearest(measured), 1e-4) if known else (shortest(measured), measured)
        yield from ((form, base) for base in dict.fromkeys(filter(None, bases)))


def _base(rows: Tensor, form: Form) -> float | None:
    """The base that one channel of sines means: sin(ω) = value at position 1, ω = base^(−e)."""
    row, at = (0, 1) if form.first == 1 else (1, form.first + 1)
    for channel, e in zip(form.channels[0], form.exponents[0], strict=False):
        value = rows[row, channel].item()
        if 0.15 < e < 0.9 and 1e-5 < value < 0.8:
            return (asin(value) / at) ** (-1 / e)
    return None


def _off(rows: Tensor, form: Form, base: float) -> float:
    """How far rows are from a form's; near position 0 float64 has them to 1e-13.

    Frequencies that grow with the channel make large angles there, too: what float32 loses of
    these is no distance.
    """
    angles = form.angles(base, len(rows))
    off = form.off(rows, angles)
    if base < 1:
        for channels, each in zip(form.channels, angles, strict=True):
            off[:, channels] -= each * FLOAT32
    return off.max().clamp(min=0).item()


def with_rounded_frequencies(rows: Tensor, dtype: torch.dtype) -> Sinusoid | None:
    """The encoding whose frequencies, rounded to ``dtype``, give these rows."""
    rows = rows[:NEAR].double()
    usual = [
        form
        for form in _forms(rows.shape[1])
        if form.convention.name in ("paper", "concatenated") and not form.offset
    ]
    for form, base in product(usual, KNOWN[:3]):
        exact = form.angles(base, len(rows))
        rounded = [
            torch.arange(len(rows), dtype=torch.float64)[:, None] * each[1].to(dtype).double()
            for each in exact
        ]
        if form.off(rows, rounded).max() < CLOSE * 5:
            return Sinusoid(form.ours(base), 1.0, form.off(rows, exact).max().item())
    return None


def twice(rows: Tensor) -> str | None:
    """``sine`` or ``cosine`` where one of them stands for both, else None."""
    rows = rows[:NEAR].double()
    if rows.shape[1] % 2:
        return None
    for first, second in ((rows[:, 0::2], rows[:, 1::2]), rows.chunk(2, 1)):
        if torch.allclose(first, second, atol=1e-6) and varies_somewhere(first):
            return "sine" if first[0].abs().max() < 1e-6 else "cosine"
    return None


def varies_somewhere(rows: Tensor) -> bool:
    """Whether rows differ."""
    return bool((rows - rows[:1]).abs().max() > 1e-6)


def has_whole_angles(rows: Tensor) -> bool:
    """Whether channels are sines or cosines of whole radians, and some stand still in runs.

    Where positions are divided by ``//``, neighbors share the angles of slow channels.
    """
    rows = rows[:NEAR].double()
    size = _size(rows)
    if len(rows) < 16 or not isfinite(size) or size < 1e-6:
        return False
    whole = torch.arange(len(rows) + LATEST, dtype=torch.float64)
    last = torch.full(rows.shape[1:], -1)
    for made in (whole.sin(), whole.cos()):
        is_whole = ((rows / size)[..., None] - made).abs() < WHOLE
        last = torch.maximum(last, _counted(is_whole))
    in_runs = (last > 0) & (last <= len(rows) // 2)
    return bool((last >= 0).all()) and int(in_runs.sum()) > 1


def _counted(is_whole: Tensor) -> Tensor:
    """To which number each channel counts, at each position by 1 or not at all; −1 for none.

    ``is_whole`` says whether each channel is that of each number, ``[seq, dim, numbers]``.
    """
    numbers = torch.arange(is_whole.shape[-1])
    reached = is_whole[0] & (numbers <= LATEST)
    for here in is_whole[1:]:
        reached = here & (reached | reached.roll(1, -1))
    return torch.where(reached, numbers, -1).amax(-1)


def is_sinusoidal(rows: Tensor) -> bool:
    """Whether every channel is one sine or cosine of position times a constant, and none else.

    Such a channel obeys x[p + 1] + x[p − 1] = 2 cos ω · x[p].
    """
    rows = rows[:NEAR].double()
    if len(rows) < 6 or not varies_somewhere(rows):
        return False
    middle, sums = rows[1:-1], rows[2:] + rows[:-2]
    factor = (middle * sums).sum(0) / middle.square().sum(0).clamp(min=1e-12)
    off = (sums - factor * middle).abs().amax(0)
    return bool(
        (off < 1e-4).all() and (factor.abs() <= 2 + 1e-4).all() and (factor < 2 - 1e-5).any()
    )
