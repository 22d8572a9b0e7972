"""Does a bias go by distance alone, at every length and behind a cache?"""

from math import isqrt

import torch
from torch import Tensor

from posenc.audit.adapters.bias import SEQ
from posenc.audit.identity import masks, windows
from posenc.audit.questions.asking import NO_STATE, Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.places import said
from posenc.audit.report import Fault, NotAskedError

ROUNDING = 1e-4


@question(essential=True, after=("mask-misplaced",))
def tells_distances_apart(inquiry: BiasInquiry) -> Answer:
    """Does the bias differ between keys of one query?"""
    if (lost := inquiry.broken) is not None:
        return fault(
            "not-a-number",
            "wrong",
            f"at distance {lost[0]:,} the bias is infinite or no number, in a row of {lost[1]:,} "
            "keys: no weight of that query is a number then",
            lost[0],
            inquiry.shown(f"{1 if inquiry.view.rows else lost[1]}, {lost[1]}"),
        )
    seen = inquiry.seen
    later = torch.ones(seen.shape[-2:], dtype=torch.bool).triu(1)
    least, most = windows.extremes(seen.masked_fill(later, -torch.inf), 2)
    spread = (most - least).nan_to_num(0.0).amax(1)
    apart = spread.max().item()
    if apart == 0:
        return fault(
            "encodes-nothing",
            "wrong",
            "all keys that a query sees receive the same bias",
            0.0,
            inquiry.shown("8, 8"),
            1.0,
        )
    hides = (seen.isneginf() & ~later).any(2).any(1)  # a window tells near keys from far ones
    silent = int(((spread == 0) & ~hides).sum())
    if silent:
        return fault(
            "encodes-nothing",
            "wrong",
            f"{silent} of {len(seen)} heads have no bias at all",
            silent,
            inquiry.shown("8, 8"),
        )
    return f"up to {apart:.3g} within a row"


@question(essential=True, after=("encodes-nothing", "depends-on-length", *NO_STATE))
def knows_distance_alone(inquiry: BiasInquiry) -> Answer:
    """Up to what a softmax cannot see, is the bias the same along each diagonal?"""
    if inquiry.square is not None:
        return _of_square(inquiry, inquiry.square)
    if inquiry.sides is not None:
        told = " × ".join(map(str, inquiry.sides))
        return f"of {told} tokens: it depends on the differences along each axis alone"
    if inquiry.strays is not None and (count := inquiry.view.fixed):
        if isqrt(count) ** 2 != count:
            raise NotAskedError(f"it takes {count} tokens alone, in an order that was not found")
        if inquiry.numbers >= inquiry.far_square.numel() and not inquiry.shares:
            raise NotAskedError(
                f"it takes {count} tokens alone, and learns a number for each pair of them"
            )
    seq, (each, sizes), head = inquiry.far_square.shape[-1], inquiry.along, inquiry.strays
    if head is None:
        if inquiry.view.key_only:
            return fault(
                "key-only",
                "note",
                "all queries share one row: equal to a bias of distance under softmax, but not "
                "before it",
                each.max().item(),
            )
        if (note := _table_of_square(inquiry)) is not None:
            return note
        if later := inquiry.later_strays:
            return fault(
                "depends-on-absolute-positions",
                "note",
                f"at one distance the biases of keys after the query differ by up to {later:.3g}: "
                "right where a causal mask hides these, and nowhere else",
                later,
                inquiry.shown(f"{seq}, {seq}"),
            )
        return f"{each.max().item():.1g} along diagonals of {seq}, beside {sizes.max().item():.3g}"
    off, scale = each[head].item(), sizes[head].item()
    return fault(
        "depends-on-absolute-positions",
        "wrong",
        f"at one distance the bias of head {head} differs by up to {off:.3g} between queries (its "
        f"size is up to {scale:.3g})",
        off,
        inquiry.shown(f"{seq}, {seq}"),
    )


def _table_of_square(inquiry: BiasInquiry) -> Fault | None:
    """A note where a table has a row for each step in a square, and is read by distance alone."""
    count = inquiry.far_square.shape[-1]
    side = isqrt(count)
    if side < 3 or side**2 != count or (found := inquiry.buckets) is None:
        return None
    if found.rows != (2 * side - 1) ** 2:
        return None
    read = len(found.index[found.index >= 0].unique())
    return fault(
        "values-shared",
        "note",
        f"the table has {found.rows} rows, one for each step in a square of {side} × {side} "
        f"tokens, but is read by distance in the row alone: {read} of its rows are read, and steps "
        f"of (0, {side - 1}) and (1, -1) rows and columns share one",
        float(found.rows - read),
        expected=0.0,
    )


def _of_square(inquiry: BiasInquiry, square: windows.Square) -> Answer:
    """By rows and columns; a note where two ways to lie share what is learned."""
    if inquiry.learns and not inquiry.computes and (pair := windows.shared(square)):
        return fault(
            "values-shared",
            "note",
            f"{square.said}, but tokens that are {pair[0]} and {pair[1]} rows and columns apart "
            "share one learned number: two numbers of a table are read as one, unless that is "
            "meant",
            2.0,
            expected=1.0,
        )
    return f"{square.said}; {square.off:.1g} apart"


@question(essential=True, after=("encodes-nothing", *NO_STATE))
def same_at_another_length(inquiry: BiasInquiry) -> Answer:
    """Does a pair of tokens receive the same in a short row and in a long one?"""
    view = inquiry.view
    if view.fixed:
        raise NotAskedError(f"it takes {view.fixed} tokens alone")
    _refuse_on_square(inquiry)
    seq, short = inquiry.seen.shape[-1], inquiry.view.seen(SEQ, SEQ)
    visible = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    off = _off(inquiry.seen[:, :SEQ, :SEQ], short, visible)
    if off <= ROUNDING:
        return f"{off:.1g} apart between {SEQ} and {seq} tokens"
    return fault(
        "depends-on-length",
        "wrong",
        f"in rows of {SEQ} and {seq} tokens the same pairs receive biases up to {off:.3g} apart",
        off,
        inquiry.shown(f"{SEQ}, {SEQ}"),
    )


@question(
    essential=True,
    after=("depends-on-length", "depends-on-absolute-positions", "buckets-turned", *NO_STATE),
)
def decodes_as_it_prefills(inquiry: BiasInquiry) -> Answer:
    """Is the row of one query behind a cache the last row of the square?"""
    view = inquiry.view
    if not view.rows:
        raise NotAskedError("it gives square matrices only")
    _refuse_on_square(inquiry)
    far = inquiry.far_square.shape[-1]
    worst = 0.0
    for q_len, k_len in (*((n, SEQ) for n in (1, 2, 3, SEQ // 2)), (1, far), (7, far)):
        if (other := _hidden_otherwise(inquiry, q_len, k_len)) is not None:
            return other
        whole = (inquiry.far_square if k_len == far else view.seen(SEQ, SEQ))[:, -q_len:]
        part = view.seen(q_len, k_len)
        visible = torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
        off = _off(whole, part, visible)
        worst = max(worst, off)
        if off < ROUNDING:
            continue
        queries = "one query" if q_len == 1 else f"{q_len} queries"
        rows = "row" if q_len == 1 else "rows"
        return fault(
            "bias-without-cache-offset",
            "wrong",
            f"for {queries} and {k_len} keys the bias is up to {off:.3g} away from the last {rows} "
            f"of the square: queries are taken to stand elsewhere",
            off,
            inquiry.shown(f"{q_len}, {k_len}"),
        )
    return f"{worst:.1g} apart for the last queries of {SEQ} and of {far} tokens"


def _off(one: Tensor, other: Tensor, visible: Tensor) -> float:
    """How far a softmax can tell numbers of visible keys apart, where both are seen."""
    off = one - other
    known = visible & off.isfinite()
    last = torch.where(known, torch.arange(off.shape[-1]), 0).amax(2, keepdim=True)
    return (off - off.gather(2, last)).masked_fill(~known, 0.0).abs().max().item()


def _hidden_otherwise(inquiry: BiasInquiry, q_len: int, k_len: int) -> Fault | None:
    """A fault where the last queries alone are hidden from other keys than in the square."""
    whole, part = inquiry.hidden(k_len), masks.hidden(inquiry.view.bias(q_len, k_len))
    other = int((whole[:, -q_len:] != part).any(0).sum())
    if not other:
        return None
    queries = "one query" if q_len == 1 else f"{q_len} queries"
    return fault(
        "bias-without-cache-offset",
        "wrong",
        f"for {queries} and {k_len} keys it hides other keys than in the last rows of the square, "
        f"in {other} places: queries are taken to stand elsewhere",
        other,
        inquiry.shown(f"{q_len}, {k_len}"),
    )


@question(
    after=(
        *("depends-on-length", "depends-on-absolute-positions", "encodes-nothing", "not-a-number"),
        *("bias-without-cache-offset", *NO_STATE),
    )
)
def reads_every_position(inquiry: BiasInquiry) -> Answer:
    """Does a pair receive what its own two positions mean, in any order of queries and keys?"""
    view = inquiry.view
    if not view.takes_positions:
        raise NotAskedError("positions of queries and keys cannot be said")
    if view.fixed:
        raise NotAskedError(f"it takes {view.fixed} tokens alone")
    queries, keys = torch.tensor([7, 3, 11]), torch.tensor([0, 11, 2, 7, 3])
    made = view.run(
        view.subject.fresh(), len(queries), len(keys), torch.float32, at=(queries, keys)
    ).double()
    wanted = view.bias(SEQ, SEQ).double()[:, queries][:, :, keys]
    past = keys <= queries[:, None]
    off = (made - wanted).masked_fill(made == wanted, 0.0)
    off = (off - off[..., :1])[:, past].abs().max().item()  # of what a softmax can see
    if off <= ROUNDING:
        return f"{off:.1g} apart for {len(queries)} queries and {len(keys)} keys in no order"
    return fault(
        "positions-misread",
        "wrong",
        f"queries at {said(queries)} and keys at {said(keys)} receive biases up to {off:.3g} away "
        "from those of these positions in a row",
        off,
        inquiry.shown(f"torch.tensor({queries.tolist()}), torch.tensor({keys.tolist()})"),
    )


@question(after=("encodes-nothing", "not-a-number", *NO_STATE))
def rows_have_their_own_padding(inquiry: BiasInquiry) -> Answer:
    """In a batch with padding, does each row get the bias of its own mask, for each head?"""
    view = inquiry.view
    if not view.takes_mask or view.fixed:
        raise NotAskedError("it takes no mask of padding")
    masks = torch.ones(3, SEQ, dtype=torch.long)
    masks[0, :3], masks[2, -2:] = 0, 0
    made, one = (
        view.run(view.subject.fresh(), SEQ, SEQ, torch.float32, mask=some)
        for some in (masks, masks[:1])
    )
    if made.shape != (len(masks) * len(one), *one.shape[1:]) or one.numel() % (view.heads * SEQ):
        raise NotAskedError(
            f"for {len(masks)} rows it gives the shape {tuple(made.shape)}, for one "
            f"{tuple(one.shape)}"
        )
    rows = made.double().reshape(len(masks), view.heads, -1, SEQ)
    worst = 0.0
    for row, real in zip(rows, masks.bool(), strict=True):
        count = int(real.sum())
        got = row[:, real] if row.shape[1] == SEQ else row
        seen, alone = (
            (x - x[..., :1]).expand(-1, count, -1)[:, torch.ones(count, count).tril().bool()]
            for x in (got[..., real], view.bias(count, count).double())
        )
        worst = max(worst, (seen - alone).abs().max().item())
    if worst <= ROUNDING:
        return f"{worst:.1g} apart for rows with padding on the left and on the right"
    return fault(
        "padding-shifts-positions",
        "wrong",
        f"in a batch of which two rows have padding, keys receive biases up to {worst:.3g} away "
        "from those of the same rows without it",
        worst,
        "import torch\n"
        f"mask = torch.ones(3, {SEQ}).long(); mask[0, :3] = mask[2, -2:] = 0\n"
        f"# {view.text} of mask, row by row against that of as many ones",
    )


@question(
    essential=True, after=("depends-on-length", "depends-on-absolute-positions", "encodes-nothing")
)
def favors_near_keys(inquiry: BiasInquiry) -> Answer:
    """Does a linear bias fall with distance, and leave the future to the mask?"""
    found = inquiry.linear
    if found is None:
        raise NotAskedError("it does not fall linearly with distance")
    if bool((found.fall < 0).any()):
        grows = int((found.fall < 0).sum())
        return fault(
            "wrong-sign",
            "wrong",
            f"in {grows} of {len(found.fall)} heads the bias grows with distance, by up to "
            f"{-found.fall.min().item():.3g} a token: far keys win",
            -found.fall.min().item(),
            inquiry.shown("8, 8"),
        )
    return f"falls by {found.fall.min().item():.3g} to {found.fall.max().item():.3g} a token"


def _refuse_on_square(inquiry: BiasInquiry) -> None:
    """Rows of another length and queries behind a cache are none of an image."""
    if inquiry.square is not None:
        side = inquiry.square.side
        raise NotAskedError(f"it is made for all of {side} × {side} tokens at once")
    if inquiry.sides is not None:
        told = " × ".join(map(str, inquiry.sides))
        raise NotAskedError(f"it is made for all of {told} tokens at once")
