"""Something that rotates queries and keys, and how it is called."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby, product
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts, tables
from posenc.audit.adapters.calls import Call, View, answers, best, calls_of
from posenc.audit.adapters.layouts import varies
from posenc.audit.adapters.tables import Points, Way
from posenc.audit.identity import structures
from posenc.audit.report import CallFailedError, NotAskedError, UnfitError
from posenc.audit.signatures import declared_layout, lengths_of, widths_of
from posenc.audit.subjects import Subject

KNOWN = {"x", "q", "k", "positions", "offset", "length", "dim", "mask", "dtype"}

UNSEEN = "how its cosines and sines are applied was not seen. Check the function that rotates"

BATCH, HEADS, SEQ = 2, 4, 6

Both = tuple[Tensor, Tensor | None]
Run = Callable[[Any, Tensor, Tensor, Tensor], Both]


@dataclass(kw_only=True)
class RotaryView(View):
    """Something that rotates ``[batch, heads, seq, head_dim]``.

    ``run`` takes a copy, q, k and positions ``[batch, seq]``, and gives both rotated; None for keys
    that it does not return. Positions move by "rows", as one "line" for all, or by an "offset".
    """

    sees_keys: bool = False  # whether keys go through the call beside queries
    kv_heads: int  # key heads that it takes beside the query heads
    applied: str = ""  # who applies its cosines and sines, where it gives only these, in words
    left: tuple[str, ...] = ()  # other parameters that may move positions, which are never said
    order: Tensor | None = None  # where each channel comes out, if in another order
    limit: int | None = None  # how many positions it takes, where that was seen

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
            rows = zip(q.split(1), k.split(1), positions.split(1), strict=True)
            each = [self.both(*row, by=thing) for row in rows]
            kept = [key for _, key in each if key is not None]
            return torch.cat([query for query, _ in each]), torch.cat(kept) if kept else None
        queries, keys = self.run(thing, q, k, positions)
        if self.order is not None:
            queries = queries[..., self.order]
            keys = None if keys is None else keys[..., self.order]
        return queries, keys

    def turned(
        self, x: Tensor, at: Tensor | None = None, side: str = "q", by: Any = None
    ) -> Tensor:
        """x of all heads as queries (or keys), its tokens at 0, 1, … or at ``at``."""
        at = None if at is None else at.expand(len(x), -1)
        made = self.both(x, x[:, : self.kv_heads], at, by)[side == "k"]
        if made is None:
            raise NotAskedError("it takes one tensor; what it makes of keys was not seen")
        return made

    @property
    def sides(self) -> tuple[str, ...]:
        """Queries, and keys where they are seen, for what is asked of both."""
        return ("q", "k") if self.sees_keys else ("q",)

    def matrices(self, seq: int, side: str = "q") -> Tensor:
        """What tokens at 0 … seq − 1 are multiplied with, ``[seq, dim, dim]``, float64."""
        basis = torch.eye(self.dim)[:, None, None].expand(-1, HEADS, seq, -1).contiguous()
        return self.turned(basis, side=side)[:, 0].permute(1, 2, 0).double()

    def at(self, positions: list[int], probe: Tensor, side: str = "q", by: Any = None) -> Tensor:
        """``probe [dim]`` turned at each of some positions, ``[positions, dim]`` float64."""
        content = lambda seq: probe.expand(1, HEADS, seq, -1).contiguous()  # noqa: E731
        if self.moves:
            runs = [positions] if self.moves != "offset" else _consecutive(positions)
            made = [self.turned(content(len(run)), torch.tensor(run), side, by) for run in runs]
            return torch.cat([each[0, 0] for each in made]).double()
        seq = max(positions) + 1
        if seq * self.dim * HEADS > 2**26:
            raise NotAskedError(f"a row of {seq:,} tokens is too long to be asked")
        return self.turned(content(seq), None, side, by)[0, 0, positions].double()

    @property
    def unheard(self) -> tuple[str, Run] | None:
        """A call that says a first position, without effect."""
        return self.others[0] if self.others and not self.moves else None

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
        axes = layouts.in_words(layouts.AXES[self.layout])
        parts = [f"rotates {what} {axes} of width {self.dim}{where}", f"called as {self.text}"]
        parts += [self.applied] if told else []
        parts += [f"never said: {', '.join(self.left)}"] if self.left else []
        return "; ".join(parts)


def _consecutive(positions: list[int]) -> list[list[int]]:
    """Runs of positions that follow each other."""
    runs = groupby(enumerate(positions), key=lambda each: each[1] - each[0])
    return [[position for _, position in run] for _, run in runs]


# How it is called.


def rotary_of(
    subject: Subject,
    layout: str | None,
    width: int | None,
    call: Call | None = None,
    points: Points | None = None,
) -> RotaryView:
    """How something rotates queries and keys; with ``points``, such as positions become these."""
    thing = subject.fresh()
    declared = declared_layout(thing) if call is None else None
    said = layout or (declared if declared in layouts.LAYOUTS else None)
    told = [subject.arguments.get(name) for name in ("head_dim", "head_size")]
    found = (*(n for n in told if isinstance(n, int)), *widths_of(thing)[:10])
    widths = (width,) if width else tuple(dict.fromkeys(found))

    def views() -> Iterator[RotaryView]:
        tried = []
        for each in calls_of(thing) if call is None else (call,):
            if each.required <= KNOWN and each.required & {"x", "q"}:
                for view in _views(subject, _ways(each, points), said, widths):
                    tried.append(view)
                    yield view
        if call is None and max((view.fit for view in tried), default=0) < 2:
            yield from _views(subject, tables.applied(subject, thing, points), said, widths)

    return best(views(), measured, enough=3)


def _ways(call: Call, points: Points | None) -> Iterator[Way]:
    """Positions by row, in a line, by the first, or not at all."""
    for role, way in call.ways():
        for moves in ("rows", "line") if role == "positions" else (role,):
            yield Way(way, moves, partial(_positions, moves, points))


def _positions(
    moves: str, points: Points | None, _thing: Any, q: Tensor, positions: Tensor, layout: str
) -> dict[str, Any]:
    """Positions in the shape that goes with an order of axes."""
    said = positions[0]
    if moves == "rows" and layout not in layouts.ONE_ROW:
        rows = positions.repeat_interleave(q.shape[1], 0) if layout == "bsd" else positions
        said = rows.T if layout == "sbhd" else rows
    elif moves == "line" and bool((positions != said).any()):
        raise CallFailedError("it takes one position a token, for all rows alike")
    return {
        "positions": said.clone() if points is None else points(said),
        "offset": int(positions[0, 0]),
        "length": int(positions.max()) + 1,
    }


def _views(
    subject: Subject, ways: Iterable[Way], said: str | None, widths: tuple[int, ...]
) -> Iterator[RotaryView]:
    """Each way in every order of axes, at every width, with few keys and many."""
    for way in ways:
        call, is_made = way.call, way.applied is not None
        few = 2 if "k" in call.required or is_made else HEADS
        beside = set() if is_made else {"mask", "length"} - call.said
        left = tuple(p.name for p in call.parameters if p.role in beside)
        for layout in way.orders:
            # one row of heads takes a line of positions, as "bhsd" may
            if said not in (None, layout) or (way.moves, layout) == ("rows", "hsd"):
                continue
            run = partial(_runner, way, layout)
            for dim, kv_heads in product(widths, dict.fromkeys((few, HEADS))):
                yield RotaryView(
                    subject=subject, run=run(call), text=call.text, dim=dim, layout=layout,
                    declared=said is not None, moves=way.moves, kv_heads=kv_heads,
                    applied=way.applied or "", left=left, **call.beside(run),
                )  # fmt: skip


def _runner(way: Way, layout: str, call: Call) -> Run:
    """A call with queries and keys in one order of axes."""
    pairs = {"q", "k"} <= call.roles

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        x = layouts.laid_out(q, layout)
        values = {"q": x, "x": x, "k": layouts.laid_out(k, layout)}
        values |= {"dim": q.shape[-1], "dtype": q.dtype}
        made = call(thing, values | way.beside(thing, q, positions, layout))
        if pairs and isinstance(made, tuple | list) and len(made) > 1:
            queries, keys, *_ = made
            return layouts.taken_back(queries, layout, q), layouts.taken_back(keys, layout, k)
        return layouts.taken_back(made, layout, q), None

    return run


# How well a call fits.


def measured(view: RotaryView) -> int | None:
    """How well a form fits: 3, positions are said and the sequence axis alone carries them.

    2: the sequence axis alone varies; 1: another does too; 0: nothing does; None: it is no linear
    map of its content, or positions that are said move nothing.
    """
    batch = 1 if view.layout in layouts.ONE_ROW else BATCH
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(batch, HEADS, SEQ, view.dim, generator=generator)
    k = torch.randn(batch, view.kv_heads, SEQ, view.dim, generator=generator)
    (once, keys), (twice, _), (zero, _), ones = (
        view.both(*given)
        for given in ((q, k), (2 * q, 2 * k), (0 * q, 0 * k), (q * 0 + 1, k * 0 + 1))
    )
    size = once.abs().max()
    is_linear = not zero.any() and (twice - 2 * once).abs().max() <= 1e-3 * size
    if size == 0 or not is_linear or not torch.isfinite(once).all():
        return None
    view.sees_keys = keys is not None
    if view.moves and not _moves_by_position(view, q, k):
        return None
    if view.moves == "rows" and view.layout not in layouts.ONE_ROW:
        rows = torch.arange(SEQ) + torch.arange(batch)[:, None]
        view.moves = "rows" if answers(lambda: view.both(q, k, rows)) else "line"
    _take_back(view)
    if view.is_one_of_several:
        found = structures.structure(view.matrices(16))
        if found.odd or not found.firsts:
            raise UnfitError(UNSEEN)
    every = [made for made in ones if made is not None]
    along = [varies(made, 2) > 1e-6 for made in every]
    across = [max(varies(made, 0), varies(made, 1)) > 1e-6 for made in every]
    if all(along) and not any(across):
        return 3 if view.moves else 2
    return int(any(along))


def _moves_by_position(view: RotaryView, q: Tensor, k: Tensor) -> bool:
    """Whether one token alone changes with its own position."""
    if view.moves == "offset":
        q, k = q[:, :, :1], k[:, :, :1]
    still = torch.zeros(len(q), q.shape[2], dtype=torch.long)
    moved = still.clone()
    moved[:, -1] = 3
    changes = [
        (a - b).abs().amax((0, 1, 3))
        for a, b in zip(view.both(q, k, still), view.both(q, k, moved), strict=True)
        if a is not None and b is not None
    ]
    return any(bool(c[-1] > 1e-6) and not bool((c[:-1] > 1e-6).any()) for c in changes)


def _take_back(view: RotaryView) -> None:
    """Undo an order of channels in which queries and keys come out, as it changes no product."""
    try:
        sides = [view.matrices(1, side)[0].T for side in view.sides]
    except CallFailedError:
        return
    sides = [x / size if (size := x.abs().max()) > 0 else x for x in sides]  # attention factors
    places = sides[0].argmax(1)
    wanted, usual = torch.eye(view.dim)[places], torch.arange(view.dim)
    is_order = len(places.unique()) == view.dim and not torch.equal(places, usual)
    if is_order and all((x - wanted).abs().max() <= 1e-6 for x in sides):
        view.order = places
