"""How something is called that rotates queries and keys."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts, tables
from posenc.audit.adapters.calls import (
    assignments,
    bound,
    callables_of,
    text_of,
    varies,
    widths_of,
)
from posenc.audit.adapters.rotary_view import BATCH, HEADS, SEQ, Both, RotaryView, Run
from posenc.audit.identity import structures
from posenc.audit.report import CallFailedError, CannotCheckError, NotAskedError, OtherResultError
from posenc.audit.signatures import Parameter, declared_layout
from posenc.audit.subjects import Subject


def rotary_of(subject: Subject, layout: str | None, width: int | None) -> RotaryView:
    """Find out how something rotates queries and keys.

    Raises:
        CannotCheckError: It does not, in any form known here.
    """
    said = layout or _declared(subject)
    best: tuple[tuple[int, bool], RotaryView] | None = None
    other: set[str] = set()
    for view in _views(subject, said, width):
        if view.text in other:
            continue
        if best is not None and best[0][0] >= 2 and _may_end(view, best[0]):
            break
        try:
            fit = measured(view)
        except OtherResultError:
            other.add(view.text)
            continue
        if fit is None:
            continue
        if best is not None and best[1].moves == "rows" and _takes_heads_for_tokens(view):
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
    (fit, sound), view = best
    if fit >= 2 and not sound:
        raise CannotCheckError(
            f"which of several functions beside {subject.name} applies its cosines and sines was "
            f"not seen, and those that could be tried make no rotation of them. Check the function "
            f"that rotates."
        )
    return view


def _may_end(view: RotaryView, rank: tuple[int, bool]) -> bool:
    """Whether a call that fits is kept for good: not given up for tables that others apply.

    Unless one of several functions applied its own, and made no rotation of them.
    """
    return bool(view.applied or view.fed) and (rank[1] or not view.is_one_of_several)


def _takes_heads_for_tokens(view: RotaryView) -> bool:
    """Whether a line of positions changes what tokens receive by how many there are.

    So does one head that is treated otherwise, where it is taken for the last token. What takes
    positions by row stands in another order of axes then.
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
    start = torch.zeros(1, 1, dtype=torch.long)
    basis = torch.eye(view.dim)[:, None, None].expand(-1, HEADS, -1, -1).contiguous()
    try:
        made = view.both(basis, basis[:, : view.kv_heads], start.expand(view.dim, -1))
    except CallFailedError:
        return
    sides = [x[:, 0, 0] for x in made if x is not None]
    sides = [x / size if (size := x.abs().max()) > 0 else x for x in sides]  # attention factors
    places = sides[0].argmax(1)
    wanted = torch.eye(view.dim)[places]
    if len(places.unique()) < view.dim or any((x - wanted).abs().max() > 1e-6 for x in sides):
        return
    if torch.equal(places, torch.arange(view.dim)):
        return
    view.order = places
    view.run = _in_order(view.run, places)
    view.unsaid = view.unsaid and _in_order(view.unsaid, places)
    view.others = tuple((name, _in_order(run, places)) for name, run in view.others)
    view.unheard = view.unheard and (view.unheard[0], _in_order(view.unheard[1], places))


def _in_order(run: Run, places: Tensor) -> Run:
    def ordered(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        made, keys = run(thing, q, k, positions)
        return made[..., places], None if keys is None else keys[..., places]

    return ordered


def _is_sound(view: RotaryView) -> bool:
    """Whether it makes a rotation of the first tokens."""
    try:
        found = structures.structure(view.matrices(16))
    except (CallFailedError, NotAskedError):
        return False
    return bool(found.firsts) and not found.odd


def _declared(subject: Subject) -> str | None:
    said = declared_layout(subject.fresh())
    if said in layouts.LAYOUTS:
        return said
    return None


def measured(view: RotaryView) -> int | None:
    """How well a form fits: 3, positions are said and the sequence axis alone carries them.

    2: the sequence axis alone varies; 1: another does too, or nothing does; None: it cannot be
    called so, or is no linear map of its content.
    """
    batch = 1 if view.layout in layouts.ONE_ROW else BATCH
    generator = torch.Generator().manual_seed(0)
    q = torch.randn(batch, HEADS, SEQ, view.dim, generator=generator)
    k = torch.randn(batch, view.kv_heads, SEQ, view.dim, generator=generator)
    try:
        once, keys = view.both(q, k)
        twice, _ = view.both(2 * q, 2 * k)
        zero, _ = view.both(0 * q, 0 * k)
        ones = view.both(torch.ones_like(q), torch.ones_like(k))
    except OtherResultError:
        raise
    except CallFailedError:
        return None
    size = once.abs().max()
    if not torch.isfinite(once).all() or zero.any() or (twice - 2 * once).abs().max() > 1e-3 * size:
        return None
    if size == 0:
        return None
    view.sees_keys = view.sees_keys and keys is not None
    carried = [_carried(made) for made in ones if made is not None]
    if view.moves and not _moves_by_position(view, q, k):
        return None
    if view.moves == "rows" and view.layout not in layouts.ONE_ROW:
        apart = torch.arange(SEQ) + torch.arange(batch)[:, None]
        try:
            view.both(q, k, apart)
        except CallFailedError:
            view.moves = "line"
    if not all(seq and not others for seq, others in carried):
        return 1 if any(seq for seq, _ in carried) else 0
    return 3 if view.moves else 2


def _carried(ones: Tensor) -> tuple[bool, bool]:
    """Whether the sequence axis varies, and whether those of batch or heads do."""
    others = max(varies(ones, 0), varies(ones, 1))
    return varies(ones, 2) > 1e-6, others > 1e-6


def _moves_by_position(view: RotaryView, q: Tensor, k: Tensor) -> bool:
    """Whether one token alone changes with its own position."""
    if view.moves == "offset":
        moved, at = view.both(q[:, :, :1], k[:, :, :1], torch.full((len(q), 1), 3)), 0
        still = view.both(q[:, :, :1], k[:, :, :1], torch.zeros(len(q), 1, dtype=torch.long))
        return any(
            m is not None and s is not None and bool((m - s)[:, :, at].any())
            for m, s in zip(moved, still, strict=True)
        )
    still = torch.zeros(len(q), SEQ, dtype=torch.long)
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
    return any(bool(c[-1] > 1e-6) and not bool((c[:-1] > 1e-6).any()) for c in changes)


def _views(subject: Subject, said: str | None, width: int | None) -> Iterator[RotaryView]:
    thing = subject.fresh()
    names = ("head_dim", "head_size")
    told = [n for name in names if isinstance(n := subject.arguments.get(name), int)]
    widths = (width,) if width else tuple(dict.fromkeys((*told, *widths_of(subject.fresh())[:10])))
    orders = layouts.orders(said, layouts.LAYOUTS)
    for text, find in callables_of(thing):
        for parameters in assignments(find(thing)):
            required = {p.role for p in parameters if p.required}
            if not required <= KNOWN or not required & {"x", "q"}:
                continue
            for moves, uses in _ways(parameters):
                for layout in orders:
                    for dim in widths:
                        yield from _called(
                            subject, text, find, parameters, moves, uses, layout, dim, said
                        )
    yield from tables.applied_views(subject, said, widths)


KNOWN = {"x", "q", "k", "positions", "offset", "length", "dim", "mask", "dtype"}


def _ways(parameters: list[Parameter]) -> Iterator[tuple[str, frozenset[str]]]:
    roles = {p.role for p in parameters}
    required = {p.role for p in parameters if p.required}
    if "positions" in roles:
        yield "rows", frozenset({"positions"})
        yield "line", frozenset({"positions"})
    if "offset" in roles:
        yield "offset", frozenset({"offset"})
    if "positions" not in required and "offset" not in required:
        yield "", frozenset()


def _called(
    subject: Subject,
    text: str,
    find: Callable[[Any], Any],
    parameters: list[Parameter],
    moves: str,
    uses: frozenset[str],
    layout: str,
    dim: int,
    said: str | None,
) -> Iterator[RotaryView]:
    flat = layout in ("tx", "thd")
    if moves == "rows" and layout in layouts.ONE_ROW and not flat:
        return
    if moves == "line" and layout == "tx":
        return
    pairs = "q" in {p.role for p in parameters if p.required}
    run = runner(find, parameters, moves, uses, layout)
    unheard = None
    for how, said_by in _ways(parameters) if not moves else ():
        if how in ("rows", "offset") and unheard is None:
            name = next(p.name for p in parameters if p.role in said_by)
            unheard = name, runner(find, parameters, how, said_by, layout)
    others = tuple(
        (p.name, runner(find, parameters, *way, layout))
        for way in (_ways(parameters) if moves else ())
        for p in parameters
        if {p.role} == way[1] != uses and not p.required and way[0] != "line"
    )
    heard = {name for name, _ in (*others, *((unheard,) if unheard else ()))}
    left = tuple(
        p.name
        for p in parameters
        if p.role in ("mask", "length", "positions", "offset")
        and not p.required
        and p.role not in uses
        and p.name not in heard
    )
    optional = moves and not {"positions", "offset"} & {p.role for p in parameters if p.required}
    unsaid = runner(find, parameters, "", frozenset(), layout) if optional else None
    for kv_heads in (2, HEADS) if pairs else (HEADS,):
        told = text_of(text, parameters, uses)
        yield RotaryView(
            subject, run, told, dim, layout, said is not None, moves, pairs, kv_heads,
            unheard=unheard, unsaid=unsaid, others=others, left=left,
        )  # fmt: skip


def runner(
    find: Callable[[Any], Any],
    parameters: list[Parameter],
    moves: str,
    uses: frozenset[str],
    layout: str,
) -> Run:
    """A call with queries and keys in one order of axes, positions in shapes that it takes."""
    roles = {p.role for p in parameters}

    def once(thing: Any, content: dict[str, Tensor], positions: Tensor, like: list[Tensor]) -> Both:
        heads = like[0].shape[1]
        shapes = list(layouts.said_positions(positions, layout, heads))
        if layout in layouts.ONE_ROW:
            shapes = [positions[0]]
        if moves == "line":
            shapes = shapes[-1:] if shapes[-1].ndim == 1 else []
            if not shapes:
                raise CallFailedError("it takes one position a token, for all rows alike")
        elif moves == "rows" and layout not in layouts.ONE_ROW:
            shapes = shapes[:1]
        problem: CallFailedError | None = None
        for some in shapes if moves in ("rows", "line") else shapes[:1]:
            values = {
                **{n: layouts.laid_out(x, layout) for n, x in content.items()},
                "positions": some.clone(), "offset": int(positions[0, 0]),
                "length": int(positions.max()) + 1, "dim": like[0].shape[-1],
                "dtype": like[0].dtype,
            }  # fmt: skip
            try:
                made = bound(find(thing), parameters, values, uses)
            except CallFailedError as error:
                problem = problem or error
                continue
            if isinstance(made, tuple | list) and len(like) == 2 and len(made) >= 2:
                return tuple(  # type: ignore[return-value]
                    layouts.taken_back(m, layout, x) for m, x in zip(made, like, strict=False)
                )
            return layouts.taken_back(made, layout, like[0]), None
        raise problem or CallFailedError("it takes no positions")

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        if "q" in roles:
            contents = {"q": q, "k": k} if "k" in roles else {"q": q}
            return once(thing, contents, positions, [q, k] if "k" in roles else [q])
        queries, _ = once(thing, {"x": q}, positions, [q])
        return queries, None

    return run
