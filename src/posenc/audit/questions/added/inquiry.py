"""A subject that adds, with what it is and what it learns."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import asking
from posenc.audit.adapters.sizes import varies
from posenc.audit.identity import sinusoids
from posenc.audit.identity.recipes import of_sinusoidal
from posenc.audit.questions import rows
from posenc.audit.questions.added.asked import AddedRows
from posenc.audit.questions.inquiry import ROUNDING
from posenc.audit.questions.traces import apart
from posenc.audit.report import NotAskedError
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

OF_SQUARES = ("mae", "rt_detr", "timm", "positional_encodings")
"""The forms of ``AxialSinusoidal`` that images without padding are encoded by."""

TOKENS = ((0, ""), (1, " behind 1 of zeros"), (1, " before 1 of zeros"))
"""How many tokens stand beside the patches of a square image, and where these stand."""


def _side(count: int) -> int:
    """The side of a square of so many patches; 0 where there is none."""
    side = isqrt(max(count, 0))
    return side if side >= 3 and side**2 == count else 0


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
class AddedInquiry(AddedRows):
    """A subject that adds, with what it is and what it learns."""

    # What it learns.

    @property
    def is_trained(self) -> bool:
        return self.learns

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
            with asking(gradients=True):
                made = self.view.added(by=thing).float() @ weights
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

    @property
    def scale(self) -> Scale:
        """What content is multiplied with, as an argument of ours; None for nothing."""
        found, root = self.view.scale or 1.0, self.view.dim**0.5
        if abs(found - 1) < SAME:
            return None
        return "sqrt_dim" if abs(found / root - 1) < SAME else float(f"{found:.4g}")

    # What it is.

    def fitted(self, coarse: float = sinusoids.CLOSE) -> sinusoids.Sinusoid | None:
        """The one that its first rows are, as far as this; a learned size may be below 0."""
        found = sinusoids.identify(self.near, coarse)
        if found is None and self.factor is not None:
            turned = sinusoids.identify(-self.near, coarse)
            return turned and replace(turned, size=-turned.size)
        return found

    @cached_property
    def sinusoid(self) -> sinusoids.Sinusoid | None:
        """The sinusoidal encoding that it is, if it is one."""
        if self.view.grid is not None or len(self.near) < 4:
            return None
        found = self.fitted()
        if found is None and (held := rows.is_held_in(self.near)):
            found = self.fitted(sinusoids.COARSE[held])
        return found

    @property
    def rounded(self) -> str:
        return self.sinusoid.rounded if self.sinusoid is not None else ""

    @cached_property
    def patches(self) -> Tensor | None:
        """Its rows as those of the patches of a square image, ``[side, side, dim]``."""
        count = self.view.longest(LARGEST) if self.view.grid is None else 0
        for before in (0, 1):  # a class token
            if side := _side(count - before):
                return self.view.rows(count)[before:].unflatten(0, (side, side))
        return None

    @cached_property
    def square(self) -> Square | None:
        """The encoding of square images that it is, if it is one.

        A class token of zeros may stand before the patches or behind them.
        """
        view = self.view
        if view.grid is not None or self.sinusoid is not None or view.dim % 4:
            return None
        count = view.longest(LARGEST)
        for prefix, beside in TOKENS:
            if not (side := _side(count - prefix)):
                continue
            points, table = prefixed(grid(side, side), prefix), view.rows(count)
            table = table.roll(1, 0) if "before" in beside else table
            for form in OF_SQUARES:
                encoding = AxialSinusoidal(view.dim, form, axes=2, scale=self.scale)
                off = apart(encoding.table(points, dtype=torch.float64), table)
                if off < ROUNDING:
                    return Square(encoding, side, beside, off)
        return None

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

    @cached_property
    def of_grid(self) -> str:
        """A grid encoding in words: each half of the channels is sinusoidal in one axis."""
        if self.view.grid is None or self.view.dim % 2 or min(self.view.grid) < 4:
            return ""
        height, width = self.view.grid
        halves = self.view.added().double().unflatten(0, (height, width)).chunk(2, -1)
        for first, second in (("width", "height"), ("height", "width")):
            across, down = halves if first == "width" else halves[::-1]
            if max(varies(across, 0), varies(down, 1)) >= ROUNDING:
                continue
            found = sinusoids.identify(across[0]), sinusoids.identify(down[:, 0])
            if found[0] is None or found[1] is None:
                continue
            said = [each.said for each in (found if first == "width" else found[::-1]) if each]
            each = f"each {said[0]}" if said[0] == said[1] else ", and ".join(said)
            return (
                f"a grid encoding: {first} in the first half of the channels, {second} in the "
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
        found, scale = self.sinusoid, self.scale
        times = "the root of its width" if scale == "sqrt_dim" else f"{scale}"
        beside = "" if scale is None else f", added to content times {times}"
        if found is not None:
            line, errors, _ = self.errors_to_the_end()
            off = errors.abs().amax(1)
            end = rows.parting(line, off)
            recipe = of_sinusoidal(found.encoding, self.view.scale) if found.is_plain else ""
            ours = recipe or f"posenc.Sinusoidal({_arguments(found, scale)})"
            ours += "" if found.is_plain else f" times {found.size:.4g}"
            held = rows.held_against(ours, off[:end].max().item(), int(line[:end][-1]))
            return f"{found.said}: {held}"
        if self.square is not None:
            return f"a table of {self.square.said} within {self.square.off:.1g}"
        if self.is_table:
            count = int(self.table.any(1).sum())  # a class token may be left without
            return f"a learned table, at least {count:,} rows of {self.view.dim}{beside}"
        return self.of_grid and self.of_grid + beside


def _arguments(found: sinusoids.Sinusoid, scale: Scale) -> str:
    ours = found.encoding
    name = ours.convention.name
    named = repr(name) if name in CONVENTIONS else name  # one with arguments is called
    said = [
        str(ours.dim),
        f"base={ours.base:.10g}" if ours.base != 10_000 else "",
        f"convention={named}" if name != "paper" else "",
        f"offset={ours.offset}" if ours.offset else "",
        f"scale={scale!r}" if scale is not None else "",
    ]
    return ", ".join(filter(None, said))
