"""Is it a rotation, do queries and keys agree, and which schedule is it?"""

from collections.abc import Iterator
from math import pi
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.calls import guarded
from posenc.audit.identity import rotations, schedules, structures
from posenc.audit.identity.schedules import KNOWN, OF_GRIDS
from posenc.audit.questions.asking import ROUNDING, Answer, compared, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_PLACE, NO_STATE, fault
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.rows import apart
from posenc.audit.report import Fault, NotAskedError
from posenc.frequencies import Geometric

FLOAT32 = 2.0**-21  # how far cosines may be off for each position, by angles of float32
FEW = 3  # so many queries are asked beside longer keys
ONE_CALL = "keys go through the same call"
NO_ROTATION = ("sign-missing", "pairing-mixed", "not-relative")
KEYS = ("only-queries-rotated", "only-keys-rotated", "keys-turned-backwards",
        "keys-turned-otherwise")  # fmt: skip
DIFFERS = "decoding-differs-from-prefill"


@question(essential=True)
def sides_stay_apart(q: RotaryInquiry) -> Answer:
    """Are queries made of queries alone, and keys of keys?"""
    view = q.view
    needed(view.sees_keys, ONE_CALL)
    x, other = q.content(6, seed=12), q.content(6, seed=13)
    keys, other_keys = (each.flip(-1)[:, : view.kv_heads] for each in (x, other))
    both = view.both(x, keys)
    changed = view.both(x, other_keys)[0], view.both(other, keys)[1]
    for whose, one, same in zip(("queries", "keys"), both, changed, strict=True):
        if one is not None and same is not None and (off := apart(one, same)):
            return fault("sides-mixed", f"beside others {whose} are up to {off:.3g} away", off)
    return "not a bit changes beside others"


@question(essential=True, after=NO_LENGTH)
def is_a_rotation(q: RotaryInquiry) -> Answer:
    """Is each pair of channels turned by one angle, its length kept?"""
    shape = q.shape
    if not shape.firsts:
        return fault("encodes-nothing", "no channel turns with position", 0.0, expected=1.0)
    if shape.odd.startswith("both sines"):
        return fault("sign-missing", f"{shape.odd}: it is a reflection", shape.odd_number)
    lengths_change = shape.odd == structures.LENGTHS_CHANGE and q.view.sees_keys
    if lengths_change and _far_apart(q.near, q.keys) < 1e-4:
        return f"{shape.odd}, and those of keys inversely (xPos): products know distances alone"
    if shape.odd:
        said = f"{shape.odd} (by {shape.odd_number:.3g}): products go by more than distance"
        return fault("pairing-mixed" if _is_mixed(q) else "not-relative", said, shape.odd_number)
    if (rest := shape.rest) != 1.0:
        return fault("rest-changed", f"channels that rest are times {rest:.4g}", rest, expected=1.0)
    return f"{len(shape.firsts)} pairs, {shape.pairing} pairing"


def _far_apart(queries: Tensor, keys: Tensor) -> float:
    """How far products at positions (1, 2) and (4, 5) are apart."""
    return apart(queries[1].T @ keys[2], queries[4].T @ keys[5])


def _is_mixed(q: RotaryInquiry) -> bool:
    """Whether cosines repeat in one way, and their partners stand in the other."""
    diagonal = q.near[1:8].diagonal(dim1=1, dim2=2)
    if q.shape.steps == {1}:
        return apart(*diagonal.chunk(2, 1)) < 1e-5
    return apart(diagonal[:, 0::2], diagonal[:, 1::2]) < 1e-5


@question(after=(*NO_LENGTH, *NO_STATE, *NO_ROTATION))
def keys_go_with_queries(q: RotaryInquiry) -> Answer:
    """Are keys turned as queries of their position are, far ones too?"""
    needed(q.view.sees_keys, ONE_CALL)
    needed(not q.shape.odd, "near keys are turned otherwise than queries (xPos' shrink)")
    one = torch.eye(q.view.dim).expand_as(q.near)
    off, still = apart(q.near, q.keys), [apart(each, one) < 1e-6 for each in (q.near, q.keys)]
    if still[0] != still[1]:
        turned = "queries" if still[1] else "keys"
        return fault(f"only-{turned}-rotated", f"{turned} alone turn, by up to {off:.3g}", off)
    if apart(q.near, q.keys.mT) < 1e-4:
        return fault("keys-turned-backwards", "keys are turned by −p where queries are by +p")
    if off > q.loose:
        return fault("keys-turned-otherwise", f"queries and keys are turned {off:.3g} apart", off)
    queries, keys = (q.view.at(q.far[0], q.shape.probe(), side) for side in q.view.sides)
    known = queries.isfinite().all(1)  # others are asked for elsewhere
    line, away = torch.tensor(q.far[0])[known], (queries - keys).abs().amax(1)[known]
    parted = (~(away <= q.loose)).nonzero()  # where a key is no number, too
    if not len(parted):
        return f"{away.max().item():.1g} apart at {len(line):,} positions to {int(line[-1]):,}"
    p, far = int(line[parted[0]]), away[parted].max().item()
    return fault("keys-turned-otherwise", f"from {p:,} on they are turned {far:.3g} apart", far)


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, *NO_ROTATION, *KEYS))
def is_relative(q: RotaryInquiry) -> Answer:
    """Do products of a query and a key depend on their distance alone?"""
    off = _far_apart(q.near, q.keys if q.view.sees_keys else q.near)
    if off < q.loose * max(q.near.abs().max().item() ** 2, 1.0):
        return f"{off:.1g} apart between positions (1, 2) and (4, 5)"
    return fault("not-relative", f"products at (1, 2) and (4, 5) are {off:.3g} apart", off)


@question(after=(*NO_PLACE, *NO_ROTATION))
def steps_are_alike(q: RotaryInquiry) -> Answer:
    """Is every token turned as far beyond the one before it, wherever both stand?"""
    needed(q.rotation is None, "what it is is known, and every position is held against that")
    needed(not q.shape.odd, "it is no rotation")
    line, table, _ = q.far
    where = torch.tensor(line)
    cos, sin = (table / q.shape.size).chunk(2, dim=-1)
    follows = where[1:] == where[:-1] + 1
    steps = cos[1:] * cos[:-1] + sin[1:] * sin[:-1]
    off = (steps - steps[1]).abs().amax(1)
    fastest = max(1.0, float(q.shape.frequencies.abs().max()))
    parted = (follows & ~(off <= q.loose + where[1:] * fastest * FLOAT32)).nonzero()
    if not len(parted):
        return f"{off[follows].max().item():.1g} apart among neighbors to {line[-1]:,}"
    p, far = int(where[parted[0]]), off[parted[0]].item()
    return fault("not-relative", f"the step from position {p:,} on is {far:.3g} off", far)


# Which schedule is it?


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(q: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    needed(q.shape.firsts and not q.shape.odd, f"it is no rotation: {q.shape.odd}")
    if q.rotation is None:
        return _unknown(q)
    return [*_slips(q, q.rotation)] or f"within 2e-06 a position of {q.rotation.named}"


def _unknown(q: RotaryInquiry) -> Fault:
    needed(not q.learns, "its frequencies are learned")
    shape, first = q.shape, ", ".join(f"{w:.4g}" for w in q.shape.frequencies[:3].tolist())
    said = f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no known schedule"
    if pairs := (shape.speeds < 0).nonzero().flatten().tolist():
        more = f", … ({len(pairs)} in all)" if len(pairs) > 4 else ""
        said += f"; pair(s) {', '.join(map(str, pairs[:4]))}{more} turn against the first"
    said, number = said + rotations.resembles(shape), shape.frequencies[0].item()
    return fault("unknown-frequencies", said, number, severity=q.unknown)


def _slips(q: RotaryInquiry, found: rotations.Rotation) -> Iterator[Fault]:
    """What is wrong or unusual about a schedule and how it is applied."""
    shape, base = q.shape, getattr(found.schedule, "base", 0.0)
    if isinstance(found.schedule, Geometric) and abs(base - 1) < 1e-5:
        yield fault("wrong-exponent", "all pairs turn by one frequency: the exponent is 0 in each")
    elif found.slip:
        in_use = base in KNOWN and base not in OF_GRIDS  # as 1,000
        name = "perhaps-wrong-exponent" if in_use else "wrong-exponent"
        yield fault(name, f"frequencies fall as {found.named}: the exponent has {found.slip}")
    elif found.unusual:
        yield fault("unusual-base", f"{found.named} is that of no known model")
    if q.off_factor:
        name = "factor-left-out" if abs(shape.size - 1) <= 1e-5 else "table-scaled"
        said = f"cosines are multiplied with {shape.size:.6g}, not the {found.factor:.6g} of"
        yield fault(name, f"{said} {found.named}", shape.size, expected=found.factor)
    if found.missing:
        pairs = ", ".join(map(str, found.missing))
        yield fault("pair-never-turns", f"pair(s) {pairs} never turn", len(found.missing))
    if shape.begin is None and bool(((shape.phases.abs() - pi / 2).abs() < 1e-3).all()):
        yield fault("turned-backwards", "sines and cosines are exchanged", pi / 2, severity="wrong")
        return
    if shape.sense < 0:
        yield fault("turned-backwards", "queries and keys are turned by −p", -1.0, expected=1.0)
    if shape.begin != 0:
        first = shape.phases.abs().max().item()
        said = f"the first token is turned by up to {first:.3g} radians: scores are the same"
        yield fault("begins-elsewhere", said, first)


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(q: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours = needed(q.expected, "no configuration beside it says a rotary encoding")
    shape = q.shape
    needed(shape.firsts and not shape.odd, "it is no rotation")
    unlike, named = "unlike-its-configuration", schedules.describe(ours.frequencies)
    seen = not (q.view.gives_tables or q.view.is_one_of_several)
    if seen and shape.pairing != ours.pairing:
        said = f"the pairing is {shape.pairing}, the configuration means {ours.pairing}"
        return fault("pairing-of-the-other-convention", said)
    if seen and shape.dim == ours.head_dim > ours.rotated_dim and shape.place != ours.rotated:
        return fault(unlike, f"it turns channels from {shape.start} on", shape.start)
    theirs, wanted = shape.speeds, schedules.radians(ours.frequencies)
    if bool((wanted < 0).all()):  # nanochat turns by −p, and is meant to
        wanted = shape.sense * wanted
    if not schedules.fits(wanted, theirs):
        shared = min(len(theirs), len(wanted))
        off = (theirs[:shared] - wanted[:shared]).abs().max().item()
        now = q.rotation.named if q.rotation is not None else "other frequencies"
        said = f"it has {now} over {2 * len(theirs)} channels, the configuration means {named}"
        return fault(unlike, f"{said} over {2 * len(wanted)}", off)
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > (1e-3 if q.coarse else 1e-5):
        return fault(unlike, f"cosines are times {shape.size:.6g}, not {factor:.6g}", shape.size)
    if shape.pairing == ours.pairing:
        return f"{named}, {ours.pairing} pairing"
    return f"{named}, whose pairing goes by how it is applied, which was not seen"


# Behind a cache, where positions cannot be said token by token.


def decodes_otherwise(q: Any) -> Answer | None:
    """The answer for what decodes by a method of its own, or takes no positions."""
    if hasattr(q.view.subject.fresh(), "rotate_queries_with_cached_keys"):
        return _joins_a_cache(q)
    if q.view.moves:
        return None
    return _beside_longer_keys(q) if q.view.unheard is None else _unheard(q)


def _unheard(q: Any) -> Answer:
    """One token, first at 0 and then at 5, by a parameter that did not show in longer rows."""
    name, run = q.view.unheard
    first, fifth = (q.otherwise(run).whole(q.content(1), torch.tensor([p])) for p in (0, 5))
    needed(not apart(first, fifth), f"positions said by {name} are not those of a row")
    return fault(DIFFERS, f"{name} changes nothing behind a cache of 5", 0.0, expected=1.0)


def _beside_longer_keys(q: Any) -> Answer:
    """The last queries beside all keys, where no positions can be said."""
    view, x = q.view, q.content(9, seed=3)
    keys, last = x[:, : view.kv_heads], x[:, :, -FEW:]
    needed(view.sees_keys and q.batch(2) > 1, "positions cannot be said")
    whole, all_keys = view.both(x, keys)
    made, beside = view.both(last, keys, torch.arange(9)[None])
    if all_keys is None or beside is None or apart(beside, all_keys) > ROUNDING:
        raise NotAskedError("positions cannot be said")
    off, said = apart(made, whole[:, :, -FEW:]), f"{FEW} queries beside 9 keys are"
    if off < ROUNDING:
        return f"{said} {off:.1g} away from the last of the row"
    other = apart(made, view.both(last, keys[:, :, -FEW:])[0])
    needed(other >= ROUNDING, f"{said} turned as the first of a row")
    return fault(DIFFERS, f"{said} {off:.3g} away from the last of a row", off)


def _joins_a_cache(q: Any) -> Answer:
    """Scores of the last query, turned together with cached keys, as in rotary-embedding-torch."""
    needed(q.view.sees_keys, "keys were not seen")
    x, thing = q.content(9, seed=3), q.view.subject.fresh()
    queries, keys = q.called(x)
    last, cached = guarded(lambda: thing.rotate_queries_with_cached_keys(x[:, :, -1:], x))
    heads, both = keys.shape[1], ((queries, keys), (last, cached))
    scores, joined = (a[:, :heads, -1:] @ b[:, :heads].mT for a, b in both)
    allowed = ROUNDING * scores.abs().max().item()
    ways = [("scores of the last query beside cached keys", allowed, lambda: (scores, joined))]
    return compared(ways, DIFFERS, "away from the whole row's")
