"""Is every token turned as its place means?"""

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import guarded, varies
from posenc.audit.adapters.grid import ITS_GRID
from posenc.audit.adapters.rotary_view import HEADS, RotaryView
from posenc.audit.questions import rows
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_ORDER,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.places import STARTS, said
from posenc.audit.questions.rotary.inquiry import NEAR, ROUNDING, RotaryInquiry
from posenc.audit.report import Fault, NotAskedError


@question(essential=True)
def encodes_the_sequence(inquiry: RotaryInquiry) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    view = inquiry.view
    batch = 1 if view.layout in layouts.ONE_ROW else 3
    ones = torch.ones(batch, HEADS, 6, view.dim)
    queries, keys = view.both(ones, ones[:, : view.kv_heads])
    along = max(varies(m, 2) for m in (queries, keys) if m is not None)
    for axis, name, words in (
        (0, "batch-axis-encoded", "rows of a batch"),
        (1, "head-axis-encoded", "heads"),
    ):
        across = max(varies(m, axis) for m in (queries, keys) if m is not None)
        if across > 1e-6:
            still = "" if axis == 0 else _unturned(queries)
            return fault(
                name,
                "wrong",
                f"equal {words} come out up to {across:.3g} apart, positions of a row {along:.3g}"
                f"{still}",
                across,
                "import torch\n"
                f"x = torch.ones(3, 4, 6, {view.dim})  # {layouts.SAID[view.layout]}\n"
                f"made = subject(x)  # as {view.text}; compare along axis {axis}",
            )
    if along <= 1e-9 and (along := varies(inquiry.matrices, 0)) <= 1e-9:
        return fault(
            "encodes-nothing",
            "wrong",
            "all positions of a row are turned alike",
            along,
            "import torch\n"
            f"x = torch.ones(1, 4, 6, {view.dim})\n"
            "subject(x)  # every token the same",
            1.0,
        )
    return f"neighbors up to {along:.3g} apart, equal rows and heads 0"


def _unturned(queries: Tensor) -> str:
    """Which heads of ones come out as they went in, in words."""
    still = (queries == 1).flatten(2).all(2).all(0).nonzero().flatten().tolist()
    return f"; left as they are: head {', '.join(map(str, still))}" if still else ""


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(inquiry: RotaryInquiry) -> Answer:
    """Is every position turned in its own way, also beyond the length it is built for?"""
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    line, table, refused = inquiry.far
    view = inquiry.view
    found = rows.beyond(
        table,
        torch.tensor(line),
        "the rotation",
        lambda p, q: (
            "import torch\n"
            f"x = torch.ones(1, 4, {q + 1}, {view.dim})\n"
            f"# the tokens at {p} and {q} of the rotated x are equal"
        ),
    )
    if found is not None:
        return found
    ends = f"; beyond {line[-1]:,} it refuses ({refused[:80]})" if refused else ""
    if ITS_GRID in refused:  # which was not asked further
        ends = f"; {refused[refused.index(ITS_GRID) :]}"
    return f"{len(line):,} positions to {line[-1]:,}, all turned differently{ends}"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(inquiry: RotaryInquiry) -> Answer:
    """Is a position turned the same in a short row and in a long one?"""
    view = inquiry.view
    x = torch.randn(1, HEADS, 24, view.dim, generator=torch.Generator().manual_seed(2))
    long, short = (
        view.both(x, x[:, : view.kv_heads]),
        view.both(x[:, :, :9], x[:, : view.kv_heads, :9]),
    )
    apart = {
        side: (a[:, :, :9] - b).abs().max().item()
        for side, a, b in zip(("queries", "keys"), long, short, strict=True)
        if a is not None and b is not None
    }
    far = max(apart.values())
    if far < ROUNDING:
        if (longer := _stretched(inquiry) or _in_the_longest(inquiry)) is not None:
            return longer
        return f"{far:.1g} apart between 9 and 24 tokens"
    if long[1] is not None and short[1] is not None:
        scores = long[0][:, : view.kv_heads] @ long[1].mT
        fewer = short[0][:, : view.kv_heads] @ short[1].mT
        if (scores[:, :, :9, :9] - fewer).abs().max().item() < 10 * ROUNDING:
            return f"tokens {far:.3g} apart between 9 and 24 tokens, but their scores are not"
    changed = [side for side, off in apart.items() if off >= ROUNDING]
    return fault(
        "depends-on-length",
        "wrong",
        f"in rows of 9 and of 24 tokens the same {' and '.join(changed)} come out up to {far:.3g} "
        "apart",
        far,
        "import torch\n"
        f"x = torch.randn(1, 4, 24, {view.dim})\n"
        "# subject(x[:, :, :9]) against subject(x)[:, :, :9]",
    )


def _in_the_longest(inquiry: RotaryInquiry) -> Fault | None:
    """First tokens that turn otherwise in the longest row that is asked, as of another base."""
    if inquiry.shape.odd or not inquiry.shape.firsts:
        return None
    try:
        line, off = inquiry.far[0], inquiry.by_length
    except NotAskedError:
        return None
    if off < (1e-2 if inquiry.coarse else 1e-4):
        return None
    first, last = NEAR, line[-1] + 1
    return fault(
        "depends-on-length",
        "wrong",
        f"in a row that reaches {last:,} tokens, the first {first} are turned otherwise than in a "
        f"row of their own: cosines are up to {off:.3g} apart",
        off,
        f"import torch\nx = torch.ones(1, 4, {last}, {inquiry.view.dim})\n"
        f"# {inquiry.view.text} of x[:, :, :{first}] against the first {first} of all of x",
    )


def _stretched(inquiry: RotaryInquiry) -> Fault | None:
    """Tokens that turn otherwise beside one beyond the length that it is built for.

    So do dynamic scalings: keys that were cached before no longer fit the queries after.
    """
    view, built = inquiry.view, inquiry.view.built_for
    if not built or view.moves not in ("rows", "line") or not inquiry.shape.firsts:
        return None
    near, far = [1, 5, 40], 2 * built
    try:
        alone = view.at(near, inquiry.shape.probe(), inquiry.side)
        beside = view.at([*near, far], inquiry.shape.probe(), inquiry.side)[:-1]
    except NotAskedError:
        return None
    off = (alone - beside).abs().max().item()
    if off < ROUNDING:
        return None
    return fault(
        "depends-on-length",
        "wrong",
        f"once a token at {far:,} is in the call, tokens at 1, 5 and 40 are turned up to "
        f"{off:.3g} otherwise: frequencies follow the longest row, and keys that were cached "
        "before no longer fit",
        off,
        "import torch\n"
        f"near, far = torch.arange(8), torch.tensor([{far}])\n"
        f"# {view.text} at near against near and far together",
    )


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(inquiry: RotaryInquiry) -> Answer:
    """Is one token behind a cache turned as in the whole row?"""
    view = inquiry.view
    if hasattr(view.subject.fresh(), "rotate_queries_with_cached_keys"):
        return _joins_a_cache(view)
    if not view.moves:
        return _unheard(view)
    x = torch.randn(1, HEADS, 9, view.dim, generator=torch.Generator().manual_seed(3))
    sides = ("q", "k") if view.sees_keys else ("q",)
    worst = 0.0
    for side in sides:
        whole = view.turned(x, side=side)

        def steps(shift: int, side: str = side) -> Tensor:
            made = [view.turned(x[:, :, p : p + 1], p + shift, side=side) for p in range(2, 9)]
            return torch.cat(made, 2)

        far = (steps(0) - whole[:, :, 2:]).abs().max().item()
        worst = max(worst, far)
        if far < ROUNDING:
            continue
        what = "queries" if side == "q" else "keys"
        show = (
            "import torch\n"
            f"x = torch.randn(1, 4, 9, {view.dim})\n"
            f"# {view.text} of x[:, :, 5:6] at 5 against subject(x)[:, :, 5:6]"
        )
        for shift in (1, -1):
            if (steps(shift) - whole[:, :, 2:]).abs().max() < ROUNDING:
                return fault(
                    "off-by-one-after-cache",
                    "wrong",
                    f"behind a cache {what} of token p are turned as token p "
                    f"{'−' if shift == 1 else '+'} 1 is in the whole row ({far:.3g} off)",
                    far,
                    show,
                )
        return fault(
            "decoding-differs-from-prefill",
            "wrong",
            f"{what} turned one by one are up to {far:.3g} away from the same turned together",
            far,
            show,
        )
    places = _long_row(view)
    for side in sides if places else ():
        long = torch.randn(
            1, HEADS, places[-1] + 1, view.dim, generator=torch.Generator().manual_seed(4)
        )
        whole = view.turned(long, side=side)[:, :, places]
        alone = [view.turned(long[:, :, p : p + 1], p, side=side) for p in places]
        off = (torch.cat(alone, 2) - whole).abs().amax((0, 1, 3))
        allowed = ROUNDING + torch.tensor(places) * FLOAT32 * long.abs().max()
        if bool((off > allowed).any()):
            first = places[int((off > allowed).nonzero()[0])]
            return fault(
                "decoding-differs-from-prefill",
                "wrong",
                f"in a row of {places[-1] + 1} tokens, that at {first} is turned up to "
                f"{off.max().item():.3g} otherwise than alone at its position",
                off.max().item(),
                f"import torch\nx = torch.randn(1, 4, {places[-1] + 1}, {view.dim})\n"
                f"# {view.text} of x[:, :, {first}:{first + 1}] at {first} against the whole row",
            )
    return f"{worst:.1g} apart at positions 2 to {places[-1] if places else 8}"


def _long_row(view: RotaryView) -> list[int]:
    """Some positions of as long a row as it takes and is cheap to ask; none if that is short."""
    for length in (600, 130, 66):
        probe = torch.ones(1, HEADS, length, view.dim)
        try:
            view.turned(probe)
            view.turned(probe[:, :, :1], length - 1)
        except NotAskedError:
            continue
        return sorted(
            {p for p in (63, 64, 65, 127, 128, 129, 255, 257, 511, 513, length - 1) if p < length}
        )
    return []


FLOAT32 = 2.0**-20
"""How far what is turned may be off for each position, where angles are computed in float32."""


def _unheard(view: RotaryView) -> Answer:
    """One token, first at 0 and then at 5, by a parameter that did not show in longer rows."""
    if view.unheard is None:
        return _beside_longer_keys(view)
    name, run = view.unheard
    x = torch.randn(1, HEADS, 1, view.dim, generator=torch.Generator().manual_seed(3))
    made = [
        run(view.subject.fresh(), x.clone(), x[:, : view.kv_heads].clone(), torch.tensor([[p]]))
        for p in (0, 5)
    ]
    far = max((a - b).abs().max().item() for a, b in zip(*made, strict=True) if a is not None)
    if far:
        raise NotAskedError(f"positions said by {name} are not those of a row")
    return fault(
        "decoding-differs-from-prefill",
        "wrong",
        f"{name} changes nothing: a token behind a cache of 5 is turned as the first token is",
        0.0,
        "import torch\n"
        f"x = torch.randn(1, 4, 1, {view.dim})\n"
        f"# subject(x, {name}=0) and subject(x, {name}=5) are the same",
        1.0,
    )


def _beside_longer_keys(view: RotaryView) -> Answer:
    """The last queries beside all keys, where no positions can be said.

    What is built for whole rows alone takes fewer queries for the first, and is right for these.
    """
    x = torch.randn(1, HEADS, 9, view.dim, generator=torch.Generator().manual_seed(3))
    keys, few = x[:, : view.kv_heads], 3
    refused = NotAskedError("positions cannot be said")
    if not view.sees_keys or view.layout in layouts.ONE_ROW:
        raise refused
    whole, all_keys = view.both(x, keys)
    try:
        made, beside = view.both(x[:, :, -few:], keys, torch.arange(9)[None])
    except NotAskedError:
        raise refused from None
    if all_keys is None or beside is None or (beside - all_keys).abs().max() > ROUNDING:
        raise refused
    off = (made - whole[:, :, -few:]).abs().max().item()
    if off < ROUNDING:
        return f"{few} queries beside 9 keys {off:.1g} away from the last of the row"
    first = view.both(x[:, :, -few:], keys[:, :, -few:])[0]
    if (made - first).abs().max() < ROUNDING:
        raise NotAskedError(
            f"positions cannot be said; {few} queries beside 9 keys are turned as the first of a "
            "row, so it serves none behind a cache"
        )
    early = torch.cat((x[:, :, : -few - 1], x[:, :, -few:]), 2)  # they stand one before the end
    late = view.both(early, early[:, : view.kv_heads])[0][:, :, -few:]
    by_one = bool((made - late).abs().max() < ROUNDING)
    return fault(
        "off-by-one-after-cache" if by_one else "decoding-differs-from-prefill",
        "wrong",
        f"{few} queries beside 9 keys are turned up to {off:.3g} away from the last of a row, "
        + ("as if they stood one token before" if by_one else "and otherwise than the first"),
        off,
        "import torch\n"
        f"x = torch.randn(1, 4, 9, {view.dim})\n"
        f"# subject(x[:, :, -{few}:], x) against subject(x, x)",
    )


def _joins_a_cache(view: RotaryView) -> Answer:
    """Scores of the last query, turned together with cached keys, as in rotary-embedding-torch."""
    x = torch.randn(1, HEADS, 9, view.dim, generator=torch.Generator().manual_seed(3))
    queries, keys = view.both(x, x[:, : view.kv_heads])
    if keys is None:
        raise NotAskedError("keys were not seen")
    thing = view.subject.fresh()
    last, cached = guarded(lambda: thing.rotate_queries_with_cached_keys(x[:, :, -1:], x))
    scores, joined = (
        (q[:, : k.shape[1]] @ k.mT)[:, :, -1]
        for q, k in ((queries, keys), (last, cached[:, : keys.shape[1]]))
    )
    far = (scores - joined).abs().max().item()
    if far < ROUNDING * scores.abs().max().item():
        return f"scores of the last query {far:.1g} apart"
    return fault(
        "decoding-differs-from-prefill",
        "wrong",
        f"with cached keys the last query's scores are up to {far:.3g} away from those of the "
        "whole row",
        far,
        "import torch\n"
        f"x = torch.randn(1, 4, 9, {view.dim})\n"
        "# subject.rotate_queries_with_cached_keys(x[:, :, -1:], x) against "
        "rotate_queries_and_keys(x, x)",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "depends-on-how-it-is-given"))
def rows_have_their_own_positions(inquiry: RotaryInquiry) -> Answer:
    """In a batch with padding on the left, is each row turned by its own positions?"""
    view = inquiry.view
    if view.moves != "rows" or view.layout in layouts.ONE_ROW:
        raise NotAskedError("positions cannot be said for each row")
    worst, asked = 0.0, []
    for count in (6, 1):  # a row of a prompt, and the token that is decoded after one
        try:
            far, starts = _among_rows(view, count)
        except NotAskedError:
            if count == 6:
                raise
            continue
        worst = max(worst, far)
        asked.append("of 6 tokens" if count == 6 else "of one")
        if far >= ROUNDING:
            tokens = "one token each" if count == 1 else f"{count} tokens each"
            return fault(
                "padding-shifts-positions",
                "wrong",
                f"with rows of {tokens} that begin at {said(starts)}, tokens come out up to "
                f"{far:.3g} away from the same rows alone",
                far,
                "import torch\n"
                f"x = torch.randn({len(starts)}, 4, {count}, {view.dim})\n"
                f"at = torch.tensor({starts.tolist()})[:, None] + torch.arange({count})\n"
                f"# {view.text} at these positions against each row alone",
            )
    return f"{worst:.1g} apart from the rows alone, {' and '.join(asked)}"


def _among_rows(view: RotaryView, count: int) -> tuple[float, Tensor]:
    """How far rows of so many tokens come out from themselves alone, and where each begins.

    Two rows, where a cache has no room for more.

    Raises:
        NotAskedError: It refuses these too.
    """
    try:
        return _beside_rows(view, count, STARTS), STARTS
    except NotAskedError:
        return _beside_rows(view, count, STARTS[:2]), STARTS[:2]


def _beside_rows(view: RotaryView, count: int, starts: Tensor) -> float:
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(len(starts), HEADS, count, view.dim, generator=generator)
    at = starts[:, None] + torch.arange(count)
    rows = zip(x.split(1), at.split(1), strict=True)
    alone = [view.both(row, row[:, : view.kv_heads], line) for row, line in rows]
    return max(
        (made - torch.cat(each)).abs().max().item()  # type: ignore[arg-type]
        for made, each in zip(
            view.both(x, x[:, : view.kv_heads], at), zip(*alone, strict=True), strict=True
        )
        if made is not None
    )
