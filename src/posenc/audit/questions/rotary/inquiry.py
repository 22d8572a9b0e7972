"""A subject that rotates: how it is asked, its matrices, and the schedule that it follows."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.audit.adapters.calls import answers, asking, most_taken
from posenc.audit.adapters.rotary import HEADS, RotaryView
from posenc.audit.identity import rotations, structures
from posenc.audit.questions import rows
from posenc.audit.questions.asking import LARGE, ROUNDING, Inquiry, Way, needed
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError, Severity
from posenc.encodings.queries_keys import Rotary

COARSE = 2e-2  # what cosines of 16 bits cost beside any other rounding


@dataclass
class RotaryInquiry(Inquiry):
    """A subject that rotates."""

    view: RotaryView
    meant: Any = None  # a rotary encoding by its configuration, with its axes if it has several

    what: ClassVar[str] = "the rotation"
    words: ClassVar[str] = "scores move"
    lossy: ClassVar[float] = 0.01  # what rounding queries to bfloat16 does to a score anyway
    marks: ClassVar[tuple[int, ...]] = (10, 63, 257, 1024, 2049, 8192)
    unknown: ClassVar[Severity] = "wrong"  # how much frequencies count that are not known here

    @property
    def expected(self) -> Rotary | None:
        """What its configuration means along a line."""
        return getattr(self.meant, "rotary", self.meant)

    # How it is asked.

    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(batch, HEADS, seq, self.view.dim, generator=generator)

    def called(self, x: Tensor, at: Tensor | None = None, by: Any = None) -> list[Tensor]:
        keys = x[:, : self.view.kv_heads] if x.shape[1] == HEADS else x
        line = (torch.arange(x.shape[2]) if at is None else at).expand(len(x), -1)
        return [side for side in self.view.both(x, keys, line, by) if side is not None]

    @property
    def longest(self) -> int:
        far = max(2 * (self.view.built_for or 0), self.length + 1)
        return min(far, 2**23 // (self.view.dim * HEADS))

    @property
    def end(self) -> int:
        """How many positions there are to be asked for."""
        return min(self.view.built_for or self.length, self.length)

    @property
    def dense(self) -> float:
        return COARSE if self.coarse else ROUNDING

    @property
    def loose(self) -> float:
        """What numbers of two matrices may be apart."""
        return COARSE if self.coarse else 1e-4

    def own_ways(self, x: Tensor, plain: Tensor) -> Iterator[Way]:
        close = self.dense

        def lying(lie: Any) -> tuple[Tensor, Tensor]:
            with asking(lie=lie):
                return self.whole(x), plain

        def among_more() -> tuple[Tensor, Tensor]:
            many, few = self.called(x.repeat(1, 3, 1, 1)), self.called(x)
            shared = [a[:, -HEADS:][:, : b.shape[1]] for a, b in zip(many, few, strict=True)]
            return torch.cat(shared, 1), plain

        def summed() -> tuple[Tensor, Tensor]:
            some = (x.double(), x[:, : self.view.kv_heads].double())
            each = zip(some, self.view.sides, strict=False)
            turned = [self.view.matrices(x.shape[2], side) @ part[..., None] for part, side in each]
            return plain, torch.cat(turned, 1)[..., 0]

        strided = lambda x: x.repeat_interleave(2, -1)[..., ::2]  # noqa: E731
        transposed = lambda x: x.transpose(0, -2).contiguous().transpose(0, -2)  # noqa: E731
        yield "in strided memory", close, partial(lying, strided)
        yield "in transposed memory", close, partial(lying, transposed)
        yield f"{LARGE:g} times as large", close, lambda: (self.whole(LARGE * x) / LARGE, plain)
        yield "as sums of what each channel gives", close, summed
        if self.batch(2) > 1 and self.view.layout != "bsx":
            yield "among 12 heads", close, among_more

    def excused(self, whole: list[Tensor], part: list[Tensor]) -> str | None:
        """Why tokens may differ between rows of two lengths: scores do not."""
        if len(whole) < 2:
            return None
        scores, fewer = (q[:, : k.shape[1]] @ k.mT for q, k in (whole, part))
        n = fewer.shape[-1]
        if apart(scores[:, :, :n, :n], fewer) >= 1e-4:
            return None
        return f"tokens differ between rows of {n} and {scores.shape[-1]}, but their scores do not"

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
    def side(self) -> str:
        """The side that turns: queries, unless only keys do."""
        still = not structures.structure(self.near).firsts
        return "k" if still and self.view.sees_keys else "q"

    @cached_property
    def shape(self) -> structures.Structure:
        """The pairs and frequencies of that side."""
        return structures.structure(self.keys if self.side == "k" else self.near)

    @cached_property
    def rotation(self) -> rotations.Rotation | None:
        """The schedule that it follows, if it is one that is known."""
        expected = getattr(self.expected, "frequencies", None)
        return rotations.identify(self.shape, expected, coarse=self.coarse)

    @cached_property
    def coarse(self) -> bool:
        """Whether its cosines are numbers of 16 bits."""
        moving = self.near[1:][:, self.shape.firsts, self.shape.firsts]
        return bool(rows.is_held_in(moving))

    # Far positions.

    def table_at(self, line: list[int]) -> Tensor:
        """Cosines and sines of the pairs at positions, as content shows them."""
        return self.shape.table(self.view.at(line, self.shape.probe(), self.side))

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
    def far(self) -> tuple[list[int], Tensor, NotAskedError | None]:
        """As many of these positions as it takes, its rows there, and why more are refused."""
        needed(self.shape.firsts, "nothing turns")
        line, refused = self.line, None
        try:
            self.table_at(line)
        except NotAskedError as reason:
            refused = reason
            takes = lambda p: answers(lambda: self.table_at([p]))  # noqa: E731
            last = needed(most_taken(takes, line[-1]), f"it takes no positions: {refused}")
            line = [*(p for p in line if p < last), last]
        every = list(range(line[-1] + 1))
        if self.view.moves != "offset" and len(every) * self.view.dim * HEADS <= 2**23:
            with suppress(NotAskedError):  # all positions between these, in one call
                return every, self.table_at(every), refused
        return line, self.table_at(line), refused

    def beside_far_tokens(self) -> float:
        """How far first rows of a long call are from those of a short one."""
        if self.shape.odd or not self.shape.firsts:
            return 0.0
        return apart(self.far[1][:9], self.table_at(list(range(9))))

    @property
    def below(self) -> list[int]:
        """Those of its positions that count."""
        return [p for p in self.far[0] if p < self.length] or self.far[0]

    def far_rows(self, dtype: torch.dtype = torch.float32, by: Any = None) -> list[Tensor]:
        """What tokens there come to, for each side."""
        probe = self.shape.probe().to(dtype)
        return [self.view.at(self.below, probe, side, by) for side in self.view.sides]

    # How precise it is.

    @property
    def off_factor(self) -> bool:
        """Whether its cosines have another factor than belongs to its schedule."""
        found = self.rotation
        allowed = 1e-3 if self.coarse else 1e-5
        return found is not None and abs(self.shape.size - found.factor) > allowed

    def errors_to_the_end(self) -> tuple[Tensor, Tensor, Tensor, str, str]:
        """Positions, errors, how much these matter, and dtypes that hold frequencies and table."""
        found = needed(self.rotation, "what it should be is not known")
        line = torch.tensor(self.below)
        made = self.far[1][: len(line)] / self.shape.size
        cos, sin = found.exact(line)
        errors = made - torch.cat((cos, self.shape.sense * sin), -1)
        # the standard deviation of q·k / √d for random q and k of size one, by such an error
        moved = errors.square().sum(1).mul(2).sqrt() / errors.shape[1] ** 0.5
        return line, errors, moved, found.rounded, rows.is_held_in(self.far[1])

    @property
    def identity(self) -> str:
        """One line."""
        found = self.rotation
        if found is None:
            return ""
        line, errors, *_ = self.errors_to_the_end()
        where = "" if self.shape.sense > 0 else " turned backwards, by −p at position p,"
        if (begin := self.shape.begin) != 0:
            where += f" from position {begin} on," if begin else " but for its first angle,"
        several = f" ({self.view.applied})" if self.view.is_one_of_several else ""
        if self.off_factor:
            return f"{found.said}: {found.ours} times {self.shape.size / found.factor:.5g}{where}"
        return f"{found.said}: {rows.held_against(found.ours + where, line, errors)}{several}"
