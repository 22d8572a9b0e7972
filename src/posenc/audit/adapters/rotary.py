"""How something is called that rotates queries and keys."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts, tables
from posenc.audit.adapters.calls import Call, calls_of
from posenc.audit.adapters.rotary_view import BATCH, HEADS, SEQ, Both, RotaryView, Run
from posenc.audit.adapters.sizes import varies, widths_of
from posenc.audit.identity import structures
from posenc.audit.report import CallFailedError, CannotCheckError, NotAskedError, OtherResultError
from posenc.audit.signatures import declared_layout
from posenc.audit.subjects import Subject

KNOWN = {"x", "q", "k", "positions", "offset", "length", "dim", "mask", "dtype"}


def rotary_of(subject: Subject, layout: str | None, width: int | None) -> RotaryView:
    """How something rotates queries and keys."""
    thing = subject.fresh()
    declared = declared_layout(thing)
    said = layout or (declared if declared in layouts.LAYOUTS else None)
    told = [subject.arguments.get(name) for name in ("head_dim", "head_size")]
    told = [n for n in told if isinstance(n, int)]
    widths = (width,) if width else tuple(dict.fromkeys((*told, *widths_of(thing)[:10])))

    def views() -> Iterator[RotaryView]:
        for call in calls_of(thing):
            if call.required <= KNOWN and call.required & {"x", "q"}:
                yield from _of_call(subject, call, said, widths)
        yield from tables.applied_views(subject, said, widths)

    (fit, sound), view = _best(views())
    if fit >= 2 and not sound:
        raise CannotCheckError(
            f"which of several functions beside {subject.name} applies its cosines and sines was "
            f"not seen, and none that could be tried makes a rotation of them. Check the function "
            f"that rotates."
        )
    return view


def of_call(subject: Subject, call: Call, layout: str | None, width: int | None) -> RotaryView:
    """How a call that is written out rotates."""
    widths = (width,) if width else tuple(widths_of(subject.fresh())[:8])
    return _best(_of_call(subject, call, layout, widths))[1]


def _best(views: Iterator[RotaryView]) -> tuple[tuple[int, bool], RotaryView]:
    """How well the best view fits, whether it is sound, and that view."""
    best: tuple[tuple[int, bool], RotaryView] | None = None
    other: set[str] = set()  # calls that give something else, whatever they are given
    for view in views:
        if view.text in other:
            continue
        # what fits is not given up for tables that others apply, unless one of several did so
        if (
            best
            and best[0][0] >= 2
            and (view.applied or view.fed)
            and (best[0][1] or not view.is_one_of_several)
        ):
            break
        try:
            fit = measured(view)
        except OtherResultError:
            other.add(view.text)
            continue
        if fit is None or (best and best[1].moves == "rows" and _takes_heads_for_tokens(view)):
            continue
        _take_back(view)
        rank = fit, not view.is_one_of_several or _is_sound(view)
        if best is None or rank > best[0]:
            best = rank, view
        if rank == (3, True):
            break
        if fit == 3:
            other.add(view.text)
    if best is None:
        raise CannotCheckError("nothing that rotates queries and keys")
    return best


def _takes_heads_for_tokens(view: RotaryView) -> bool:
    """Whether a line of positions changes what tokens receive by how many there are.

    So does one head that is treated otherwise, where it is taken for the last token.
    """
    if view.moves != "line":
        return False
    x = torch.ones(1, HEADS, SEQ, view.dim)
    try:
        whole, fewer = view.turned(x), view.turned(x[:, :, :-1])
    except CallFailedError:
        return False
    return bool((whole[:, :, :-1] - fewer).abs().max() > 1e-3)


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
    if not is_order or any((x - wanted).abs().max() > 1e-6 for x in sides):
        return

    def ordered(run: Run) -> Run:
        def inner(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
            made, keys = run(thing, q, k, positions)
            return made[..., places], None if keys is None else keys[..., places]

        return inner

    view.order, view.run = places, ordered(view.run)
    view.unsaid = view.unsaid and ordered(view.unsaid)
    view.others = tuple((name, ordered(run)) for name, run in view.others)
    view.unheard = view.unheard and (view.unheard[0], ordered(view.unheard[1]))


def _is_sound(view: RotaryView) -> bool:
    """Whether it makes a rotation of the first tokens."""
    try:
        found = structures.structure(view.matrices(16))
    except NotAskedError:
        return False
    return bool(found.firsts) and not found.odd


def measured(view: RotaryView) -> int | None:
    """How well a form fits: 3, positions are said and the sequence axis alone carries them.

    2: the sequence axis alone varies; 1: another does too; 0: nothing does; None: it cannot be
    called so, or is no linear map of its content.
    """
    batch = 1 if view.layout in layouts.ONE_ROW else BATCH
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(batch, HEADS, SEQ, view.dim, generator=generator)
    k = torch.randn(batch, view.kv_heads, SEQ, view.dim, generator=generator)
    try:
        (once, keys), (twice, _), (zero, _), ones = (
            view.both(*given)
            for given in ((q, k), (2 * q, 2 * k), (0 * q, 0 * k), (q * 0 + 1, k * 0 + 1))
        )
    except OtherResultError:
        raise
    except CallFailedError:
        return None
    size = once.abs().max()
    is_linear = not zero.any() and (twice - 2 * once).abs().max() <= 1e-3 * size
    if size == 0 or not is_linear or not torch.isfinite(once).all():
        return None
    view.sees_keys = view.sees_keys and keys is not None
    if view.moves and not _moves_by_position(view, q, k):
        return None
    if view.moves == "rows" and view.layout not in layouts.ONE_ROW:
        try:
            view.both(q, k, torch.arange(SEQ) + torch.arange(batch)[:, None])
        except CallFailedError:
            view.moves = "line"
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
    try:
        before, after = view.both(q, k, still), view.both(q, k, moved)
    except CallFailedError:
        return False
    changes = [
        (a - b).abs().amax((0, 1, 3))
        for a, b in zip(after, before, strict=True)
        if a is not None and b is not None
    ]
    if view.moves == "offset":
        return any(bool(change.any()) for change in changes)
    return any(bool(c[-1] > 1e-6) and not bool((c[:-1] > 1e-6).any()) for c in changes)


def _of_call(
    subject: Subject, call: Call, said: str | None, widths: tuple[int, ...]
) -> Iterator[RotaryView]:
    for moves, way in _ways(call):
        for layout in layouts.orders(said, layouts.LAYOUTS):
            if (moves, layout) in (("rows", "hsd"), ("line", "tx")):
                continue
            view = _view(subject, call, moves, way, layout, said)
            for dim in widths:
                for kv_heads in (2, HEADS) if view.sees_keys else (HEADS,):
                    yield replace(view, dim=dim, kv_heads=kv_heads)


def _ways(call: Call) -> Iterator[tuple[str, Call]]:
    """How positions are said: by row, in a line, by the first, or not at all."""
    if "positions" in call.roles:
        yield "rows", call.using("positions")
        yield "line", call.using("positions")
    if "offset" in call.roles:
        yield "offset", call.using("offset")
    if not call.required & {"positions", "offset"}:
        yield "", call.using()


def _view(
    subject: Subject, call: Call, moves: str, way: Call, layout: str, said: str | None
) -> RotaryView:
    others = [
        (call.named(next(iter(other.uses))), runner(other, how, layout))
        for how, other in _ways(call)
        if how in ("rows", "offset") and other.uses != way.uses and not other.uses & call.required
    ]
    heard = {name for name, _ in (others if moves else others[:1])}
    left = tuple(
        p.name
        for p in call.parameters
        if p.role in ("mask", "length", "positions", "offset")
        and not (p.required or p.role in way.uses or p.name in heard)
    )
    optional = moves and not call.required & {"positions", "offset"}
    return RotaryView(
        subject, runner(way, moves, layout), way.text, 0, layout, said is not None, moves,
        ("q" in call.required and call.written is None) or "k" in call.required, HEADS,
        unheard=others[0] if others and not moves else None,
        unsaid=runner(call.using(), "", layout) if optional else None,
        others=tuple(others) if moves else (), left=left,
    )  # fmt: skip


def runner(call: Call, moves: str, layout: str) -> Run:
    """A call with queries and keys in one order of axes, positions in shapes that it takes."""
    pairs = {"q", "k"} <= call.roles

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        shapes = list(layouts.said_positions(positions, layout, q.shape[1]))
        if layout in layouts.ONE_ROW:
            shapes = [positions[0]]
        if moves == "line":
            shapes = [some for some in shapes[-1:] if some.ndim == 1]
        if not shapes:
            raise CallFailedError("it takes one position a token, for all rows alike")
        x = layouts.laid_out(q, layout)
        values = {
            "q": x, "x": x, "k": layouts.laid_out(k, layout), "positions": shapes[0].clone(),
            "offset": int(positions[0, 0]), "length": int(positions.max()) + 1,
            "dim": q.shape[-1], "dtype": q.dtype,
        }  # fmt: skip
        return layouts.both_taken_back(call(thing, values), pairs, layout, q, k)

    return run
