"""Which sinusoidal encoding a table is: convention, base, first position, size."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import asin, inf, pi

import torch
from torch import Tensor

from posenc.audit.identity.schedules import USUAL, nearest, shortest
from posenc.encodings.tokens.conventions import CONVENTIONS, Convention, timestep
from posenc.encodings.tokens.sinusoidal import Sinusoidal

NEAR = 24
"""Positions by which a table is fitted: float32 angles are still good there."""

CLOSE, ROUNDED = 2e-5, 1e-4
"""How far a fitted table may be off there, and one of rounded frequencies, beside a size of one."""

EXACT = 3e-6
"""So near, no convention is nearer than another."""

FLOAT32 = 20 * 2.0**-23
"""The share of an angle that float32 loses, most of it where an exponent is rounded."""

COARSE = {"bfloat16": 1.2e-2, "float16": 1.5e-3}
"""How far one may be off whose numbers are kept in such a dtype."""

GROWING = 1e-4
"""The base that a missing sign makes of the usual one."""


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
    """A convention at one width: channel j holds size_j · sin(n · base^(−e_j) + phase_j)."""

    convention: Convention
    offset: int
    sizes: Tensor  # 0 of a channel that stays empty
    exponents: Tensor
    phases: Tensor  # π/2 of a cosine

    def off(
        self, rows: Tensor, base: float, dtype: torch.dtype = torch.float64, size: float = 1.0
    ) -> float:
        """How far the first rows are from ours, whose frequencies are held in ``dtype``.

        Frequencies that grow with the channel make large angles there, too: what float32 loses of
        these is no distance.
        """
        numbers = torch.arange(len(rows)) + self.convention.first + self.offset
        angles = numbers[:, None] * (base**-self.exponents).to(dtype).double()
        off = (rows / size - self.sizes * (angles + self.phases).sin()).abs()
        return (off - FLOAT32 * angles if base < 1 else off).max().clamp(min=0).item()

    def base(self, rows: Tensor) -> float | None:
        """The base that one channel of sines means, by its angle at position 1."""
        first = self.convention.first + self.offset
        row, number = (0, 1) if first == 1 else (1, first + 1)
        columns = self.exponents.tolist(), self.phases.tolist(), rows[row].tolist()
        for e, phase, value in zip(*columns, strict=True):
            if not phase and 0.15 < e < 0.9 and 1e-5 < value < 0.8:
                return (asin(value) / number) ** (-1 / e)
        return None


@cache
def _forms(dim: int) -> tuple[Form, ...]:
    found = []
    conventions = (*CONVENTIONS.values(), timestep(shift=1), timestep(flip=False))
    for offset, convention in product((0, 1, 2), conventions):
        try:
            channels = convention.channels(dim)
        except ValueError:  # a width that it does not have
            continue
        sizes, exponents, phases = torch.tensor(
            [(c.function != "zero", c.exponent, (c.function == "cos") * pi / 2) for c in channels],
            dtype=torch.float64,
        ).T
        found.append(Form(convention, offset, sizes, exponents, phases))
    return tuple(found)


def identify(rows: Tensor, coarse: float = CLOSE) -> Sinusoid | None:
    """The sinusoidal encoding that these rows ``[seq, dim]`` are, if they are one."""
    rows = rows[:NEAR].double()
    size = _size(rows)
    if not 1e-6 <= size < inf:
        return None
    for scale, known in product(dict.fromkeys((1.0, size)), (True, False)):
        tried = [
            (form.off(rows, base, size=scale), form, base)
            for form, base in _candidates(rows / scale, known)
        ]
        off, form, base = min(tried, key=lambda each: max(each[0], EXACT), default=(inf, None, 1.0))
        if form and off < coarse:
            return Sinusoid(_ours(form, rows, base), scale, off)
    return None


def with_rounded_frequencies(rows: Tensor, dtype: torch.dtype) -> Sinusoid | None:
    """The encoding whose frequencies, rounded to ``dtype``, give these rows."""
    rows = rows[:NEAR].double()
    for form, base in product(_forms(rows.shape[1]), USUAL):
        usual = form.convention.name in ("paper", "concatenated") and not form.offset
        if usual and form.off(rows, base, dtype) < ROUNDED:
            return Sinusoid(_ours(form, rows, base), 1.0, form.off(rows, base))
    return None


def _ours(form: Form, rows: Tensor, base: float) -> Sinusoidal:
    return Sinusoidal(rows.shape[1], base, form.convention, offset=form.offset)


def _size(rows: Tensor) -> float:
    """The amplitude: sines and cosines of a pair have a length, whichever channels they are."""
    return (2 * rows.square().mean()).sqrt().item()


def _candidates(rows: Tensor, known: bool) -> Iterator[tuple[Form, float]]:
    """Every convention with the base that it means here: a known one, or as measured."""
    for form in _forms(rows.shape[1]):
        measured = form.base(rows)
        if measured is None:
            bases: tuple[float | None, ...] = (*USUAL, GROWING, 1.0) if known else ()
        else:
            bases = (nearest(measured), GROWING) if known else (shortest(measured), measured)
        yield from ((form, base) for base in dict.fromkeys(filter(None, bases)))


def twice(rows: Tensor) -> str | None:
    """``sine`` or ``cosine`` where one of them stands for both, else None."""
    rows = rows[:NEAR].double()
    if rows.shape[1] % 2 or not varies_somewhere(rows):
        return None
    for first, second in ((rows[:, 0::2], rows[:, 1::2]), rows.chunk(2, 1)):
        if torch.allclose(first, second, atol=1e-6):
            return "sine" if first[0].abs().max() < 1e-6 else "cosine"
    return None


def varies_somewhere(rows: Tensor) -> bool:
    """Whether rows differ."""
    return bool((rows - rows[:1]).abs().max() > 1e-6)


def has_whole_angles(rows: Tensor) -> bool:
    """Whether every number is a sine or cosine of whole radians, times one size."""
    rows = rows[:NEAR].double()
    whole = torch.arange(len(rows) + 3, dtype=torch.float64)
    apart = (rows / _size(rows))[..., None] - torch.cat((whole.sin(), whole.cos()))
    is_whole = bool((apart.abs().amin(-1) < CLOSE).all())
    return is_whole and len(rows) >= 16 and varies_somewhere(rows)


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
