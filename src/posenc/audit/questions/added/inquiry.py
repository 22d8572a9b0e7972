"""A subject that adds, with what several questions need of it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.audit.adapters.added import Added
from posenc.audit.adapters.calls import guarded, keeping_gradients, lengths_of, varies
from posenc.audit.identity import sinusoids
from posenc.audit.identity.recipes import of_sinusoidal
from posenc.audit.questions import rows
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.questions.inquiry import ROUNDED, ROUNDING, Inquiry
from posenc.audit.questions.traces import apart
from posenc.audit.questions.ways import Way
from posenc.audit.report import FewerRowsError, NotAskedError
from posenc.audit.signatures import parameters_of
from posenc.encodings.tokens.addition import Scale
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.positions import grid, prefixed

SAME = 1e-4
"""By which share a factor that is measured may be off."""

STEPS = (0.5, -0.25)
"""By which shares a learned number is changed: by one of them, where a function of it stays."""

OF_ONE_ROW = 0.35
"""The share of a table that one row of it reads at most, where rows are those of a small grid."""

LARGEST = 64**2 + 1
"""The longest table that is held against those of square images."""

LARGE = 1024.0
"""A size of content that no clamp is meant for."""

OF_SQUARES = ("mae", "rt_detr", "timm", "positional_encodings")
"""The forms of ``AxialSinusoidal`` that images without padding are encoded by."""


@dataclass
class Square:
    """A table that is one of the published ones for the patches of a square image."""

    encoding: AxialSinusoidal
    side: int
    beside: str
    off: float

    @property
    def said(self) -> str:
        """What it is, in words."""
        return f"{self.side} × {self.side} patches{self.beside}, equal to posenc.{self.encoding!r}"


@dataclass
class AddedInquiry(Inquiry):
    """A subject that adds, with what several questions need of it."""

    view: Added

    what: ClassVar[str] = "the encoding"
    words: ClassVar[str] = "encodings are off"
    lossy: ClassVar[float] = 2.0**-7  # what one rounding to bfloat16 does not hide
    decoded: ClassVar[tuple[int, ...]] = (0, 1, 7, 19)
    of_rows: ClassVar[str] = "positions-misread"
    counts_rows: ClassVar[bool] = True

    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        return torch.zeros(batch, seq, self.view.dim)

    def drawn(self, x: Tensor) -> Tensor:
        return torch.randn(x.shape, generator=torch.Generator().manual_seed(11))

    def called(self, run: Any, x: Tensor, at: Tensor | None, by: Any = None) -> list[Tensor]:
        thing = self.view.subject.fresh() if by is None else by
        at = at[0] if at is not None and at.ndim == 2 and len(at) == 1 else at
        made = run(thing, x.clone(), at)
        return [made.expand(len(x), *made.shape[1:])]

    def most(self, count: int) -> int:
        return self.view.seq if self.view.fixed else self.view.longest(count)

    @property
    def longest(self) -> int:
        return self.view.longest(min(2 * self.length, 16_384))

    @property
    def by_rows(self) -> bool:
        return self.view.moves == "positions"

    @property
    def gives_tables(self) -> bool:
        return self.view.scale is None

    @property
    def dense(self) -> float:
        return ROUNDING * max(1.0, self.view.scale or 0.0)  # sums round at the size of content

    @property
    def wide(self) -> float:
        return ROUNDED  # a table that is held in 16 bits is a loss, which is asked elsewhere

    @property
    def is_trained(self) -> bool:
        return self.learns

    def of_equal_tokens(self) -> list[Tensor]:
        batch = 1 if self.view.layout == "sd" else 3
        return [self.view.call(self.content(self.view.seq, batch))]

    def sample(self) -> Tensor:
        return self.content(self.view.seq)

    def own_ways(self, x: Tensor, plain: Tensor, side: str) -> list[Way]:
        if self.view.scale is None:
            return []

        def beside(size: float) -> tuple[Tensor, Tensor]:
            some = size * self.drawn(x)
            return self.made(some).double() - (self.view.scale or 0.0) * some.double(), plain

        return [
            (f"beside content of size {size:,.0f}", self.dense * size, lambda s=size: beside(s))
            for size in (1.0, LARGE)
        ]

    # Rows.

    @cached_property
    def near(self) -> Tensor:
        """Its first rows, float64."""
        return self.view.rows(self.view.longest(64))[:64]  # what has one length takes that alone

    @cached_property
    def table(self) -> Tensor:
        """As many rows as are judged, float64."""
        return self.view.rows(self.view.longest(self.length))

    @property
    def end(self) -> int:
        return len(self.table)

    @cached_property
    def _built(self) -> list[int]:
        return [n for n in lengths_of(self.view.subject.fresh()) if 8 <= n <= 2**17]

    @cached_property
    def far(self) -> tuple[list[int], Tensor, str]:
        most = max([self.length, *(2 * n + 2 for n in self._built[:3])])
        most = min(most, 2**22 // self.view.dim)
        table = self.table if self.view.fixed else self.view.rows(self.view.longest(most))
        return list(range(len(table))), table, ""

    def ends_silently(self) -> Answer | None:
        if self.view.grid is not None:
            return self._points_apart()
        for n in () if self.view.fixed else self._built[:2]:
            try:
                self.view.added(n + 5)
            except FewerRowsError as reason:
                said = f"{reason}: the tokens beyond are lost without a word"
                return fault("truncated-silently", said, n)
            except NotAskedError:
                return None
        return None

    def _points_apart(self) -> Answer:
        table = self.view.added()[0].double()
        if (lost := rows.broken(table, torch.arange(len(table)), self.what)) is not None:
            return lost
        different = len((table * 1e6).round().unique(dim=0))
        if different < len(table):
            said = f"{len(table)} points of a grid receive {different} different encodings"
            return fault("positions-shared", said, different, expected=len(table))
        return f"{different} points of the grid, all different"

    def in_longer_rows(self) -> tuple[str, float] | None:
        short = self.most(9)
        off = apart(self.table[:short], self.view.rows(short))
        said = f"the first {short} of {len(self.table)} tokens receive other encodings than alone"
        return (said, off) if off >= ROUNDING else None

    def excused(self, whole: list[Tensor], part: list[Tensor]) -> str | None:
        """A class token behind the patches of a square may receive nothing."""
        many, few = whole[0][0], part[0][0]
        n = len(few)
        of_patches = self.square is not None or self.patches is not None
        if not of_patches or apart(many[: n - 1], few[:-1]) >= ROUNDING:
            return None
        if many[-1].any() or few[-1].any():
            return None
        raise NotAskedError("the last of its tokens receives nothing, as one behind all patches")

    def alone(self, x: Tensor, line: Tensor, side: str) -> Tensor:
        return self._row(line)[None]

    def alone_row(self, x: Tensor, line: Tensor, side: str) -> Tensor:
        return self._row(line)[None]

    def _row(self, line: Tensor) -> Tensor:
        if int(line.max()) >= len(self.table):
            raise NotAskedError(f"it has {len(self.table)} positions")
        return self.table[line]

    def not_said(self) -> Answer:
        refused = "".join(f"; {name} was refused" for name, _ in self.view.others)
        raise NotAskedError(f"the first position cannot be said{refused}")

    def edges(self) -> list[int]:
        return [] if self.view.fixed else [len(self.table)]

    def row_at(self, line: Tensor) -> Tensor:
        return self.view.added(positions=line)[0]

    def far_rows(
        self, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> tuple[list[int], list[Tensor]]:
        seq = self.view.longest(min(self.length, 4096))
        made = self.view.added(seq, dtype=dtype, by=by)[0].double()
        return list(range(seq)), [made]

    # What it learns.

    @cached_property
    def learns(self) -> bool:
        """Whether it has parameters that shape what is added."""
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(p.numel() > 4 for p in thing.parameters())

    @cached_property
    def is_table(self) -> bool:
        """Whether rows are learned as they are: each has numbers that the others do not read."""
        if not self.learns:
            return False
        thing = self.view.subject.fresh()
        learned = [p.requires_grad_() for p in thing.parameters() if p.is_floating_point()]
        weights = torch.randn(self.view.dim, generator=torch.Generator().manual_seed(3))
        try:
            with keeping_gradients():
                made = self.view.added(by=thing)[0].float() @ weights
            if not made.requires_grad:
                return True
            every, one = (
                torch.autograd.grad(what, learned, retain_graph=True, allow_unused=True)
                for what in (made.square().sum(), made[-1])
            )
        except (NotAskedError, RuntimeError):
            return True
        return any(
            int(row.to_dense().count_nonzero()) <= OF_ONE_ROW * int(all_.to_dense().count_nonzero())
            for all_, row in zip(every, one, strict=True)
            if all_ is not None and row is not None and all_.numel() > 4
        )

    @cached_property
    def factor(self) -> str | None:
        """The name of what it learns that changes the size of its table and nothing else of it.

        That is a number, or one for each channel while these are alike.
        """
        thing = self.view.subject.fresh()
        named = thing.named_parameters() if isinstance(thing, nn.Module) else ()
        learned = [(name, p.numel()) for name, p in named if p.requires_grad]
        numbers = [name for name, count in learned if count in (1, self.view.dim)]
        return next((name for name in numbers if any(self._grows_by(name, s) for s in STEPS)), None)

    def _grows_by(self, name: str, step: float) -> bool:
        """Whether all of its table has grown by one factor where a parameter has by a step."""
        thing = self.view.subject.fresh()
        with torch.no_grad():
            number = thing.get_parameter(name)
            number.add_(step * number.abs().max().clamp(min=1.0))
        try:
            made = self.view.rows(len(self.near), thing)
        except NotAskedError:
            return False
        by = ((made * self.near).sum() / self.near.square().sum()).item()
        close = sinusoids.COARSE.get(rows.is_held_in(self.near) or "", ROUNDING)
        off = (made - by * self.near).abs().max() / self.near.abs().max()
        return min(abs(by), abs(by - 1)) > close and off.item() <= close * max(1.0, abs(by))

    def trained(self, thing: Any) -> Iterator[tuple[Any, Tensor | None, bool]]:
        x = self.drawn(self.content(self.most(16))).requires_grad_()
        content = x if self.view.scale is not None else None
        yield lambda: self.view.run(thing, x, None), content, True

    def trained_otherwise(self, thing: Any) -> Any:
        """Ids of tokens, whose own rows content stands for."""
        parameters = parameters_of(thing) if self.view.text.startswith("subject(") else []
        named = {p.role: p.name for p in parameters if not p.required}
        if "ids" not in named or self.view.scale is None:
            return None
        ids = torch.arange(self.most(16))[None] % 3
        return lambda: guarded(lambda: thing(**{named["ids"]: ids}))

    # What it is.

    @property
    def scale(self) -> Scale:
        """What content is multiplied with, as an argument of ours; None for nothing."""
        found, root = self.view.scale or 1.0, self.view.dim**0.5
        if abs(found - 1) < SAME:
            return None
        return "sqrt_dim" if abs(found / root - 1) < SAME else float(f"{found:.4g}")

    @cached_property
    def sinusoid(self) -> sinusoids.Sinusoid | None:
        """The sinusoidal encoding that it is, if it is one."""
        if self.view.grid is not None or len(self.near) < 4:
            return None
        found = self.fitted()
        for dtype in (torch.bfloat16, torch.float16):
            found = found or sinusoids.with_rounded_frequencies(self.near, dtype)
        if found is None and (held := rows.is_held_in(self.near)):
            found = self.fitted(sinusoids.COARSE[held])
        return found

    def fitted(self, coarse: float = sinusoids.CLOSE) -> sinusoids.Sinusoid | None:
        """The one that its first rows are, as far as this; a learned size may be below 0."""
        found = sinusoids.identify(self.near, coarse)
        if found is None and self.factor is not None:
            turned = sinusoids.identify(-self.near, coarse)
            return turned and replace(turned, size=-turned.size)
        return found

    @property
    def rounded(self) -> str:
        held = rows.is_held_in(self.table[:512])
        return "" if self.fitted() is not None or held else "16 bits"

    @cached_property
    def square(self) -> Square | None:
        """The encoding of square images that it is, if it is one.

        A class token of zeros may stand before the patches or behind them.
        """
        view = self.view
        if view.grid is not None or self.sinusoid is not None or view.dim % 4:
            return None
        count = view.longest(LARGEST)
        for prefix, beside in ((0, ""), (1, " behind 1 of zeros"), (1, " before 1 of zeros")):
            side = isqrt(max(count - prefix, 0))
            if side < 3 or side**2 != count - prefix:
                continue
            points, table = prefixed(grid(side, side), prefix), view.rows(count)
            table = table.roll(1, 0) if "before" in beside else table
            for form in OF_SQUARES:
                encoding = AxialSinusoidal(view.dim, form, axes=2, scale=self.scale)
                off = apart(encoding.table(points, dtype=torch.float64), table)
                if off < ROUNDING:
                    return Square(encoding, side, beside, off)
        return None

    @cached_property
    def patches(self) -> Tensor | None:
        """Its rows as those of the patches of a square image, ``[side, side, dim]``.

        A class token may stand before the patches or behind them.
        """
        count = self.view.longest(LARGEST) if self.view.grid is None else 0
        for beside, before in ((0, 0), (1, 1), (1, 0)):
            side = isqrt(max(count - beside, 0))
            if side >= 3 and side**2 == count - beside:
                table = self.view.rows(count)[before : before + side**2]
                return table.unflatten(0, (side, side))
        return None

    @cached_property
    def of_grid(self) -> str:
        """A grid encoding in words: each half of the channels is sinusoidal in one axis."""
        if self.view.grid is None or self.view.dim % 2 or min(self.view.grid) < 4:
            return ""
        height, width = self.view.grid
        first, second = self.view.added()[0].double().unflatten(0, (height, width)).chunk(2, -1)
        for name, (across, down) in {"width": (first, second), "height": (second, first)}.items():
            if max(varies(across, 0), varies(down, 1)) >= ROUNDING:
                continue
            one, two = (sinusoids.identify(part) for part in (across[0], down[:, 0]))
            if one is None or two is None:
                continue
            said = [one.said, two.said] if name == "width" else [two.said, one.said]
            each = f"each {said[0]}" if said[0] == said[1] else f"{said[0]}, and {said[1]}"
            other = "height" if name == "width" else "width"
            return (
                f"a grid encoding: {name} in the first half of the channels, {other} in the "
                f"second, {each}; at all of {height} × {width} points"
            )
        return ""

    def errors_to_the_end(self) -> tuple[Tensor, Tensor, str | None]:
        found = self.sinusoid
        if found is None:
            raise NotAskedError("what it should be is not known, or it has one table alone")
        size = min(len(self.table), self.length)
        line = torch.arange(size)
        if size * self.view.dim > 2**22:
            line = torch.cat((line[:128], torch.linspace(0, size - 1, 4096).long())).unique()
        return line, self.table[line] - found.exact(line), rows.is_held_in(self.table[:512])

    @property
    def identity(self) -> str:
        """One line."""
        found = self.sinusoid
        beside = "" if self.scale is None else f", added to content times {_said(self.scale)}"
        if found is not None:
            line, errors, _ = self.errors_to_the_end()
            off = errors.abs().amax(1)
            end = rows.parting(line, off)
            recipe = of_sinusoidal(found.encoding, self.view.scale) if found.is_plain else ""
            ours = recipe or f"posenc.Sinusoidal({_arguments(found, self.scale)})"
            ours += "" if found.is_plain else f" times {found.size:.4g}"
            held = rows.held_against(ours, off[:end].max().item(), int(line[:end][-1]))
            return f"{found.said}: {held}"
        if self.square is not None:
            return f"a table of {self.square.said} within {self.square.off:.1g}"
        if self.is_table:
            count = int(self.table.any(1).sum())  # a class token may be left without
            return f"a learned table, at least {count:,} rows of {self.view.dim}{beside}"
        return self.of_grid and self.of_grid + beside


def _said(scale: Scale) -> str:
    return "the root of its width" if scale == "sqrt_dim" else f"{scale}"


def _arguments(found: sinusoids.Sinusoid, scale: Scale) -> str:
    ours = found.encoding
    said = [str(ours.dim)]
    said += [f"base={ours.base:.10g}"] if ours.base != 10_000 else []
    name = ours.convention.name
    named = repr(name) if name in CONVENTIONS else name  # one with arguments is called
    said += [f"convention={named}"] if name != "paper" else []
    said += [f"offset={ours.offset}"] if ours.offset else []
    return ", ".join(said + ([f"scale={scale!r}"] if scale is not None else []))
