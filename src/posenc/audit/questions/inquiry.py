"""A subject whose tokens receive something by their place, with what several questions need."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.audit.questions.asking import Answer
from posenc.audit.questions.traces import apart
from posenc.audit.questions.ways import Way
from posenc.audit.report import NotAskedError

ROUNDING = 1e-5
"""What two ways to compute one number in float32 may be apart."""

ROUNDED = 5 * 2.0**-8
"""What rounding to bfloat16 costs, of the size of what is rounded."""

STARTS = torch.tensor([0, 5, 1, 3, 2])
"""Where rows of a batch begin, whose padding is on the left."""

ANYHOW = [7, 3, 19, 3, 0]
"""Positions in no order, one of them twice."""


def listed(line: Tensor) -> str:
    """Positions in words."""
    return ", ".join(f"{p:,}" for p in line.tolist())


@dataclass
class Inquiry(ABC):
    """What the generic questions ask, by the data and the calls of a place."""

    view: Any  # how the subject is called
    length: int  # up to where precision counts
    errors: dict[int, float] = field(default_factory=dict, kw_only=True)  # by position

    what: ClassVar[str] = ""  # what a token receives
    words: ClassVar[str] = ""  # what an error does, in words that go before "by"
    lossy: ClassVar[float] = 0.0  # what it may do
    decoded: ClassVar[tuple[int, ...]] = (2, 3, 4, 5, 6, 7, 8)  # tokens that are asked alone
    long_rows: ClassVar[tuple[int, ...]] = ()  # whose far tokens are held against themselves alone
    of_rows: ClassVar[str] = "padding-shifts-positions"  # where rows take positions of others
    counts_rows: ClassVar[bool] = False  # whether as many rows must differ in 16 bits as can
    in_float16: ClassVar[float] = 2.0**-8  # what float16 may cost
    marks: ClassVar[tuple[int, ...]] = (10, 100, 1_000, 10_000, 100_000)  # errors are told to these

    # What a place says.

    @abstractmethod
    def content(self, seq: int, batch: int = 1, seed: int = 5) -> Tensor:
        """So many tokens to ask with."""

    @abstractmethod
    def called(self, run: Any, x: Tensor, at: Tensor | None, by: Any = None) -> list[Tensor]:
        """What a call makes of content at positions ``[seq]`` or ``[batch, seq]``, side by side."""

    @cached_property
    @abstractmethod
    def far(self) -> tuple[list[int], Tensor, str]:
        """Positions, what tokens there receive, and where more are refused."""

    @abstractmethod
    def row_at(self, line: Tensor) -> Tensor:
        """What tokens at some positions receive."""

    @abstractmethod
    def far_rows(
        self, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> tuple[list[int], list[Tensor]]:
        """Some positions below the length, and what tokens there receive, for each side."""

    @abstractmethod
    def errors_to_the_end(self) -> tuple[Tensor, Tensor, str | None]:
        """Positions, errors there, and the 16-bit dtype that holds all numbers, if one does."""

    @abstractmethod
    def of_equal_tokens(self) -> list[Tensor]:
        """What equal tokens come to, in equal rows of a batch."""

    @abstractmethod
    def trained(self, thing: Any) -> Iterator[tuple[Any, Tensor | None, bool]]:
        """Calls with the content that needs a gradient, and whether parameters need one too."""

    @cached_property
    @abstractmethod
    def near(self) -> Tensor:
        """What the first positions receive, float64."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """As many tokens as a call before others has."""

    @property
    @abstractmethod
    def by_rows(self) -> bool:
        """Whether each row of a batch may have positions of its own."""

    @property
    @abstractmethod
    def gives_tables(self) -> bool:
        """Whether it gives a table alone, which others join with content."""

    @property
    @abstractmethod
    def is_trained(self) -> bool:
        """Whether it has parameters that shape what tokens receive."""

    # What follows, or is said otherwise by a place.

    @property
    def sides(self) -> tuple[str, ...]:
        """Queries, and keys where these are seen; of what adds, content."""
        return ("q",)

    @property
    def rounded(self) -> str:
        """The dtype to which its frequencies are rounded, if that shows."""
        return ""

    @property
    def dense(self) -> float:
        """What two ways to compute one number may be apart."""
        return ROUNDING

    @property
    def wide(self) -> float:
        """What float64 may be apart from float32."""
        return self.dense

    @property
    def end(self) -> int:
        """How many positions there are to be asked for."""
        return self.length

    def made(self, x: Tensor, at: Tensor | None = None, by: Any = None, side: str = "q") -> Tensor:
        """What becomes of content; of keys where the side is k."""
        sides = self.called(self.view.run, x, at, by)
        if side == "k" and len(sides) < 2:
            raise NotAskedError("what it makes of keys was not seen")
        return sides[side == "k"]

    def most(self, count: int) -> int:
        """As many tokens up to a number as it takes."""
        return count

    def once(self) -> object:
        """Call it."""
        return self.called(self.view.run, self.drawn(self.content(self.most(6))), None)

    def drawn(self, x: Tensor) -> Tensor:
        """Content of the same shape that is not empty."""
        return x

    def sample(self) -> Tensor:
        """Content to be given in other ways."""
        return self.content(9, 2, seed=11)

    def own_ways(self, x: Tensor, plain: Tensor, side: str) -> Iterable[Way]:
        """Other ways to give content, of this place alone."""
        return ()

    def in_longer_rows(self) -> tuple[str, float] | None:
        """What the first tokens of long rows are otherwise than in short ones, and by how much."""
        return None

    def excused(self, whole: list[Tensor], part: list[Tensor]) -> str | None:
        """Why tokens may differ between rows of two lengths."""
        return None

    def ends_silently(self) -> Answer | None:
        """A fault, or an answer, before rows are compared with each other."""
        return None

    def decodes_otherwise(self) -> Answer | None:
        """The answer of what is asked for decoding in a way of its own."""
        return None

    def not_said(self) -> Answer:
        """The answer of what takes no positions."""
        raise NotAskedError("positions cannot be said")

    def edges(self) -> list[int]:
        """Where its positions end, as far as is known."""
        return []

    def trained_otherwise(self, thing: Any) -> Any:
        """A call that trains parameters which content does not."""
        return None

    def lines(self) -> Iterator[Tensor]:
        """Positions of some tokens, near and far, in order and not."""
        limit = self.end
        for first in (5, 50, 130, 1000, limit - 3):
            if 0 <= first <= limit - 3:
                yield torch.arange(first, first + 3)
        if self.view.moves != "offset":
            yield torch.tensor(ANYHOW)
            if limit > 50:
                yield torch.tensor([limit - 1, 2, limit // 2])

    def alone(self, x: Tensor, line: Tensor, side: str) -> Tensor:
        """What tokens come to, each in a call of its own."""
        each = [self.made(x[..., [i], :], line[i : i + 1], side=side) for i in range(len(line))]
        return torch.cat(each, -2)

    def by_other_parameters(self) -> Iterator[tuple[str, float]]:
        """Other parameters that say positions, and how far three tokens are from what they mean."""
        line, view = torch.arange(5, 8), self.view
        whole = self.content(8)
        for name, run in view.others:
            try:
                made = self.called(run, whole[..., line, :], line)
                wanted = self.called(view.run, whole[..., line, :], line)
                if view.unsaid is not None:  # which may count its tokens from another number
                    every = self.called(view.unsaid, whole, torch.arange(8))
                    wanted = [side[..., line, :] for side in every]
            except NotAskedError:
                continue
            yield name, max(apart(a, b) for a, b in zip(made, wanted, strict=False))

    def unsaid_row(self) -> tuple[int, float]:
        """How many tokens without positions were asked, and how far they are from those with."""
        x = self.content(max(1, min(self.end, 2**22 // self.content(1).numel())))
        line = torch.arange(x.shape[-2])
        plain, wanted = (self.called(run, x, line) for run in (self.view.unsaid, self.view.run))
        return len(line), max(apart(a, b) for a, b in zip(plain, wanted, strict=False))

    def moved(self, errors: Tensor) -> Tensor:
        """What errors do."""
        return errors.abs().amax(1)

    def farthest(self, made: list[Tensor], exact: list[Tensor]) -> tuple[float, int]:
        """How far rows are off, beside their size, and which is farthest."""
        off = (made[0] - exact[0]).abs().amax(1) / exact[0].abs().max().clamp(min=1.0)
        row = int(off.nan_to_num(torch.inf).argmax())
        return off[row].item(), row
