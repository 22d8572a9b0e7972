"""How something is called that rotates queries and keys."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts, tables
from posenc.audit.adapters.calls import Call, answers, best, calls_of
from posenc.audit.adapters.rotary_view import BATCH, HEADS, SEQ, Both, RotaryView, Run, Way
from posenc.audit.adapters.sizes import varies, widths_of
from posenc.audit.identity import structures
from posenc.audit.report import CallFailedError, UnfitError
from posenc.audit.signatures import declared_layout
from posenc.audit.subjects import Subject

KNOWN = {"x", "q", "k", "positions", "offset", "length", "dim", "mask", "dtype"}

UNSEEN = """which of several functions beside it applies its cosines and sines was not seen, and \
none that could be tried makes a rotation of them. Check the function that rotates"""


def rotary_of(
    subject: Subject, layout: str | None, width: int | None, points: tables.Points | None = None
) -> RotaryView:
    """How something rotates queries and keys; with ``points``, such as positions become these."""
    thing = subject.fresh()
    declared = declared_layout(thing)
    said = layout or (declared if declared in layouts.LAYOUTS else None)
    told = [subject.arguments.get(name) for name in ("head_dim", "head_size")]
    found = (*(n for n in told if isinstance(n, int)), *widths_of(thing)[:10])
    widths = (width,) if width else tuple(dict.fromkeys(found))

    def views() -> Iterator[RotaryView]:
        tried = []
        for call in calls_of(thing):
            if call.required <= KNOWN and call.required & {"x", "q"}:
                for view in _views(subject, _ways(call, points), said, widths):
                    tried.append(view)
                    yield view
        if max((view.fit for view in tried), default=0) < 2:
            yield from _views(subject, tables.applied(subject, thing, points), said, widths)

    return best(views(), measured, enough=3)


def of_call(subject: Subject, call: Call, layout: str | None, width: int | None) -> RotaryView:
    """How a call that is written out rotates."""
    widths = (width,) if width else tuple(widths_of(subject.fresh())[:8])
    return best(_views(subject, _ways(call), layout, widths), measured, enough=3)


def _ways(call: Call, points: tables.Points | None = None) -> Iterator[Way]:
    """Positions by row, in a line, by the first, or not at all."""
    if "positions" in call.roles:
        for moves in ("rows", "line"):
            yield Way(call.using("positions"), moves, partial(_positions, moves, points))
    if "offset" in call.roles:
        yield Way(call.using("offset"), "offset", partial(_positions, "offset", points))
    if not call.required & {"positions", "offset"}:
        yield Way(call.using(), "", partial(_positions, "", points))


def _positions(
    moves: str, points: tables.Points | None, _thing: Any, q: Tensor, positions: Tensor, layout: str
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
    every = list(ways)
    for way in every:
        call, moves = way.call, way.moves
        sees_keys = "k" in call.required or ("q" in call.required and not call.written)
        few = 2 if sees_keys or way.source else HEADS
        for layout in layouts.orders(said, way.orders):
            if (moves, layout) in (("rows", "hsd"), ("line", "tx")):
                continue
            run, beside = runner(way, layout), {} if way.source else _beside(way, every, layout)
            for dim, kv_heads in product(widths, dict.fromkeys((few, HEADS))):
                yield RotaryView(
                    subject, run, way.text, dim, layout, said is not None, moves, sees_keys,
                    kv_heads, applied=way.applied, **beside,
                )  # fmt: skip


def _beside(way: Way, every: list[Way], layout: str) -> dict[str, Any]:
    """What else may move positions: other parameters, and none at all."""
    others = [
        (p.name, runner(other, layout))
        for p in way.call.unsaid("positions", "offset")
        for other in every
        if other.call.uses == {p.role} and other.moves != "line"
    ]
    plain = [other for other in every if way.moves and not other.moves]
    heard = {name for name, _ in others}
    left = way.call.unsaid("mask", "length", "positions", "offset")
    return {
        "others": tuple(others) if way.moves else (),
        "unheard": others[0] if others and not way.moves else None,
        "unsaid": runner(plain[0], layout) if plain else None,
        "left": tuple(p.name for p in left if p.name not in heard),
    }


def runner(way: Way, layout: str) -> Run:
    """A call with queries and keys in one order of axes."""
    call, pairs = way.call, {"q", "k"} <= way.call.roles

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        x = layouts.laid_out(q, layout)
        values = {"q": x, "x": x, "k": layouts.laid_out(k, layout)}
        values |= {"dim": q.shape[-1], "dtype": q.dtype}
        made = call(thing, values | way.beside(thing, q, positions, layout))
        return layouts.both_taken_back(made, pairs, layout, q, k)

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
    view.sees_keys = view.sees_keys and keys is not None
    if view.moves and not _moves_by_position(view, q, k):
        return None
    if view.moves == "rows" and view.layout not in layouts.ONE_ROW:
        rows = torch.arange(SEQ) + torch.arange(batch)[:, None]
        view.moves = "rows" if answers(lambda: view.both(q, k, rows)) else "line"
    _take_back(view)
    if view.is_one_of_several and not _is_sound(view):
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


def _is_sound(view: RotaryView) -> bool:
    """Whether it makes a rotation of the first tokens."""
    found = structures.structure(view.matrices(16))
    return bool(found.firsts) and not found.odd


def _take_back(view: RotaryView) -> None:
    """Undo an order of channels in which queries and keys come out, as it changes no product."""
    start = torch.zeros(view.dim, 1, dtype=torch.long)
    basis = torch.eye(view.dim)[:, None, None].expand(-1, HEADS, -1, -1).contiguous()
    try:
        made = view.both(basis, basis[:, : view.kv_heads], start)
    except CallFailedError:
        return
    sides = [x[:, 0, 0] for x in made if x is not None]
    sides = [x / size if (size := x.abs().max()) > 0 else x for x in sides]  # attention factors
    places = sides[0].argmax(1)
    wanted, usual = torch.eye(view.dim)[places], torch.arange(view.dim)
    is_order = len(places.unique()) == view.dim and not torch.equal(places, usual)
    if is_order and all((x - wanted).abs().max() <= 1e-6 for x in sides):
        view.order = places
