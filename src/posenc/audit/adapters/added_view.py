"""Something that adds to embeddings, or gives the table to add, as the checker sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.sizes import lengths_of, most_taken
from posenc.audit.report import NotAskedError
from posenc.audit.subjects import Subject

SEQ = 7

Run = Callable[[Any, Tensor, Tensor | None], Tensor]


@dataclass
class Added:
    """Something that says what to add to ``[batch, seq, dim]``.

    ``run`` takes a copy, x ``[batch, seq, dim]`` and positions ``[seq]``, or ``[batch, seq]``.
    """

    subject: Subject
    run: Run
    text: str  # how it is called, as Python
    dim: int  # width of the embeddings
    layout: str  # the order of axes that it takes
    declared: bool  # whether its author or the caller says that order
    moves: str | None  # whether positions can be said: "positions", "offset" or nothing
    scale: float | None = None  # what embeddings are multiplied with; None for the table alone
    seq: int = SEQ  # a length that it takes
    fixed: bool = False  # whether it takes that length alone
    grid: tuple[int, int] | None = None  # height and width, where a row is a grid
    masked: Callable[[Any, Tensor, Tensor], Tensor] | None = None  # the call with a padding mask
    unsaid: Run | None = None  # the same call without positions, where these may be left out
    others: tuple[tuple[str, Run], ...] = ()  # the same with another parameter for positions
    by_guess: bool = False  # whether nothing but numbers says that an argument is positions
    given: Mapping[str, Any] = field(default_factory=dict)  # what the caller said of the call
    longest_found: dict[int, int] = field(default_factory=dict)

    kind = "added"

    def call(self, x: Tensor, positions: Tensor | None = None, by: Any = None) -> Tensor:
        """What it makes of x ``[batch, seq, dim]``."""
        return self.run(self.subject.fresh() if by is None else by, x.clone(), positions)

    def added(
        self,
        seq: int | None = None,
        *,
        positions: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
        by: Any = None,
    ) -> Tensor:
        """What is added to embeddings of zeros, ``[seq, dim]``."""
        seq = seq or (len(positions) if positions is not None else self.seq)
        return self.call(torch.zeros(1, seq, self.dim, dtype=dtype), positions, by)[0]

    def rows(self, seq: int, by: Any = None) -> Tensor:
        """Row p is what position p receives, ``[seq, dim]`` float64."""
        return self.added(seq, by=by).double()

    def longest(self, most: int) -> int:
        """The most positions up to ``most`` for which it answers."""
        if self.fixed:
            return self.seq
        if most not in self.longest_found:
            self.longest_found[most] = self._longest(max(self.seq, min(most, 2**24 // self.dim)))
        return self.longest_found[most]

    def _longest(self, most: int) -> int:
        for count in (most, *(n for n in lengths_of(self.subject.fresh()) if self.seq <= n < most)):
            if self.takes(count) and (count == most or not self.takes(count + 1)):
                return count
        if not (found := most_taken(self.takes, most)):
            raise NotAskedError("it takes none of the lengths that were tried")
        return found

    def takes(self, seq: int) -> bool:
        """Whether it answers for so many positions."""
        try:
            self.added(seq)
        except NotAskedError:
            return False
        return True

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        axes = layouts.SAID_OF_EMBEDDINGS[self.layout]
        what = "gives a table to add" if self.scale is None else f"adds to {axes}"
        where = f", first position said by {self.moves}" if self.moves else ""
        return f"{what} of width {self.dim}{where}; called as {self.text}"
