"""How something is called that adds to embeddings, or gives the table to add."""

from collections.abc import Callable, Iterator
from itertools import product
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.added_view import SEQ, Added, Run
from posenc.audit.adapters.calls import Call, calls_of, first_answer
from posenc.audit.adapters.sizes import has_zeros, lengths_of, varies, widths_of
from posenc.audit.report import (
    AddsNothingError,
    CallFailedError,
    CannotCheckError,
    NearlyError,
    OtherResultError,
    UnfitError,
)
from posenc.audit.signatures import declared_layout
from posenc.audit.subjects import Subject

BATCH = 3
GRIDS = ("bhwd", "bdhw")

SAYS_SIZE = {"x", "positions", "length", "grid", "mask"}
"""Roles of which a call has one at least."""

KNOWN = SAYS_SIZE | {"offset", "dim", "dtype"}

NOTHING = "it adds nothing, as where a table is still of zeros; give it numbers first"
CHANCE = "it gives other numbers at each call, in eval mode too, as dropout or a table drawn anew"
NO_SUM = "it changes content otherwise than by a sum"
IDS = "equal numbers receive other rows at other places, as ids of tokens do, and positions do not"


def added_of(
    subject: Subject, layout: str | None, width: int | None, *, fixed: bool = False
) -> Added:
    """How something adds to embeddings; with ``fixed``, at lengths that it seems built for."""
    thing = subject.fresh()
    declared = declared_layout(thing)
    said = layout or (declared if declared in layouts.OF_EMBEDDINGS else None)
    takes_ids = getattr(thing, "padding_idx", None) is not None
    usual = [c for c in calls_of(thing) if not (c.by_guess and (said or takes_ids))]
    return _best(subject, usual, said, width, fixed)


def of_call(subject: Subject, call: Call, layout: str | None, width: int | None) -> Added:
    """What a call that is written out adds."""
    return _best(subject, [call], layout, width, fixed=False)


def _best(
    subject: Subject, calls: list[Call], said: str | None, width: int | None, fixed: bool
) -> Added:
    best: tuple[int, Added] | None = None
    unfit: list[str] = []
    for view in _views(subject, calls, said, width, fixed):
        try:
            fit = _fit(view)
        except UnfitError as error:
            unfit.append(str(error))
            continue
        if fit is None:
            continue
        if view.by_guess and (other := _no_positions(view)) is not None:
            unfit.append(other)
        elif best is None or fit > best[0]:
            best = fit, view
            if fit == 2:
                break
    if best is None:
        raise NearlyError(unfit[0]) if unfit else CannotCheckError("nothing that is added")
    return best[1]


def _uses(call: Call) -> Iterator[Call]:
    """With which optional roles: positions if they can be said, or an offset, or nothing."""
    moving = [role for role in ("positions", "offset") if role in call.roles]
    content = ("x",) if "x" in call.roles and not call.required else ()
    yield from (call.using(*content, role) for role in moving)
    if content:
        yield call.using("x")
        return
    if not call.required and {"length", "dim"} & call.roles:
        yield call.using("length", "dim")
    if "x" in call.roles or not {"positions", "offset"} & call.required:
        yield call.using()


def _views(
    subject: Subject, calls: list[Call], said: str | None, width: int | None, fixed: bool
) -> Iterator[Added]:
    """Every call at every layout and width, each at the first length that it takes."""
    thing = subject.fresh()
    widths = (width,) if width else widths_of(thing)[:8]
    known = layouts.orders(said, tuple(layouts.OF_EMBEDDINGS))
    for way in (way for call in calls for way in _uses(call)):
        if not way.required <= KNOWN or not way.said & SAYS_SIZE:
            continue
        for layout, dim in product(known if "x" in way.said else ("sd",), widths):
            if layout in GRIDS and way.written is not None:
                continue
            # of maps some that are no squares, so that height and width are told apart
            usual = (80, 16) if layout in GRIDS else (SEQ, 16)
            for seq in _lengths(thing) if fixed else usual:
                if not 2 <= seq * dim <= 2**24 or (layout in GRIDS and _grid(seq) is None):
                    continue
                view = _view(subject, way, layout, said is not None, dim, seq)
                try:
                    view.call(_blank(view))
                except OtherResultError:
                    break
                except CallFailedError:
                    continue
                yield view
                break


def _view(subject: Subject, call: Call, layout: str, declared: bool, dim: int, seq: int) -> Added:
    grid = _grid(seq) or (1, seq)
    run = lambda way: _runner(way, layout, grid)  # noqa: E731
    moves = next((role for role in ("positions", "offset") if role in call.said), None)
    plain = call.uses - {"positions", "offset"}
    view = Added(
        subject, run(call), call.text, dim, layout, declared, moves, seq=seq,
        by_guess=call.by_guess,
        others=tuple(
            (p.name, run(call.using(*plain, p.role)))
            for p in call.parameters
            if p.role in ("positions", "offset") and p.role not in call.said
        ),
    )  # fmt: skip
    if "mask" in call.roles and layout in ("bsd", "sd"):
        view.masked = _masker(call.using(*plain, "mask"))
    if moves and moves not in call.required and "x" in call.said:
        view.unsaid = run(call.using(*plain))
    if layout in GRIDS or "grid" in call.required:
        view.grid, view.fixed = grid, True
    return view


def _lengths(thing: Any) -> Iterator[int]:
    """Lengths that it may take alone: a class token may have a row of a table, or none."""
    for n in lengths_of(thing)[:6]:
        yield from (n, n - 1)
        if isqrt(n) ** 2 == n:
            yield n + 1


def _grid(seq: int) -> tuple[int, int] | None:
    """A grid of so many points; not a square, where there is another."""
    if seq in (SEQ, 16):
        return {SEQ: None, 16: (4, 4)}[seq]
    return next(((h, seq // h) for h in range(int(seq**0.5), 1, -1) if seq % h == 0), None)


def _runner(call: Call, layout: str, grid: tuple[int, int]) -> Run:
    taken: list[int] = []  # the shape of positions that it takes, once that is known

    def run(thing: Any, x: Tensor, positions: Tensor | None) -> Tensor:
        seq, dim = x.shape[1], x.shape[2]
        here = grid if grid[0] * grid[1] == seq else (1, seq)
        line = torch.arange(seq) if positions is None else positions
        values = {
            "x": layouts.embeddings_laid_out(x, layout, here), "offset": int(line.flatten()[0]),
            "length": seq, "dim": dim, "dtype": x.dtype, "grid": here[0],
            "mask": torch.ones(len(x), seq, dtype=torch.long),
        }  # fmt: skip

        def at(kind: int, some: Tensor) -> Tensor:
            made = call(thing, {**values, "positions": some})
            if not isinstance(made, Tensor) or not made.is_floating_point():
                raise OtherResultError(f"it gives {type(made).__name__}")
            made = layouts.embeddings_taken_back(made, layout, seq, dim)
            if len(made) not in (1, len(x)):
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


def _masker(call: Call) -> Callable[[Any, Tensor, Tensor], Tensor]:
    """A call with a padding mask."""

    def masked(thing: Any, x: Tensor, mask: Tensor) -> Tensor:
        values = {"x": x, "mask": mask, "offset": 0, "dtype": x.dtype, "length": x.shape[1]}
        made = call(thing, values)
        if not isinstance(made, Tensor) or made.shape != x.shape:
            raise CallFailedError("its result has no row for each row of the batch")
        return made

    return masked


def _blank(view: Added) -> Tensor:
    return torch.zeros(1 if view.layout == "sd" else BATCH, view.seq, view.dim)


def _fit(view: Added) -> int | None:
    """How well it fits: 2, the sequence axis alone carries the position; 1, another too; 0, none.

    None where it is no sum, refuses, or gives no numbers.
    """
    zeros = _blank(view)
    x = torch.randn(zeros.shape)
    try:
        empty, once, twice = view.call(zeros), view.call(x), view.call(2 * x)
    except CallFailedError:
        return None
    if not torch.isfinite(empty).all():
        return None
    scale = _scale(empty, once, twice, x)
    if scale is not None and not empty.any() and has_zeros(view.subject.fresh()):
        raise AddsNothingError(NOTHING)
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
    return 2 if along and not across else int(along or across)


def _scale(empty: Tensor, once: Tensor, twice: Tensor, x: Tensor) -> float | None:
    """The factor s of f(x) = s·x + table; 0 for a table alone; None for another function."""
    if once.shape != x.shape or torch.equal(once.double(), empty.double()):
        return 0.0 if once.shape == empty.shape and torch.equal(once, empty) else None
    change = (once - empty).double()
    scale = ((change * x).sum() / (x * x).sum()).item()
    off = max(
        (change - scale * x).abs().max().item(), (twice - empty - 2 * change).abs().max().item()
    )
    return scale if scale > 0 and off < 1e-3 * max(1.0, scale) * x.abs().max().item() else None


def _no_positions(view: Added) -> str | None:
    """What the argument is that was taken for positions, where it is none of these."""
    rows = view.rows(view.seq)
    if (rows - rows[:1] - torch.arange(len(rows))[:, None]).abs().max() < 1e-3:
        return NO_SUM  # content: every channel grows as it does
    if view.moves != "positions":
        return None
    content = torch.zeros(BATCH, view.seq, view.dim)
    few, all_of_it = (torch.zeros(1, n, dtype=torch.long) for n in (min(4, view.seq), view.seq))
    equal = [each + number for number in (0, 5) for each in (few[0], few, all_of_it)]
    for alike in (*equal, content):  # 5 is seldom an id of padding
        try:
            made = view.call(content if alike is content else content[:1, : alike.shape[-1]], alike)
        except CallFailedError:
            continue
        if varies(made, 1) > 1e-6 or (len(made) > 1 and varies(made, 0) > 1e-6):
            return NO_SUM if alike is content else IDS
    return None
