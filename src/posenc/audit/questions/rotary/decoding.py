"""Queries behind a cache where positions cannot be said token by token."""

from typing import Any

import torch

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import guarded
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.questions.traces import apart
from posenc.audit.report import NotAskedError

ROUNDING = 1e-5
FEW = 3
DIFFERS = "decoding-differs-from-prefill"


def otherwise(q: Any) -> Answer | None:
    """The answer for what decodes by a method of its own, or takes no positions."""
    if hasattr(q.view.subject.fresh(), "rotate_queries_with_cached_keys"):
        return _joins_a_cache(q)
    if q.view.moves:
        return None
    return _beside_longer_keys(q) if q.view.unheard is None else _unheard(q)


def _unheard(q: Any) -> Answer:
    """One token, first at 0 and then at 5, by a parameter that did not show in longer rows."""
    name, run = q.view.unheard
    x = q.content(1, seed=3)
    first, fifth = (q.called(run, x, torch.tensor([p])) for p in (0, 5))
    if any(apart(a, b) for a, b in zip(first, fifth, strict=True)):
        raise NotAskedError(f"positions said by {name} are not those of a row")
    said = f"{name} changes nothing: a token behind a cache of 5 is turned as the first token is"
    return fault(DIFFERS, said, 0.0, expected=1.0)


def _beside_longer_keys(q: Any) -> Answer:
    """The last queries beside all keys, where no positions can be said.

    What is built for whole rows alone takes fewer queries for the first, and is right for these.
    """
    view, x = q.view, q.content(9, seed=3)
    keys, last = x[:, : view.kv_heads], x[:, :, -FEW:]
    refused = NotAskedError("positions cannot be said")
    if not view.sees_keys or view.layout in layouts.ONE_ROW:
        raise refused
    whole, all_keys = view.both(x, keys)
    try:
        made, beside = view.both(last, keys, torch.arange(9)[None])
    except NotAskedError:
        raise refused from None
    if all_keys is None or beside is None or apart(beside, all_keys) > ROUNDING:
        raise refused
    off = apart(made, whole[:, :, -FEW:])
    if off < ROUNDING:
        return f"{FEW} queries beside 9 keys {off:.1g} away from the last of the row"
    if apart(made, view.both(last, keys[:, :, -FEW:])[0]) < ROUNDING:
        raise NotAskedError(f"{FEW} queries beside 9 keys are turned as the first of a row")
    early = torch.cat((x[:, :, : -FEW - 1], last), 2)  # they stand one before the end
    late = view.both(early, early[:, : view.kv_heads])[0][:, :, -FEW:]
    name = "off-by-one-after-cache" if apart(made, late) < ROUNDING else DIFFERS
    return fault(
        name, f"{FEW} queries beside 9 keys are {off:.3g} away from the last of a row", off
    )


def _joins_a_cache(q: Any) -> Answer:
    """Scores of the last query, turned together with cached keys, as in rotary-embedding-torch."""
    x = q.content(9, seed=3)
    queries, keys = q.view.both(x, x[:, : q.view.kv_heads])
    if keys is None:
        raise NotAskedError("keys were not seen")
    thing = q.view.subject.fresh()
    last, cached = guarded(lambda: thing.rotate_queries_with_cached_keys(x[:, :, -1:], x))
    cached = cached[:, : keys.shape[1]]
    scores, joined = (
        (a[:, : b.shape[1]] @ b.mT)[:, :, -1] for a, b in ((queries, keys), (last, cached))
    )
    off = apart(scores, joined)
    if off < ROUNDING * scores.abs().max().item():
        return f"scores of the last query {off:.1g} apart"
    said = f"with cached keys the last query's scores are up to {off:.3g} away from the whole row's"
    return fault(DIFFERS, said, off)


def not_said(q: Any) -> Answer:
    """The answer for a parameter of positions that did not show token by token."""
    if q.view.unheard is None:
        raise NotAskedError("positions cannot be said")
    name, run = q.view.unheard
    x = q.content(20)
    whole = q.made(x)
    for line in (torch.arange(9), torch.arange(2, 11), torch.tensor([7, 3, 19, 3, 0])):
        off = apart(q.called(run, x[:, :, line], line)[0], whole[:, :, line])
        if off > ROUNDING and not int(line[0]):
            raise NotAskedError(f"positions said by {name} are not those of a row")
        if off > ROUNDING:
            said = f"tokens at {line.tolist()}, said by {name}, are {off:.3g} away from their rows"
            return fault("positions-misread", said, off)
    raise NotAskedError(f"positions said by {name} turn no token alone")
