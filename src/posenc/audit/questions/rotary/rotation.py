"""Is it a rotation, and do queries and keys agree?"""

import torch
from torch import Tensor

from posenc.audit.identity import structures
from posenc.audit.questions.asking import NO_LENGTH, NO_PLACE, NO_STATE, Answer, fault, question
from posenc.audit.questions.rotary.inquiry import COARSE, RotaryInquiry
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError

FLOAT32 = 2.0**-21
"""How far cosines may be off for each position, where angles are computed in float32."""

ONE_CALL = "keys go through the same call"

NO_ROTATION = ("sign-missing", "pairing-mixed", "not-relative")

KEYS = ("only-queries-rotated", "only-keys-rotated", "keys-turned-backwards",
        "keys-turned-otherwise")  # fmt: skip


@question(essential=True)
def sides_stay_apart(q: RotaryInquiry) -> Answer:
    """Are queries made of queries alone, and keys of keys?"""
    view = q.view
    if not view.sees_keys:
        raise NotAskedError(ONE_CALL)
    x, other = q.content(6, seed=12), q.content(6, seed=13)
    keys, other_keys = (each.flip(-1)[:, : view.kv_heads] for each in (x, other))
    both = view.both(x, keys)
    changed = view.both(x, other_keys)[0], view.both(other, keys)[1]
    for whose, one, same in zip(("queries", "keys"), both, changed, strict=True):
        if one is not None and same is not None and (off := apart(one, same)):
            said = f"{whose} come out up to {off:.3g} otherwise beside others: they are mixed"
            return fault("sides-mixed", said, off)
    return "not a bit changes beside others"


@question(essential=True, after=NO_LENGTH)
def is_a_rotation(q: RotaryInquiry) -> Answer:
    """Is each pair of channels turned by one angle, its length kept?"""
    shape = q.shape
    if not shape.firsts:
        return fault("encodes-nothing", "no channel turns with position", 0.0, expected=1.0)
    if shape.odd.startswith("both sines"):
        said = f"{shape.odd}: (a, b) → (a cos + b sin, b cos + a sin) is a reflection"
        return fault("sign-missing", said, shape.odd_number)
    lengths_change = shape.odd == structures.LENGTHS_CHANGE and q.view.sees_keys
    if lengths_change and _far_apart(q.near, q.keys) < 1e-4:
        return f"{shape.odd}, and those of keys inversely (xPos): products know distances alone"
    if shape.odd:
        said = f"{shape.odd} (by {shape.odd_number:.3g}): products go by more than distance"
        return fault("pairing-mixed" if _is_mixed(q) else "not-relative", said, shape.odd_number)
    if shape.rest != 1.0:
        said = f"channels that do not turn are multiplied with {shape.rest:.4g}"
        return fault("rest-changed", said, shape.rest, expected=1.0)
    return f"{len(shape.firsts)} pairs, {shape.pairing} pairing"


def _far_apart(queries: Tensor, keys: Tensor) -> float:
    """How far products at positions (1, 2) and (4, 5) are apart."""
    return apart(queries[1].T @ keys[2], queries[4].T @ keys[5])


def _is_mixed(q: RotaryInquiry) -> bool:
    """Whether cosines repeat in one way, and their partners stand in the other."""
    diagonal = q.near[1:8].diagonal(dim1=1, dim2=2)
    by_halves = apart(*diagonal.chunk(2, 1)) < 1e-5
    by_neighbors = apart(diagonal[:, 0::2], diagonal[:, 1::2]) < 1e-5
    return by_halves if q.shape.steps == {1} else by_neighbors


@question(after=(*NO_LENGTH, *NO_STATE, *NO_ROTATION))
def keys_go_with_queries(q: RotaryInquiry) -> Answer:
    """Are keys turned as queries of their position are, far ones too?"""
    if not q.view.sees_keys:
        raise NotAskedError(ONE_CALL)
    if q.shape.odd:
        raise NotAskedError("near keys are turned otherwise than queries (xPos' shrink)")
    one = torch.eye(q.view.dim).expand_as(q.near)
    still = [apart(each, one) < 1e-6 for each in (q.near, q.keys)]
    if still[0] != still[1]:
        left, turned = ("keys", "queries") if still[1] else ("queries", "keys")
        moved = apart(q.near, q.keys)
        said = f"{left} come out as they went in, {turned} turn by up to {moved:.3g}"
        return fault(f"only-{turned}-rotated", said, moved)
    if apart(q.near, q.keys.mT) < 1e-4:
        said = "keys are turned by −p where queries are turned by +p: scores go by the sum"
        return fault("keys-turned-backwards", said)
    allowed = COARSE if q.coarse else 1e-4
    if (off := apart(q.near, q.keys)) > allowed:
        said = f"queries and keys of one token are multiplied with matrices {off:.3g} apart"
        return fault("keys-turned-otherwise", said, off)
    queries, keys = (q.view.at(q.far[0], q.shape.probe(), side) for side in q.view.sides)
    known = queries.isfinite().all(1)  # others are asked for elsewhere
    line, away = torch.tensor(q.far[0])[known], (queries - keys).abs().amax(1)[known]
    parted = (~(away <= allowed)).nonzero()  # where a key is no number, too
    if not len(parted):
        return f"{away.max().item():.1g} apart at {len(line):,} positions to {int(line[-1]):,}"
    far = away[parted].max().item()
    said = f"from position {int(line[parted[0]]):,} on keys are turned up to {far:.3g} otherwise"
    return fault("keys-turned-otherwise", said, far)


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, *NO_ROTATION, *KEYS))
def is_relative(q: RotaryInquiry) -> Answer:
    """Do products of a query and a key depend on their distance alone?"""
    if not q.shape.firsts:
        raise NotAskedError("nothing turns")
    off = _far_apart(q.near, q.keys if q.view.sees_keys else q.near)
    if off < (COARSE if q.coarse else 1e-4) * max(q.near.abs().max().item() ** 2, 1.0):
        return f"{off:.1g} apart between positions (1, 2) and (4, 5)"
    if q.shape.odd:
        raise NotAskedError(f"it is no rotation: {q.shape.odd}")
    said = f"the product of a query at 1 and a key at 2 is {off:.3g} away from that at 4 and 5"
    return fault("not-relative", said, off)


@question(after=(*NO_PLACE, *NO_ROTATION))
def steps_are_alike(q: RotaryInquiry) -> Answer:
    """Is every token turned as far beyond the one before it, wherever both stand?"""
    if q.rotation is not None:
        raise NotAskedError("what it is is known, and every position is held against that")
    if q.shape.odd:
        raise NotAskedError("it is no rotation")
    line, table, _ = q.far
    where = torch.tensor(line)
    cos, sin = (table / q.shape.size).chunk(2, dim=-1)
    follows = where[1:] == where[:-1] + 1
    steps = cos[1:] * cos[:-1] + sin[1:] * sin[:-1]
    off = (steps - steps[1]).abs().amax(1)
    fastest = max(1.0, float(q.shape.frequencies.abs().max()))
    allowed = (COARSE if q.coarse else 1e-4) + where[1:] * fastest * FLOAT32
    parted = (follows & ~(off <= allowed)).nonzero()
    if not len(parted):
        return f"{off[follows].max().item():.1g} apart among neighbors to {line[-1]:,}"
    p, far = int(where[parted[0]]), off[parted[0]].item()
    said = f"positions {p:,} and {p + 1:,} are turned apart otherwise than 1 and 2, by {far:.3g}"
    return fault("not-relative", said, far)
