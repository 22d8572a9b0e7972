"""Something that adds to embeddings, or gives the table to add, and how it is called."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import (
    PLACES,
    Call,
    View,
    answers,
    best,
    calls_of,
    first_answer,
    most_taken,
)
from posenc.audit.adapters.layouts import varies
from posenc.audit.report import CallFailedError, NotAskedError, OtherResultError, UnfitError
from posenc.audit.signatures import declared_layout, lengths_of, widths_of
from posenc.audit.subjects import Subject

BATCH, SEQ = 3, 7
GRIDS = ("bhwd", "bdhw")

SAYS_SIZE = {"x", "positions", "length", "grid", "mask"}  # a call has one at least
KNOWN = SAYS_SIZE | {"offset", "dim", "dtype"}

CHANCE = "it gives other numbers at each call, in eval mode too, as dropout or a table drawn anew"
NO_SUM = "it changes content otherwise than by a sum"
IDS = "equal numbers receive other rows at other places, as ids of tokens do, and positions do not"


@dataclass(kw_only=True)
class Added(View):
    """Something that says what to add.

    ``run`` takes a copy, x ``[batch, seq, dim]``, positions ``[seq]`` or ``[batch, seq]``, and a
    mask.
    """

    seq: int  # a length that it takes
    scale: float | None = None  # what embeddings are multiplied with; None for the table alone
    fixed: bool = False  # whether it takes that length alone
    grid: tuple[int, int] | None = None  # height and width, where a row is a grid
    masked: Callable[..., Tensor] | None = None  # the call with a padding mask
    longest_found: dict[int, int] = field(default_factory=dict)

    kind = "added"

    def call(self, x: Tensor, positions: Tensor | None = None, by: Any = None) -> Tensor:
        """What it makes of x ``[batch, seq, dim]``."""
        return self.run(self.subject.fresh() if by is None else by, x.clone(), positions)

    def added(
        self, seq: int | None = None, *, dtype: torch.dtype = torch.float32, by: Any = None
    ) -> Tensor:
        """What is added to embeddings of zeros, ``[seq, dim]``."""
        return self.call(torch.zeros(1, seq or self.seq, self.dim, dtype=dtype), by=by)[0]

    def rows(self, seq: int) -> Tensor:
        """Row p is what position p receives, ``[seq, dim]`` float64."""
        return self.added(seq).double()

    def takes(self, seq: int) -> bool:
        """Whether it answers for so many positions."""
        return answers(lambda: self.added(seq))

    def longest(self, most: int) -> int:
        """The most positions up to ``most`` for which it answers."""
        if self.fixed:
            return self.seq
        if most not in self.longest_found:
            bound = max(self.seq, min(most, 2**24 // self.dim))
            found = bound if self.takes(bound) else most_taken(self.takes, bound)
            if not found:
                raise NotAskedError("it takes none of the lengths that were tried")
            self.longest_found[most] = found
        return self.longest_found[most]

    @property
    def understood(self) -> str:
        """How it was called and what came."""
        axes = layouts.in_words(layouts.OF_EMBEDDINGS[self.layout], d="dim")
        what = "gives a table to add" if self.scale is None else f"adds to {axes}"
        where = f", first position said by {self.moves}" if self.moves else ""
        return f"{what} of width {self.dim}{where}; called as {self.text}"


# How it is called.


def added_of(
    subject: Subject,
    layout: str | None,
    width: int | None,
    call: Call | None = None,
    *,
    guess: bool = False,
    fixed: bool = False,
) -> Added:
    """How something adds to embeddings; with ``fixed``, at lengths that it seems built for."""
    thing = subject.fresh()
    declared = declared_layout(thing) if call is None else None
    said = layout or (declared if declared in layouts.OF_EMBEDDINGS else None)
    sure = said or getattr(thing, "padding_idx", None) is not None  # of ids, not positions
    usual = [each for each in calls_of(thing) if not (each.by_guess and sure)]
    usual = [each for each in usual if each.by_guess == guess or fixed]
    calls = usual if call is None else [call]
    return best(_views(subject, calls, said, width, fixed), measured, enough=2)


def _views(
    subject: Subject, calls: Iterable[Call], said: str | None, width: int | None, fixed: bool
) -> Iterator[Added]:
    """Every call at every layout and width, each at the first length that it takes."""
    thing = subject.fresh()
    widths = (width,) if width else widths_of(thing)[:8]
    known = [layout for layout in layouts.OF_EMBEDDINGS if said in (None, layout)]
    for moves, way in (way for call in calls for way in call.ways()):
        if not way.required <= KNOWN or not way.said & SAYS_SIZE:
            continue
        for layout, dim in product(known if "x" in way.said else ["sd"], widths):
            # of maps some that are no squares, so that height and width are told apart
            usual = (80, 16) if layout in GRIDS else (SEQ, 16)
            views = [
                _view(subject, way, moves, layout, said is not None, dim, seq)
                for seq in (_lengths(thing) if fixed else usual)
                if seq * dim <= 2**24 and (layout not in GRIDS or min(_grid(seq)) > 1)
            ]
            if views:  # where it takes no length, it is refused with a reason
                yield next((view for view in views if view.takes(view.seq)), views[-1])


def _lengths(thing: Any) -> Iterator[int]:
    """Lengths that it may take alone: a class token may have a row of a table, or none."""
    for n in lengths_of(thing)[:6]:
        yield from (n, n - 1)
        if isqrt(n) ** 2 == n:
            yield n + 1


def _grid(seq: int) -> tuple[int, int]:
    """Height and width of the squarest grid of so many points."""
    return next((n, seq // n) for n in range(isqrt(seq), 0, -1) if seq % n == 0)


def _view(
    subject: Subject, call: Call, moves: str, layout: str, declared: bool, dim: int, seq: int
) -> Added:
    run = partial(_runner, layout)
    is_grid = layout in GRIDS or "grid" in call.required
    takes_mask = "mask" in call.roles and layout in ("bsd", "sd")
    return Added(
        subject=subject, run=run(call), text=call.text, dim=dim, layout=layout, declared=declared,
        moves=moves, seq=seq, grid=_grid(seq) if is_grid else None, fixed=is_grid,
        by_guess=call.by_guess,
        masked=run(call.using(*call.uses - PLACES, "mask")) if takes_mask else None,
        **call.beside(run),
    )  # fmt: skip


def _runner(layout: str, call: Call) -> Callable[..., Tensor]:
    taken: list[int] = []  # the shape of positions that it takes, once that is known

    def run(thing: Any, x: Tensor, positions: Tensor | None, mask: Tensor | None = None) -> Tensor:
        seq, dim = x.shape[1], x.shape[2]
        here = _grid(seq)
        line = torch.arange(seq) if positions is None else positions
        values = {
            "x": layouts.arranged(x.unflatten(1, here), "byxd", layouts.OF_EMBEDDINGS[layout]),
            "offset": int(line.flatten()[0]), "length": seq, "dim": dim, "dtype": x.dtype,
            "grid": here[0],
            "mask": torch.ones(len(x), seq, dtype=torch.long) if mask is None else mask,
        }  # fmt: skip

        def at(kind: int, some: Tensor) -> Tensor:
            made = call(thing, {**values, "positions": some})
            if not isinstance(made, Tensor) or not made.is_floating_point():
                raise OtherResultError(f"it gives {type(made).__name__}")
            made = layouts.embeddings_taken_back(made, layout, seq, dim)
            if len(made) not in (1, len(x)) or (mask is not None and len(made) == 1):
                raise CallFailedError(f"{len(x)} rows give {len(made)}")
            if line.ndim == 1 and not taken:
                taken.append(kind)
            return made

        shapes = [(0, line)]
        if line.ndim == 1 and "positions" in call.roles:
            by_rows = line[None].expand(len(x), -1)
            first = (by_rows, line) if layout == "bsd" and "x" in call.said else (line, by_rows)
            shapes = list(enumerate((*first, line[:, None], line.to(torch.float32))))
            # what it refuses in this shape, another would make something else of
            shapes = [shapes[taken[0]]] if taken else shapes
        return first_answer(lambda each=each: at(*each) for each in shapes)

    return run


# How well a call fits.


def measured(view: Added) -> int | None:
    """How well it fits: 2, the sequence axis alone carries the position; 1, another too; 0, none.

    None where it is no sum, or gives no numbers.
    """
    zeros = torch.zeros(1 if view.layout == "sd" else BATCH, view.seq, view.dim)
    x = torch.randn(zeros.shape, generator=torch.Generator().manual_seed(0))
    empty, once, twice = view.call(zeros), view.call(x), view.call(2 * x)
    if not torch.isfinite(empty).all():
        return None
    scale = _scale(empty, once, twice, x)
    if scale is not None:
        view.refuse_zeros(empty)
    if scale is None or (scale and not empty.any()):
        if not torch.equal(empty, view.call(zeros)):
            raise UnfitError(CHANCE)
        return None
    view.scale = scale or None
    along = varies(empty, 1) > 0
    across = len(empty) > 1 and varies(empty, 0) > 1e-6
    if view.grid is not None:  # axes that were taken for others leave points alike
        across = across or len(empty[0].double().unique(dim=0)) < view.seq
    elif not view.fixed:
        view.fixed = not view.takes(view.seq - 1)
    if view.by_guess and (reason := _no_positions(view)):
        raise UnfitError(reason)
    return 2 if along and not across else int(along or across)


def _scale(empty: Tensor, once: Tensor, twice: Tensor, x: Tensor) -> float | None:
    """The factor s of f(x) = s·x + table; 0 for a table alone; None for another function."""
    if torch.equal(once, empty):
        return 0.0
    if once.shape != x.shape:
        return None
    change = (once - empty).double()
    scale = ((change * x).sum() / (x * x).sum()).item()
    off = torch.stack((change - scale * x, twice - empty - 2 * change)).abs().max()
    return scale if scale > 0 and off < 1e-3 * max(1.0, scale) * x.abs().max() else None


def _no_positions(view: Added) -> str:
    """What the argument is that was taken for positions, where it is none of these."""
    rows = view.rows(view.seq)
    if (rows - rows[:1] - torch.arange(len(rows))[:, None]).abs().max() < 1e-3:
        return NO_SUM  # content: every channel grows as it does
    if view.moves != "positions":
        return ""
    few, row = (torch.zeros(1, n, dtype=torch.long) for n in (min(4, view.seq), view.seq))
    equal = [each + number for number in (0, 5) for each in (few[0], few, row)]  # 5: no padding
    for alike in (*equal, torch.zeros(BATCH, view.seq, view.dim)):
        is_content = alike.is_floating_point()
        content = torch.zeros(BATCH if is_content else 1, view.seq, view.dim)
        try:
            made = view.call(content if is_content else content[:, : alike.shape[-1]], alike)
        except CallFailedError:
            continue
        if varies(made, 1) > 1e-6 or (len(made) > 1 and varies(made, 0) > 1e-6):
            return NO_SUM if is_content else IDS
    return ""
