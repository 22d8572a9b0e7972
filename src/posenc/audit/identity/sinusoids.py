"""Which sinusoidal encoding a table is: convention, base, first position, size."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import asin, inf, pi
from operator import itemgetter

import torch
from torch import Tensor

from posenc.audit.identity.schedules import USUAL, nearest, shortest
from posenc.encodings.tokens.conventions import CONVENTIONS, Convention, timestep
from posenc.encodings.tokens.sinusoidal import Sinusoidal

NEAR = 24  # positions by which a table is fitted: float32 angles are still good there
CLOSE = 2e-5  # how far a table that is fitted may be off there, beside a size of one
EXACT = 3e-6  # so near, no convention is nearer than another
FLOAT32 = 20 * 2.0**-23  # the share of an angle that float32 loses, most by a rounded exponent
COARSE = {"bfloat16": 1.2e-2, "float16": 1.5e-3}  # how far one in such a dtype may be off
GROWING = 1e-4  # the base that a missing sign makes of the usual one


@dataclass(frozen=True)
class Sinusoid:
    """A fitted table: ours, times a number."""

    encoding: Sinusoidal  # which it equals near position 0
    size: float  # what its sines and cosines are multiplied with
    off: float  # how far it is from ours there
    rounded: str = ""  # to how many bits its frequencies are, if that shows

    def exact(self, positions: Tensor) -> Tensor:
        """Our rows at these positions, float64."""
        return self.size * self.encoding.table(positions, dtype=torch.float64)

    @property
    def is_plain(self) -> bool:
        """Whether its sines and cosines are multiplied with nothing."""
        return abs(self.size - 1) <= 1e-4

    @property
    def said(self) -> str:
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
    dtype: torch.dtype = torch.float64  # that frequencies are held in

    @property
    def first(self) -> int:
        """The number of the first position."""
        return self.convention.first + self.offset

    def off(self, rows: Tensor, base: float) -> float:
        """How far the first rows are from ours.

        Frequencies that grow with the channel make large angles there, too: what float32 loses of
        these is no distance.
        """
        numbers = torch.arange(self.first, self.first + len(rows))[:, None]
        angles = numbers * (base**-self.exponents).to(self.dtype).double()
        off = (rows - self.sizes * (angles + self.phases).sin()).abs()
        return (off - FLOAT32 * angles if base < 1 else off).max().clamp(min=0).item()

    def bases(self, rows: Tensor) -> list[tuple[int, float]]:
        """The bases that rows may have, each behind how unusual it is.

        One channel of sines tells, by its angle at position 1.
        """
        if self.dtype != torch.float64:
            return [(2, base) for base in USUAL]
        row, number = (0, 1) if self.first == 1 else (1, self.first + 1)
        columns = self.exponents.tolist(), self.phases.tolist(), rows[row].tolist()
        for e, phase, value in zip(*columns, strict=True):
            if not phase and 0.15 < e < 0.9 and 1e-5 < value < 0.8:
                measured = (asin(value) / number) ** (-1 / e)
                known = nearest(measured) or GROWING
                return [(0, known), (0, GROWING), (1, shortest(measured)), (1, measured)]
        return [(0, base) for base in (*USUAL, GROWING, 1.0)]


@cache
def _forms(dim: int) -> list[Form]:
    """Every convention, from each first position in use; the usual ones in 16 bits, too."""
    found = []
    conventions = (*CONVENTIONS.values(), timestep(shift=1), timestep(flip=False))
    for offset, convention in product((0, 1, 2), conventions):
        with suppress(ValueError):  # a width that it does not have
            channels = [
                (each.function != "zero", each.exponent, (each.function == "cos") * pi / 2)
                for each in convention.channels(dim)
            ]
            sizes, exponents, phases = torch.tensor(channels, dtype=torch.float64).T
            found.append(Form(convention, offset, sizes, exponents, phases))
    usual = [each for each in found if each.convention.name in ("paper", "concatenated")]
    narrow = product((torch.bfloat16, torch.float16), usual)
    return found + [replace(form, dtype=dtype) for dtype, form in narrow]


def identify(rows: Tensor, coarse: float = CLOSE) -> Sinusoid | None:
    """The sinusoidal encoding that these rows ``[seq, dim]`` are, if they are one."""
    rows, dim = rows[:NEAR].double(), rows.shape[1]
    size = _size(rows)
    if not 1e-6 <= size < inf:
        return None
    for scale in dict.fromkeys((1.0, size)):
        close = [
            (unusual, max(off, EXACT), off, form, base)
            for form in _forms(dim)
            for unusual, base in form.bases(rows / scale)
            if (off := form.off(rows / scale, base)) < coarse
        ]
        if close:
            _, _, off, form, base = min(close, key=itemgetter(0, 1))
            ours = Sinusoidal(dim, base, form.convention, offset=form.offset)
            return Sinusoid(ours, scale, off, "" if form.dtype == torch.float64 else "16 bits")
    return None


def _size(rows: Tensor) -> float:
    """The amplitude: sines and cosines of a pair have a length, whichever channels they are."""
    return (2 * rows.square().mean()).sqrt().item()


def slip(rows: Tensor) -> tuple[str, str] | None:
    """The fault of sines that are no encoding, and its sentence."""
    rows, dim = rows[:NEAR].double(), rows.shape[1]
    if len(rows) < 6 or not bool((rows - rows[0]).abs().max() > 1e-6):
        return None
    if dim % 2 == 0:
        pairs = rows.unflatten(1, (-1, 2)).unbind(2), rows.chunk(2, 1)
        if any(torch.allclose(one, other, atol=1e-6) for one, other in pairs):
            which = "sine" if rows[0].abs().max() < 1e-6 else "cosine"
            said = f"both channels of each pair hold the same {which}: a shift is no linear map"
            return "sine-twice", said
        if found := identify(rows.unflatten(1, (-1, 2)).flip(-1).flatten(1)):
            said = "sines and cosines are exchanged: with each in the other's channels it is"
            return "unknown-frequencies", f"{said} {found.said}"
    whole = torch.arange(len(rows) + 3, dtype=torch.float64)
    apart = (rows / _size(rows))[..., None] - torch.cat((whole.sin(), whole.cos()))
    if len(rows) >= 16 and bool((apart.abs().amin(-1) < CLOSE).all()):
        said = "every channel is a sine or cosine of whole radians: positions are divided by //"
        return "angles-rounded", said
    middle, sums = rows[1:-1], rows[2:] + rows[:-2]  # x[p + 1] + x[p − 1] = 2 cos ω · x[p]
    factor = (middle * sums).sum(0) / middle.square().sum(0).clamp(min=1e-12)
    close = ((sums - factor * middle).abs() < 1e-4).all() and (factor.abs() <= 2 + 1e-4).all()
    if bool(close and (factor < 2 - 1e-5).any()):
        said = "every channel is a sine of position, by frequencies or phases of no convention"
        return "unknown-frequencies", said
    return None
