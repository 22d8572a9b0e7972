"""A subject that adds: the rows that it gives, what it is, and what it learns."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from math import isqrt
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.audit.adapters.added import Added
from posenc.audit.adapters.calls import asking
from posenc.audit.adapters.layouts import varies
from posenc.audit.identity import sinusoids
from posenc.audit.identity.recipes import of_sinusoidal
from posenc.audit.questions import rows
from posenc.audit.questions.asking import LARGE, ROUNDING, Inquiry, Way, needed
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError
from posenc.audit.signatures import lengths_of
from posenc.encodings.tokens.addition import Scale
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.sinusoidal import Sinusoidal
from posenc.positions import Coordinates, grid

SAME = 1e-4  # by which share a factor that is measured may be off
OF_ONE_ROW = 0.35  # the share of a table that one of its rows reads at most, of a small grid too
LARGEST = 64**2 + 1  # the longest table that is held against those of square images
# the forms of ``AxialSinusoidal`` that images without padding are encoded by
OF_SQUARES = ("mae", "rt_detr", "timm", "positional_encodings")


@dataclass
class AddedInquiry(Inquiry):
    """A subject that adds."""

    view: Added

    what: ClassVar[str] = "the encoding"  # that a token receives
    words: ClassVar[str] = "encodings are off"  # by an error
    lossy: ClassVar[float] = 2.0**-7  # what one rounding to bfloat16 does not hide
    marks: ClassVar[tuple[int, ...]] = (10, 100, 1_000, 10_000, 100_000)  # errors are told to these

    # How it is asked.

    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        return torch.zeros(batch, seq, self.view.dim)

    def called(self, x: Tensor, at: Tensor | None = None, by: Any = None) -> list[Tensor]:
        at = at[0] if at is not None and at.ndim == 2 and len(at) == 1 else at
        made = self.view.call(x, at, by)
        return [made.expand(len(x), *made.shape[1:])]

    def most(self, count: int) -> int:
        return self.view.longest(count)

    @property
    def dense(self) -> float:
        return ROUNDING * max(1.0, self.view.scale or 0.0)

    def own_ways(self, x: Tensor, plain: Tensor) -> Iterator[Way]:
        scale = self.view.scale

        def beside(size: float) -> tuple[Tensor, Tensor]:
            some = size * self.drawn(x)
            return self.whole(some).double() - (scale or 0.0) * some.double(), plain

        for size in () if scale is None else (1.0, LARGE):
            yield f"beside content of size {size:,.0f}", self.dense * size, partial(beside, size)

    # Rows.

    @cached_property
    def near(self) -> Tensor:
        """Its first rows, float64."""
        return self.view.rows(self.most(64))[:64]  # what has one length takes that alone

    @property
    def end(self) -> int:
        """How many positions there are to be asked for."""
        return min(len(self.far[0]), self.length)

    @cached_property
    def far(self) -> tuple[list[int], Tensor, NotAskedError | None]:
        """Positions, also beyond what it is built for, its rows there, and why more are refused."""
        built = [n for n in lengths_of(self.view.subject.fresh()) if 8 <= n <= 2**17]
        beyond = max((2 * n + 2 for n in built[:3]), default=0)
        wanted = max(self.length, min(beyond, 2**22 // self.view.dim))
        table, refused = self.view.rows(self.most(wanted)), None
        if len(table) < wanted and not self.view.fixed:
            try:
                self.view.added(len(table) + 1)
            except NotAskedError as reason:
                refused = reason
        return list(range(len(table))), table, refused

    @property
    def below(self) -> range:
        """Those of its positions that count."""
        return range(self.most(min(self.length, 4096)))

    def far_rows(self, dtype: torch.dtype = torch.float32, by: Any = None) -> list[Tensor]:
        """What tokens there receive."""
        return [self.view.added(len(self.below), dtype=dtype, by=by).double()]

    def beside_far_tokens(self) -> float:
        """How far first rows of a long call are from those of a short one."""
        short = self.view.rows(self.most(9))
        return apart(self.far[1][: len(short)], short)

    # What it learns.

    @cached_property
    def is_table(self) -> bool:
        """Whether rows are learned as they are: each has numbers that the others do not read."""
        thing = self.view.subject.fresh()
        if not self.learns:
            return False
        learned = [p.requires_grad_() for p in thing.parameters() if p.is_floating_point()]
        weights = torch.randn(self.view.dim, generator=torch.Generator().manual_seed(3))
        try:
            with asking(gradients=True):
                last = self.view.added(by=thing)[-1].float() @ weights
            found = torch.autograd.grad(last, learned, allow_unused=True)
        except (NotAskedError, RuntimeError):
            return True
        read = [g is not None and int(g.to_dense().count_nonzero()) for g in found]
        return any(0 < n <= OF_ONE_ROW * p.numel() for n, p in zip(read, learned, strict=True))

    @property
    def scale(self) -> Scale:
        """What content is multiplied with, as an argument of ours; None for nothing."""
        found, root = self.view.scale or 1.0, self.view.dim**0.5
        if abs(found - 1) < SAME:
            return None
        return "sqrt_dim" if abs(found / root - 1) < SAME else float(f"{found:.4g}")

    # What it is.

    @cached_property
    def sinusoid(self) -> sinusoids.Sinusoid | None:
        """The sinusoidal encoding that it is, if it is one."""
        if self.view.grid is not None or len(self.near) < 4:
            return None
        found = sinusoids.identify(self.near)
        if found is None and (held := rows.is_held_in(self.near)):
            found = sinusoids.identify(self.near, sinusoids.COARSE[held])
        return found

    @cached_property
    def images(self) -> list[tuple[str, Tensor]]:
        """Its rows as patches of square images, and where one token of zeros stands beside them."""
        if self.view.grid is not None:
            return []
        table = self.view.rows(self.most(LARGEST))
        found = [("", table)]
        found += [] if table[0].any() else [(" behind 1 of zeros", table[1:])]
        found += [] if table[-1].any() else [(" before 1 of zeros", table[:-1])]
        return [each for each in found if isqrt(len(each[1])) ** 2 == len(each[1]) >= 9]

    def square(self, fraction: float = 0.0) -> str:
        """Which encoding of square images it is, whose rows may grow from column to column too."""
        dim, forms = self.view.dim, OF_SQUARES if self.view.dim % 4 == 0 else ()
        for (beside, patches), form in product(self.images, forms):
            side = isqrt(len(patches))
            points = grid(side, side).double()
            points[:, 0] += fraction * points[:, 1] / side
            ours = AxialSinusoidal(dim, form, axes=2, scale=self.scale)
            off = apart(ours.table(Coordinates(points), dtype=torch.float64), patches)
            if off < ROUNDING:
                told = f"{side} × {side} patches{beside}, equal to posenc.{ours!r}"
                return f"a table of {told} within {off:.1g}"
        return ""

    def excused(self, whole: list[Tensor], part: list[Tensor]) -> None:
        """A class token behind the patches of a square may receive nothing."""
        many, few = whole[0][0], part[0][0]
        empty = bool(self.images) and not (many[-1].any() or few[-1].any())
        if empty and apart(many[: len(few) - 1], few[:-1]) < ROUNDING:
            raise NotAskedError("the last of its tokens receives nothing, as a class token")

    @cached_property
    def of_grid(self) -> str:
        """A grid encoding in words: each half of the channels is sinusoidal in one axis."""
        if self.view.grid is None:
            return ""
        table, names = self.view.added().double().unflatten(0, self.view.grid), ("height", "width")
        if varies(table.chunk(2, -1)[0], 1) >= ROUNDING:
            table, names = table.transpose(0, 1), names[::-1]
        first, second = table.chunk(2, -1)
        one, other = sinusoids.identify(first[:, 0]), sinusoids.identify(second[0])
        if one is None or other is None or max(varies(first, 1), varies(second, 0)) >= ROUNDING:
            return ""
        halves = f"{names[0]} in the first half of the channels, {names[1]} in the second"
        each = f"each {one.said}" if one.said == other.said else f"{one.said}, and {other.said}"
        height, width = self.view.grid
        return f"a grid encoding: {halves}, {each}; at all of {height} × {width} points"

    def errors_to_the_end(self) -> tuple[Tensor, Tensor, Tensor, str, str]:
        """Positions, errors, how much these matter, and dtypes that hold frequencies and table."""
        found = needed(self.sinusoid, "what it should be is not known, or it has one table alone")
        line, table = torch.arange(self.end), self.far[1][: self.end]
        errors, held = table - found.exact(line), rows.is_held_in(table[:512])
        return line, errors, errors.abs().amax(1), found.rounded, held

    @property
    def identity(self) -> str:
        """One line."""
        found, scale = self.sinusoid, self.scale
        times = "the root of its width" if scale == "sqrt_dim" else f"{scale}"
        beside = "" if scale is None else f", added to content times {times}"
        if found is not None:
            line, errors, *_ = self.errors_to_the_end()
            ours, base = found.encoding, float(f"{found.encoding.base:.10g}")
            named = Sinusoidal(ours.dim, base, ours.convention, offset=ours.offset, scale=scale)
            recipe = of_sinusoidal(ours, self.view.scale) if found.is_plain else ""
            told = recipe or f"posenc.{named!r}"
            told += "" if found.is_plain else f" times {found.size:.4g}"
            return f"{found.said}: {rows.held_against(told, line, errors)}"
        if said := self.square():
            return said
        if self.is_table:
            count = int(self.far[1].any(1).sum())  # a class token may be left without
            return f"a learned table, at least {count:,} rows of {self.view.dim}{beside}"
        return self.of_grid and self.of_grid + beside
