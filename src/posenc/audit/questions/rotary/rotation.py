"""Is it a rotation, and do queries and keys agree?"""

import torch
from torch import Tensor

from posenc.audit.adapters.rotary_view import HEADS
from posenc.audit.identity import structures
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_PLACE,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import NotAskedError

ROUNDED = 2e-2
"""How far apart matrices may be whose cosines are numbers of 16 bits."""

FLOAT32 = 2.0**-21
"""How far cosines may be off for each position, where angles are computed in float32."""


@question(essential=True)
def sides_stay_apart(inquiry: RotaryInquiry) -> Answer:
    """Are queries made of queries alone, and keys of keys?"""
    view = inquiry.view
    if not view.sees_keys:
        raise NotAskedError("keys go through the same call")
    drawn = torch.randn(2, 1, HEADS, 6, view.dim, generator=torch.Generator().manual_seed(12))
    q, other_q = drawn
    k, other_k = (x[:, : view.kv_heads] for x in drawn.flip(-1))
    queries, keys = view.both(q, k)
    with_other_keys, _ = view.both(q, other_k)
    _, with_other_queries = view.both(other_q, k)
    assert keys is not None
    assert with_other_queries is not None
    for whose, others, made, changed in (
        ("queries", "keys", queries, with_other_keys),
        ("keys", "queries", keys, with_other_queries),
    ):
        if off := (made - changed).abs().max().item():
            return fault(
                "sides-mixed",
                "wrong",
                f"{whose} come out up to {off:.3g} otherwise beside other {others}: they are made "
                f"of those too",
                off,
                f"import torch\nq, k, other = torch.randn(3, 1, 4, 6, {view.dim})\n"
                f"# {whose} of {view.text}, with {others} of other numbers",
            )
    return "not a bit changes beside others"


@question(essential=True, after=NO_LENGTH)
def is_a_rotation(inquiry: RotaryInquiry) -> Answer:
    """Is each pair of channels turned by one angle, its length kept?"""
    shape = inquiry.shape
    if not shape.firsts:
        return fault(
            "encodes-nothing", "wrong", "no channel turns with position", 0.0, expected=1.0
        )
    if shape.odd.startswith("both sines"):
        return fault(
            "sign-missing",
            "wrong",
            f"{shape.odd}: (a, b) → (a cos + b sin, b cos + a sin) is a reflection, and q·k "
            f"depends on where both stand (by {shape.odd_number:.3g})",
            shape.odd_number,
            _relative_code(inquiry),
        )
    if shape.odd == structures.LENGTHS_CHANGE and _is_relative_all_the_same(inquiry):
        return f"{shape.odd}, and those of keys inversely (xPos): products know distances alone"
    if shape.odd:
        name = "pairing-mixed" if _is_mixed(inquiry) else "not-relative"
        return fault(
            name,
            "wrong",
            f"{shape.odd} (by {shape.odd_number:.3g}): products of queries and keys depend on "
            "where both stand",
            shape.odd_number,
            _relative_code(inquiry),
        )
    if shape.rest != 1.0:
        return fault(
            "rest-changed",
            "wrong",
            f"channels that do not turn are multiplied with {shape.rest:.4g}",
            shape.rest,
            f"import torch\nx = torch.ones(1, 4, 8, {inquiry.view.dim})\n"
            "# the channels of subject(x) that no position changes, against those of x",
            1.0,
        )
    return f"{len(shape.firsts)} pairs, {shape.pairing} pairing"


def _is_relative_all_the_same(inquiry: RotaryInquiry) -> bool:
    """Whether products of queries and keys still depend on distances alone."""
    if not inquiry.view.sees_keys:
        return False
    queries, keys = inquiry.matrices, inquiry.keys
    return bool((queries[1].T @ keys[2] - queries[4].T @ keys[5]).abs().max() < 1e-4)


def _is_mixed(inquiry: RotaryInquiry) -> bool:
    """Whether cosines repeat in one way, and their partners stand in the other."""
    diagonal = inquiry.matrices[1:8].diagonal(dim1=1, dim2=2)
    by_neighbors = (diagonal[:, 0::2] - diagonal[:, 1::2]).abs().max() < 1e-5
    half = diagonal.shape[1] // 2
    by_halves = (diagonal[:, :half] - diagonal[:, half:]).abs().max() < 1e-5
    steps = {b - a for a, b in zip(inquiry.shape.firsts, inquiry.shape.seconds, strict=True)}
    return bool((by_neighbors and steps != {1}) or (by_halves and steps == {1}))


def _relative_code(inquiry: RotaryInquiry) -> str:
    return (
        "import torch\n"
        f"q = k = torch.ones(1, 1, 32, {inquiry.view.dim})\n"
        "# scores of equal distance differ: (rotated q)[..., 3, :] · (rotated k)[..., 8, :] "
        "against 13 and 18"
    )


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "sign-missing", "pairing-mixed", "not-relative")
)
def is_relative(inquiry: RotaryInquiry) -> Answer:
    """Do products of a query and a key depend on their distance alone?"""
    view, queries = inquiry.view, inquiry.matrices
    keys = inquiry.keys if view.sees_keys else queries
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    off = (queries[1].T @ keys[2] - queries[4].T @ keys[5]).abs().max().item()
    size = queries.abs().max().item() ** 2
    allowed = (ROUNDED if inquiry.coarse else 1e-4) * max(size, 1.0)
    if off < allowed:
        if (apart := _at_one_place(queries[1].T @ keys[1])) > allowed:
            return fault(
                "keys-turned-otherwise",
                "wrong",
                f"a query and a key of one position are turned apart (by up to {apart:.3g}): "
                "distances are counted from another than 0",
                apart,
                _relative_code(inquiry),
            )
        how = "" if view.sees_keys else "; keys go through the same call"
        return f"{off:.1g} apart between positions (1, 2) and (4, 5){how}"
    sides = _sides(inquiry, queries, keys)
    if sides is not None:
        return sides
    if inquiry.shape.odd:
        raise NotAskedError(f"it is no rotation: {inquiry.shape.odd}")
    return fault(
        "not-relative",
        "wrong",
        f"the product of a query at 1 and a key at 2 is up to {off:.3g} away from that at 4 and 5",
        off,
        _relative_code(inquiry),
    )


@question(after=(*NO_PLACE, "sign-missing", "pairing-mixed", "not-relative"))
def steps_are_alike(inquiry: RotaryInquiry) -> Answer:
    """Is every token turned as far beyond the one before it, wherever both stand?"""
    if inquiry.rotation is not None:
        raise NotAskedError("what it is is known, and every position is held against that")
    if inquiry.shape.odd or not inquiry.shape.firsts:
        raise NotAskedError("it is no rotation")
    line, table, _ = inquiry.far
    where = torch.tensor(line)
    cos, sin = (table / inquiry.shape.size).chunk(2, dim=-1)
    follows = where[1:] == where[:-1] + 1
    steps = cos[1:] * cos[:-1] + sin[1:] * sin[:-1]
    off = (steps - steps[1]).abs().amax(1)
    fastest = max(1.0, float(inquiry.shape.frequencies.abs().max()))
    allowed = (ROUNDED if inquiry.coarse else 1e-4) + where[1:] * fastest * FLOAT32
    apart = (follows & ~(off <= allowed)).nonzero()
    if not len(apart):
        return f"{off[follows].max().item():.1g} apart among neighbors to {line[-1]:,}"
    first = int(apart[0])
    return fault(
        "not-relative",
        "wrong",
        f"positions {line[first]:,} and {line[first + 1]:,} are turned apart otherwise than 1 and "
        f"2: cosines of the angles between are {off[first].item():.3g} apart",
        off[first].item(),
        _relative_code(inquiry),
    )


@question(
    after=(
        *NO_PLACE, "only-queries-rotated", "only-keys-rotated", "keys-turned-backwards",
        "keys-turned-otherwise", "sign-missing", "pairing-mixed", "not-relative",
    )
)  # fmt: skip
def keys_go_with_queries(inquiry: RotaryInquiry) -> Answer:
    """Are keys turned as queries of their position are, far ones too?"""
    view = inquiry.view
    if not view.sees_keys:
        raise NotAskedError("keys go through the same call")
    allowed = ROUNDED if inquiry.coarse else 1e-4
    near = (inquiry.matrices[: len(inquiry.keys)] - inquiry.keys).abs().max().item()
    if near > allowed and inquiry.shape.odd:
        raise NotAskedError("near keys are turned otherwise than queries (xPos' shrink)")
    if near > allowed:  # queries are turned and nothing else, so keys should be
        return fault(
            "keys-turned-otherwise",
            "wrong",
            f"queries and keys of one token are multiplied with matrices up to {near:.3g} apart",
            near,
            f"import torch\nq = k = torch.ones(1, 4, 8, {view.dim})\nsubject(q, k)  # compare both",
        )
    line, probe = inquiry.far[0], inquiry.shape.probe()
    queries, keys = (view.at(line, probe, side) for side in ("q", "k"))
    off = (queries - keys).abs().amax(1)
    apart = ~(off <= allowed)  # where a key is no number, too
    if not bool(apart.any()):
        return f"{off.max().item():.1g} apart at {len(line):,} positions to {line[-1]:,}"
    first = line[int(apart.nonzero()[0])]
    return fault(
        "keys-turned-otherwise",
        "wrong",
        f"from position {first:,} on a key is turned otherwise than a query of its position, by up "
        f"to {off.max().item():.3g}",
        off.max().item(),
        "import torch\n"
        f"q = k = torch.ones(1, 4, {first + 1}, {view.dim})\n"
        f"# queries and keys of {view.text} at position {first}",
    )


def _at_one_place(products: Tensor) -> float:
    """How far a product at distance 0 is from one in which channels meet themselves alone."""
    stray = products - products.diagonal().diag()
    return max(stray.abs().max().item(), -products.diagonal().min().item())


def _sides(inquiry: RotaryInquiry, queries: Tensor, keys: Tensor) -> Answer | None:
    """What differs between queries and keys."""
    if not inquiry.view.sees_keys:
        return None
    still = [
        (m - torch.eye(m.shape[-1], dtype=m.dtype)).abs().max().item() < 1e-6
        for m in (queries, keys)
    ]
    moved = (queries[5] - queries[1]).abs().max().item()
    show = (
        "import torch\n"
        f"q = k = torch.ones(1, 4, 8, {inquiry.view.dim})\n"
        "subject(q, k)  # compare both"
    )
    if still[1] and not still[0]:
        return fault(
            "only-queries-rotated",
            "wrong",
            f"keys come out as they went in, queries turn by up to {moved:.3g}",
            moved,
            show,
        )
    if still[0] and not still[1]:
        return fault(
            "only-keys-rotated",
            "wrong",
            "queries come out as they went in, keys turn",
            (keys[5] - keys[1]).abs().max().item(),
            show,
        )
    if (queries - keys.mT).abs().max() < 1e-4:
        return fault(
            "keys-turned-backwards",
            "wrong",
            "keys are turned by −p where queries are turned by +p: scores depend on the sum of "
            "positions",
            1.0,
            show,
        )
    off = (queries - keys).abs().max().item()
    if off > 1e-4:
        return fault(
            "keys-turned-otherwise",
            "wrong",
            f"queries and keys of one token are turned by matrices up to {off:.3g} apart",
            off,
            show,
        )
    return None
