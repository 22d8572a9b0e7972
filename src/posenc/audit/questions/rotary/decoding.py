"""Queries behind a cache where positions cannot be said token by token."""

from typing import Any

import torch

from posenc.audit.adapters.calls import guarded
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.questions.inquiry import ROUNDING
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError

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
    if any(map(apart, first, fifth)):
        raise NotAskedError(f"positions said by {name} are not those of a row")
    said = f"{name} changes nothing: a token behind a cache of 5 is turned as the first token is"
    return fault(DIFFERS, said, 0.0, expected=1.0)


def _beside_longer_keys(q: Any) -> Answer:
    """The last queries beside all keys, where no positions can be said."""
    view, x = q.view, q.content(9, seed=3)
    keys, last = x[:, : view.kv_heads], x[:, :, -FEW:]
    if not view.sees_keys or q.batch(2) == 1:
        raise NotAskedError("positions cannot be said")
    whole, all_keys = view.both(x, keys)
    made, beside = view.both(last, keys, torch.arange(9)[None])
    if all_keys is None or beside is None or apart(beside, all_keys) > ROUNDING:
        raise NotAskedError("positions cannot be said")
    if (off := apart(made, whole[:, :, -FEW:])) < ROUNDING:
        return f"{FEW} queries beside 9 keys {off:.1g} away from the last of the row"
    if apart(made, view.both(last, keys[:, :, -FEW:])[0]) < ROUNDING:
        raise NotAskedError(f"{FEW} queries beside 9 keys are turned as the first of a row")
    said = f"{FEW} queries beside 9 keys are {off:.3g} away from the last of a row"
    return fault(DIFFERS, said, off)


def _joins_a_cache(q: Any) -> Answer:
    """Scores of the last query, turned together with cached keys, as in rotary-embedding-torch."""
    if not q.view.sees_keys:
        raise NotAskedError("keys were not seen")
    x = q.content(9, seed=3)
    queries, keys = q.called(q.view.run, x)
    thing = q.view.subject.fresh()
    last, cached = guarded(lambda: thing.rotate_queries_with_cached_keys(x[:, :, -1:], x))
    heads, both = keys.shape[1], ((queries, keys), (last, cached))
    scores, joined = (a[:, :heads, -1:] @ b[:, :heads].mT for a, b in both)
    off = apart(scores, joined)
    if off < ROUNDING * scores.abs().max().item():
        return f"scores of the last query {off:.1g} apart"
    said = f"with cached keys the last query's scores are up to {off:.3g} away from the whole row's"
    return fault(DIFFERS, said, off)
