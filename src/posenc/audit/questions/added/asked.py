"""A subject that adds: the rows that it gives, and how it is asked for them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.audit.adapters.added import Added
from posenc.audit.adapters.calls import guarded
from posenc.audit.adapters.sizes import lengths_of
from posenc.audit.questions import rows
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.questions.inquiry import ROUNDED, ROUNDING, Inquiry
from posenc.audit.questions.traces import apart
from posenc.audit.questions.ways import Way
from posenc.audit.report import FewerRowsError, NotAskedError
from posenc.audit.signatures import parameters_of

LARGE = 1024.0
"""A size of content that no clamp is meant for."""


@dataclass
class AddedRows(Inquiry):
    """A subject that adds: the rows that it gives, and how it is asked for them."""

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

    def of_equal_tokens(self) -> list[Tensor]:
        batch = 1 if self.view.layout == "sd" else 3
        return [self.view.call(self.content(self.view.seq, batch))]

    def sample(self) -> Tensor:
        return self.content(self.view.seq)

    def own_ways(self, x: Tensor, plain: Tensor, side: str) -> Iterator[Way]:
        scale = self.view.scale

        def beside(size: float) -> tuple[Tensor, Tensor]:
            some = size * self.drawn(x)
            return self.made(some).double() - (scale or 0.0) * some.double(), plain

        for size in () if scale is None else (1.0, LARGE):
            name = f"beside content of size {size:,.0f}"
            yield name, self.dense * size, lambda size=size: beside(size)

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
        table = self.view.added().double()
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

    def not_said(self) -> Answer:
        refused = "".join(f"; {name} was refused" for name, _ in self.view.others)
        raise NotAskedError(f"the first position cannot be said{refused}")

    def edges(self) -> list[int]:
        return [] if self.view.fixed else [len(self.table)]

    def row_at(self, line: Tensor) -> Tensor:
        return self.view.added(positions=line)

    def far_rows(
        self, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> tuple[list[int], list[Tensor]]:
        seq = self.view.longest(min(self.length, 4096))
        made = self.view.added(seq, dtype=dtype, by=by).double()
        return list(range(seq)), [made]

    # What it trains.

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
