"""A subject that rotates, with what several questions need of it."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.rotary import HEADS, RotaryView
from posenc.audit.adapters.sizes import most_taken
from posenc.audit.identity import rotations, structures
from posenc.audit.questions import rows
from posenc.audit.questions.asking import Answer
from posenc.audit.questions.inquiry import Inquiry
from posenc.audit.questions.rotary import decoding, ways
from posenc.audit.questions.traces import apart
from posenc.audit.questions.ways import Way
from posenc.audit.report import NotAskedError
from posenc.encodings.queries_keys import Rotary

COARSE = 2e-2
"""What cosines of 16 bits cost beside any other rounding."""

FIRST = 9
"""So many first tokens are held to what they are in a short row."""


@dataclass
class RotaryInquiry(Inquiry):
    """A subject that rotates, with what several questions need of it."""

    view: RotaryView
    meant: Any = None  # a rotary encoding by its configuration, with its axes if it has several

    what: ClassVar[str] = "the rotation"
    words: ClassVar[str] = "scores move"
    lossy: ClassVar[float] = 0.01  # what rounding queries to bfloat16 does to a score anyway
    marks: ClassVar[tuple[int, ...]] = (10, 63, 257, 1024, 2049, 8192)
    long_rows: ClassVar[tuple[int, ...]] = (600, 130, 66)

    @property
    def expected(self) -> Rotary | None:
        """What its configuration means along a line."""
        return getattr(self.meant, "rotary", self.meant)

    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(batch, HEADS, seq, self.view.dim, generator=generator)

    def called(self, run: Any, x: Tensor, at: Tensor | None, by: Any = None) -> list[Tensor]:
        keys = x[:, : self.view.kv_heads] if x.shape[1] == HEADS else x
        line = (torch.arange(x.shape[2]) if at is None else at).expand(len(x), -1)
        made = replace(self.view, run=run).both(x, keys, line, by)
        return [side for side in made if side is not None]

    @property
    def sides(self) -> tuple[str, ...]:
        return self.view.sides

    @property
    def by_rows(self) -> bool:
        return self.view.moves == "rows" and self.view.layout not in layouts.ONE_ROW

    @property
    def gives_tables(self) -> bool:
        return bool(self.view.applied)

    @property
    def is_trained(self) -> bool:
        thing = self.view.subject.fresh()
        return isinstance(thing, nn.Module) and any(True for _ in thing.parameters())

    @property
    def longest(self) -> int:
        far = max(2 * (self.view.built_for or 0), self.length + 1)
        return min(far, 2**23 // (self.view.dim * HEADS))

    @property
    def end(self) -> int:
        return min(self.view.built_for or self.length, self.length)

    # Matrices, and what they are.

    @cached_property
    def near(self) -> Tensor:
        """R(0) … R(n − 1) of queries, float64."""
        near = structures.NEAR if self.view.dim <= 128 else 16
        return self.view.matrices(min(near, max(self.view.built_for or near, 8)))

    @cached_property
    def keys(self) -> Tensor:
        """R(0) … R(n − 1) of keys, float64."""
        return self.view.matrices(len(self.near), side="k")

    @cached_property
    def shape(self) -> structures.Structure:
        """Its pairs and frequencies; of keys, where queries stay as they are."""
        found = structures.structure(self.near)
        only_keys = not found.firsts and self.view.sees_keys
        return structures.structure(self.keys) if only_keys else found

    @cached_property
    def side(self) -> str:
        """The side that turns: queries, unless only keys do."""
        still = not structures.structure(self.near).firsts
        return "k" if still and self.view.sees_keys else "q"

    @cached_property
    def rotation(self) -> rotations.Rotation | None:
        """The schedule that it follows, if it is one that is known."""
        expected = self.expected.frequencies if self.expected is not None else None
        return rotations.identify(self.shape, expected, coarse=self.coarse)

    @cached_property
    def coarse(self) -> bool:
        """Whether its cosines are numbers of 16 bits."""
        moving = self.near[1:][:, self.shape.firsts, self.shape.firsts]
        return rows.is_held_in(moving) is not None

    @property
    def dense(self) -> float:
        return max(1e-5, COARSE if self.coarse else 0.0)

    @property
    def rounded(self) -> str:
        return self.rotation.rounded if self.rotation is not None else ""

    # Far positions.

    def table_at(self, line: list[int]) -> Tensor:
        """Cosines and sines of the pairs at positions, as content shows them."""
        made = self.view.at(line, self.shape.probe(), self.side)
        return self.shape.table(made)

    def row_at(self, line: Tensor) -> Tensor:
        return self.view.at(line.tolist(), self.shape.probe(), self.side)

    @cached_property
    def line(self) -> list[int]:
        """Positions at which rows are held against each other and against exact ones."""
        n, built = self.length, self.view.built_for or self.length
        if not self.view.moves and built * self.view.dim * HEADS > 2**25:
            built = 512
        some = {*range(64), *range(254, 260), *range(1022, 1027), *range(2046, 2052)}
        some |= {p + k for p in (4095, 8191, n - 3) for k in range(3)}
        edges = {edge + k for edge in (built, 2 * built) for k in (-2, -1, 0, 1, 2)}
        return sorted({p for p in some if 0 <= p < n} | {p for p in edges if p >= 0})

    @cached_property
    def far(self) -> tuple[list[int], Tensor, str]:
        """As many of these positions as it takes, its rows there, and where it refuses."""
        if not self.shape.firsts:
            raise NotAskedError("nothing turns")
        line, refused = self.line, ""
        try:
            self._rows(line)
        except NotAskedError as reason:
            refused = str(reason)
            taken = most_taken(lambda n: self._takes(line[:n]), len(line) - 1)
            if not taken:
                raise NotAskedError(f"it takes no positions: {refused}") from None
            before = line[taken - 1]
            between = most_taken(lambda n: self._takes([before + n]), line[taken] - before - 1)
            line = line[:taken] + ([before + between] if between else [])
        every = list(range(line[-1] + 1))
        if self.view.moves != "offset" and len(every) * self.view.dim * HEADS <= 2**23:
            with suppress(NotAskedError):  # all positions between these, in one call
                return every, self._rows(every), refused
        return line, self._rows(line), refused

    def _takes(self, line: list[int]) -> bool:
        try:
            self._rows(line)
        except NotAskedError:
            return False
        return True

    def _rows(self, line: list[int]) -> Tensor:
        """Cosines and sines; positions beyond what it is built for in a call of their own."""
        built = self.view.built_for or self.length
        parts = [p for p in line if p < built], [p for p in line if p >= built]
        return torch.cat([self.table_at(part) for part in parts if part])

    def edges(self) -> list[int]:
        line, _, refused = self.far
        found = (line[-1] + 1 if refused else None, self.view.built_for)
        return list(dict.fromkeys(each for each in found if each))

    @property
    def below(self) -> list[int]:
        """Those of its positions that count."""
        return [p for p in self.far[0] if p < self.length] or self.far[0]

    def far_rows(
        self, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> tuple[list[int], list[Tensor]]:
        at, probe = self.below, self.shape.probe().to(dtype)
        return at, [self.view.at(at, probe, side, by) for side in self.sides]

    def farthest(self, made: list[Tensor], exact: list[Tensor]) -> tuple[float, int]:
        """How far rows are off, beside their size, and which is farthest.

        Each side is held to its own size, and the sizes of both together to what they were: those
        of xPos grow and shrink, and cancel in scores.
        """
        sizes = [
            [x.abs().amax(1, keepdim=True).clamp(min=1e-30) for x in side] for side in (made, exact)
        ]
        offs = [
            (x / own - y / theirs).abs().amax(1)
            for x, y, own, theirs in zip(made, exact, *sizes, strict=True)
        ]
        both = [torch.stack(part).log().mean(0) * 2 for part in sizes]
        off = torch.stack([*offs, (both[0] - both[1]).expm1().abs().squeeze(1)]).amax(0)
        row = int(off.nan_to_num(torch.inf).argmax())
        return off[row].item(), row

    # What it is, and how precisely.

    @property
    def identity(self) -> str:
        """One line."""
        found = self.rotation
        if found is None:
            return ""
        line = self.below[: self.parting]
        off = self.errors_at(line).abs().max().item()
        where = "" if self.shape.sense > 0 else " turned backwards, by −p at position p,"
        if (begin := self.shape.begin) != 0:
            where += f" from position {begin} on," if begin else " but for its first angle,"
        several = f" ({self.view.applied})" if self.view.is_one_of_several else ""
        if self.off_factor:
            return f"{found.said}: {found.ours} times {self.shape.size / found.factor:.5g}{where}"
        return f"{found.said}: {rows.held_against(found.ours + where, off, line[-1])}{several}"

    @property
    def off_factor(self) -> bool:
        """Whether its cosines have another factor than belongs to its schedule."""
        found = self.rotation
        allowed = 1e-3 if self.coarse else 1e-5
        return found is not None and abs(self.shape.size - found.factor) > allowed

    def errors_at(self, line: list[int]) -> Tensor:
        """By how much the first rows are off, one row for each of the positions ``line``."""
        assert self.rotation is not None
        made = self.far[1][: len(line)] / self.shape.size
        cos, sin = self.rotation.exact(torch.tensor(line))
        return made - torch.cat((cos, self.shape.sense * sin), -1)

    def errors_to_the_end(self) -> tuple[Tensor, Tensor, str | None]:
        if self.rotation is None:
            raise NotAskedError("what it should be is not known")
        return torch.tensor(self.below), self.errors_at(self.below), rows.is_held_in(self.far[1])

    def moved(self, errors: Tensor) -> Tensor:
        """The standard deviation of q·k / √d for random q and k of size one, by such an error."""
        return errors.square().sum(1).mul(2).sqrt() / errors.shape[1] ** 0.5

    @cached_property
    def parting(self) -> int | None:
        """From which of the positions on it is another function, which no rounding explains."""
        return rows.parting(torch.tensor(self.below), self.errors_at(self.below).abs().amax(1))

    # How it is asked.

    def of_equal_tokens(self) -> list[Tensor]:
        batch = 1 if self.view.layout in layouts.ONE_ROW else 3
        return self.called(self.view.run, torch.ones(batch, HEADS, 6, self.view.dim), None)

    def own_ways(self, x: Tensor, plain: Tensor, side: str) -> Iterable[Way]:
        return ways.own(self, x, plain, side)

    def excused(self, whole: list[Tensor], part: list[Tensor]) -> str | None:
        if len(whole) < 2:
            return None
        scores, fewer = (q[:, : k.shape[1]] @ k.mT for q, k in (whole, part))
        n = fewer.shape[-1]
        if apart(scores[:, :, :n, :n], fewer) >= 1e-4:
            return None
        return f"tokens differ between rows of {n} and {scores.shape[-1]}, but their scores do not"

    def in_longer_rows(self) -> tuple[str, float] | None:
        built, allowed = self.view.built_for, 1e-2 if self.coarse else 1e-4
        if not self.shape.firsts:
            return None
        if built and self.view.moves in ("rows", "line"):
            near, far = [1, 5, 40], 2 * built
            with suppress(NotAskedError):
                alone, beside = self.table_at(near), self.table_at([*near, far])[:-1]
                if (off := apart(alone, beside)) >= 1e-5:
                    return f"tokens at 1, 5 and 40 turn otherwise beside one at {far:,}", off
        with suppress(NotAskedError):
            first, last = self.line[:FIRST], self.far[0][-1] + 1
            off = apart(self.far[1][: len(first)], self.table_at(first))
            said = f"the first {FIRST} tokens of {last:,} turn otherwise than in a row of their own"
            return (said, off) if off >= allowed and not self.shape.odd else None
        return None

    def decodes_otherwise(self) -> Answer | None:
        return decoding.otherwise(self)

    def not_said(self) -> Answer:
        return decoding.not_said(self)

    def trained(self, thing: Any) -> Iterator[tuple[Any, Tensor | None, bool]]:
        x, at = self.content(6).requires_grad_(), torch.arange(6)[None]
        call = lambda: self.view.run(thing, x, x[:, : self.view.kv_heads], at)  # noqa: E731
        yield lambda: call()[0], x, True
        if self.view.sees_keys:
            yield lambda: call()[1], x, False
