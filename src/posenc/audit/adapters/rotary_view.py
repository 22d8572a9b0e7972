"""Something that rotates queries and keys, as the checker sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import Call
from posenc.audit.adapters.sizes import lengths_of
from posenc.audit.report import NotAskedError
from posenc.audit.subjects import Subject

BATCH, HEADS, SEQ = 2, 4, 6

Both = tuple[Tensor, Tensor | None]
Run = Callable[[Any, Tensor, Tensor, Tensor], Both]


@dataclass(frozen=True)
class Way:
    """One way to call something, at positions that are said or applied."""

    call: Call
    moves: str  # how positions are said: "rows", "line", "offset", or "" for not at all
    # from a copy, queries, positions [batch, seq] and a layout: what is said beside content
    beside: Callable[[Any, Tensor, Tensor, str], dict[str, Any]]
    orders: tuple[str, ...] = layouts.LAYOUTS
    source: str = ""  # where cosines and sines come from, as Python
    applied: str = ""  # who applies them, where the subject gives only these, in words

    @property
    def text(self) -> str:
        """How it is called, as Python."""
        return f"{self.call.name}({self.source})" if self.source else self.call.text


@dataclass
class RotaryView:
    """Something that rotates ``[batch, heads, seq, head_dim]``.

    ``run`` takes a copy, q, k and positions ``[batch, seq]``, and gives both rotated; None for keys
    that it does not return.
    """

    subject: Subject
    run: Run
    text: str  # how it is called, as Python
    dim: int  # width of a head
    layout: str  # the order of axes that it takes
    declared: bool  # whether its author or the caller says that order
    moves: str  # how positions are said: "rows", "line", "offset", or "" for not at all
    sees_keys: bool  # whether keys go through the call beside queries
    kv_heads: int  # key heads that it takes beside the query heads
    applied: str = ""  # who applies its cosines and sines, where it gives only these, in words
    unheard: tuple[str, Run] | None = None  # a call that says a first position, without effect
    unsaid: Run | None = None  # the same call without positions, where these may be left out
    others: tuple[tuple[str, Run], ...] = ()  # the same with another parameter for positions
    left: tuple[str, ...] = ()  # other parameters that may move positions, which are never said
    order: Tensor | None = None  # where each channel comes out, if in another order
    limit: int | None = None  # how many positions it takes, where that was seen
    given: Mapping[str, Any] = field(default_factory=dict)  # what the caller said of the call
    fit: int = -1  # how well it fits

    kind = "rotary"
    fixed = False
    seq = SEQ

    def both(self, q: Tensor, k: Tensor, positions: Tensor | None = None, by: Any = None) -> Both:
        """Queries and keys rotated; positions ``[batch, seq]``, from 0 on if not given."""
        if positions is None:
            positions = torch.arange(q.shape[2]).expand(len(q), -1)
        thing = self.subject.fresh() if by is None else by
        q, k = q.clone(), k.clone()
        if self.layout in layouts.ONE_ROW and len(q) > 1:
            each = zip(q.split(1), k.split(1), positions.split(1), strict=True)
            sides = zip(*(self.both(*row, by=thing) for row in each), strict=True)
            queries, keys = (None if x[0] is None else torch.cat(x) for x in sides)
            return queries, keys
        queries, keys = self.run(thing, q, k, positions)
        if self.order is not None:
            queries = queries[..., self.order]
            keys = None if keys is None else keys[..., self.order]
        return queries, keys

    def turned(
        self, x: Tensor, start: int = 0, by: Any = None, side: str = "q", at: Tensor | None = None
    ) -> Tensor:
        """x as queries (or keys), its tokens at start, start + 1, … or at ``at``."""
        line = torch.arange(start, start + x.shape[2]) if at is None else at
        keys = x[:, : self.kv_heads] if x.shape[1] == HEADS else x
        made = self.both(x, keys, line.expand(len(x), -1), by)[side == "k"]
        if made is None:
            raise NotAskedError("it takes one tensor; what it makes of keys was not seen")
        return made

    @property
    def sides(self) -> tuple[str, ...]:
        """Queries, and keys where they are seen, for what is asked of both."""
        return ("q", "k") if self.sees_keys else ("q",)

    def matrices(self, seq: int, side: str = "q", by: Any = None) -> Tensor:
        """What tokens at 0 … seq − 1 are multiplied with, ``[seq, dim, dim]``, float64."""
        basis = torch.eye(self.dim)[:, None, None].expand(-1, HEADS, seq, -1).contiguous()
        return self.turned(basis, by=by, side=side)[:, 0].permute(1, 2, 0).double()

    def at(self, positions: list[int], probe: Tensor, side: str = "q", by: Any = None) -> Tensor:
        """``probe [dim]`` turned at each of some positions, ``[positions, dim]`` float64."""
        content = lambda seq: probe.expand(1, HEADS, seq, -1).contiguous()  # noqa: E731
        if self.moves:
            runs = [positions] if self.moves != "offset" else _consecutive(positions)
            made = [self.turned(content(len(run)), 0, by, side, torch.tensor(run)) for run in runs]
            return torch.cat([each[0, 0] for each in made]).double()
        seq = max(positions) + 1
        if seq * self.dim * HEADS > 2**26:
            raise NotAskedError(f"a row of {seq:,} tokens is too long to be asked")
        return self.turned(content(seq), side=side, by=by)[0, 0, positions].double()

    @property
    def is_one_of_several(self) -> bool:
        """Whether another function beside it could apply its cosines and sines as well."""
        return "several" in self.applied

    @property
    def gives_tables(self) -> bool:
        """Whether it gives cosines and sines whose use was not seen."""
        return self.applied.startswith("it gives")

    @property
    def built_for(self) -> int | None:
        """The length that it says it is built for."""
        return self.limit or next(iter(lengths_of(self.subject.fresh())), None)

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        what = "queries and keys" if self.sees_keys else "queries"
        if self.order is not None:
            what += " (which come out in another order of channels, as products do not see)"
        said = {"rows": ", positions by row", "line": ", positions said", "": ""}
        where = said.get(self.moves, ", first position said by offset")
        told = self.applied and not self.is_one_of_several  # which the line below says
        tail = f"; {self.applied}" if told else ""
        tail += f"; never said: {', '.join(self.left)}" if self.left else ""
        axes = layouts.SAID[self.layout]
        return f"rotates {what} {axes} of width {self.dim}{where}; called as {self.text}{tail}"


def _consecutive(positions: list[int]) -> list[list[int]]:
    """Runs of positions that follow each other."""
    runs: list[list[int]] = []
    for p in positions:
        if runs and p == runs[-1][-1] + 1:
            runs[-1].append(p)
        else:
            runs.append([p])
    return runs
