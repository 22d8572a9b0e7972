"""Does a bias go by distance alone, at every length and behind a cache?"""

from math import isqrt

import torch
from torch import Tensor

from posenc.audit.adapters.bias import SEQ
from posenc.audit.identity import masks, windows
from posenc.audit.questions.asking import NO_STATE, Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.inquiry import listed
from posenc.audit.report import Fault, NotAskedError

ROUNDING = 1e-4

OTHERWISE = ("depends-on-length", "depends-on-absolute-positions", "encodes-nothing")


@question(after=("not-a-number", *NO_STATE))
def hides_what_a_mask_should(q: BiasInquiry) -> Answer:
    """Does it hide no key, or later ones, or those beyond a window, as masks do?"""
    found = q.mask
    if found is None:
        raise NotAskedError("it gives no row for each query")
    if not (found.slip or found.doubtful):
        return f"it {found.said}, of {q.far_square.shape[-1]}"
    return fault("mask-misplaced", f"it {found.said}", severity="wrong" if found.slip else "note")


@question(essential=True, after=("mask-misplaced",))
def tells_distances_apart(q: BiasInquiry) -> Answer:
    """Does the bias differ between keys of one query?"""
    if (lost := q.broken) is not None:
        said = f"at distance {lost[0]:,} the bias is infinite or no number, of {lost[1]:,} keys"
        return fault("not-a-number", said, lost[0])
    later = torch.ones(q.seen.shape[-2:], dtype=torch.bool).triu(1)
    spread = windows.spread(q.seen.masked_fill(later, -torch.inf), 2).nan_to_num(0.0).amax(1)
    hides = (q.seen.isneginf() & ~later).any(2).any(1)  # a window tells near keys from far ones
    silent = int(((spread == 0) & ~hides).sum())
    if silent or not spread.any():
        said = f"{silent or len(spread)} of {len(spread)} heads have no bias at all"
        return fault("encodes-nothing", said, silent, expected=0.0 if spread.any() else 1.0)
    return f"up to {spread.max().item():.3g} within a row"


@question(essential=True, after=("encodes-nothing", "depends-on-length", *NO_STATE))
def knows_distance_alone(q: BiasInquiry) -> Answer:
    """Up to what a softmax cannot see, is the bias the same along each diagonal?"""
    if (window := q.window) is not None:
        learned = q.is_square and q.numbers and not q.computes
        if learned and (pair := window.shared()):
            said = f"{window.said}, but tokens that are {pair[0]} and {pair[1]} rows and columns"
            return fault("values-shared", f"{said} apart share one learned number", 2.0, expected=1)
        return f"{window.said}; {window.off:.1g} apart"
    (each, sizes), head = q.along, q.strays
    if head is not None:
        if count := q.view.fixed:
            if isqrt(count) ** 2 != count:
                raise NotAskedError(f"it takes {count} tokens alone, in an order that is not known")
            if q.numbers >= q.far_square.numel() and not q.shares:
                raise NotAskedError(f"it takes {count} tokens, and learns a number for each pair")
        said = f"at one distance the bias of head {head} differs by up to {each[head]:.3g} between"
        said += f" queries (its size is up to {sizes[head]:.3g})"
        return fault("depends-on-absolute-positions", said, each[head].item())
    if q.view.key_only:
        said = "all queries share one row: the same under softmax, but not before it"
        return fault("key-only", said, each.max().item())
    if (note := _table_of_square(q)) is not None:
        return note
    if later := q.later_strays:
        said = f"at one distance the biases of keys after the query differ by up to {later:.3g}:"
        said += " right where a causal mask hides these"
        return fault("depends-on-absolute-positions", said, later, severity="note")
    return f"{each.max().item():.1g} along diagonals, beside {sizes.max().item():.3g}"


def _table_of_square(q: BiasInquiry) -> Fault | None:
    """A note where a table has a row for each step in a square, and is read by distance alone."""
    side = isqrt(q.far_square.shape[-1])
    if side < 3 or side**2 != q.far_square.shape[-1] or (found := q.buckets) is None:
        return None
    if found.rows != (2 * side - 1) ** 2:
        return None
    read = len(found.index[found.index >= 0].unique())
    said = f"the table has {found.rows} rows, one for each step in a square of {side} × {side}"
    said += f" tokens, but is read by distance in the row alone: {read} of its rows are read"
    return fault("values-shared", said, float(found.rows - read))


def _refuse_in_window(q: BiasInquiry) -> None:
    """Rows of another length and queries behind a cache are none of an image."""
    if q.window is not None:
        raise NotAskedError(f"it is made for all of {q.window.size} tokens at once")


@question(essential=True, after=("encodes-nothing", *NO_STATE))
def same_at_another_length(q: BiasInquiry) -> Answer:
    """Does a pair of tokens receive the same in a short row and in a long one?"""
    if q.view.fixed:
        raise NotAskedError(f"it takes {q.view.fixed} tokens alone")
    _refuse_in_window(q)
    seq, visible = q.seen.shape[-1], torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    off = _off(q.seen[:, :SEQ, :SEQ], q.view.seen(SEQ, SEQ), visible)
    if off <= ROUNDING:
        return f"{off:.1g} apart between {SEQ} and {seq} tokens"
    said = f"in rows of {SEQ} and {seq} tokens the same pairs receive biases {off:.3g} apart"
    return fault("depends-on-length", said, off)


@question(essential=True, after=(*OTHERWISE[:2], "buckets-turned", *NO_STATE))
def decodes_as_it_prefills(q: BiasInquiry) -> Answer:
    """Is the row of one query behind a cache the last row of the square?"""
    if not q.view.rows:
        raise NotAskedError("it gives square matrices only")
    _refuse_in_window(q)
    far, worst = q.far_square.shape[-1], 0.0
    for q_len, k_len in (*((n, SEQ) for n in (1, 2, 3, SEQ // 2)), (1, far), (7, far)):
        hidden = masks.hidden(q.view.bias(q_len, k_len))
        other = int((q.hidden(k_len)[:, -q_len:] != hidden).any(0).sum())
        if other:
            said = f"for {q_len} queries and {k_len} keys it hides other keys than in the square"
            return fault("bias-without-cache-offset", said, other)
        whole = (q.far_square if k_len == far else q.view.seen(SEQ, SEQ))[:, -q_len:]
        visible = torch.ones(q_len, k_len, dtype=torch.bool).tril(k_len - q_len)
        off = _off(whole, q.view.seen(q_len, k_len), visible)
        worst = max(worst, off)
        if off >= ROUNDING:
            said = f"for {q_len} queries and {k_len} keys the bias is {off:.3g} away from the last"
            return fault("bias-without-cache-offset", f"{said} rows of the square", off)
    return f"{worst:.1g} apart for the last queries of {SEQ} and of {far} tokens"


def _off(one: Tensor, other: Tensor, visible: Tensor) -> float:
    """How far a softmax can tell numbers of visible keys apart, where both are seen."""
    off = one - other
    known = visible & off.isfinite()
    last = torch.where(known, torch.arange(off.shape[-1]), 0).amax(2, keepdim=True)
    return (off - off.gather(2, last)).masked_fill(~known, 0.0).abs().max().item()


@question(after=(*OTHERWISE, "not-a-number", "bias-without-cache-offset", *NO_STATE))
def reads_every_position(q: BiasInquiry) -> Answer:
    """Does a pair receive what its own two positions mean, in any order of queries and keys?"""
    view = q.view
    if "q_positions" not in view.takes or view.fixed:
        raise NotAskedError("positions of queries and keys cannot be said")
    queries, keys = torch.tensor([7, 3, 11]), torch.tensor([0, 11, 2, 7, 3])
    thing, sizes = view.subject.fresh(), (len(queries), len(keys))
    line = {"q_positions": queries, "k_positions": keys}
    made = view.run(thing, *sizes, torch.float32, **line).double()
    wanted = view.bias(SEQ, SEQ).double()[:, queries][:, :, keys]
    off = (made - wanted).masked_fill(made == wanted, 0.0)
    off = (off - off[..., :1])[:, keys <= queries[:, None]].abs().max().item()
    if off <= ROUNDING:
        return f"{off:.1g} apart for {sizes[0]} queries and {sizes[1]} keys in no order"
    said = f"queries at {listed(queries)} and keys at {listed(keys)} receive biases {off:.3g} away"
    return fault("positions-misread", f"{said} from those of a row", off)


@question(after=("encodes-nothing", "not-a-number", *NO_STATE))
def rows_have_their_own_padding(q: BiasInquiry) -> Answer:
    """In a batch with padding, does each row get the bias of its own mask, for each head?"""
    view = q.view
    if "mask" not in view.takes or view.fixed:
        raise NotAskedError("it takes no mask of padding")
    masks = torch.ones(3, SEQ, dtype=torch.long)
    masks[0, :3], masks[2, -2:] = 0, 0
    made, one = (
        view.run(view.subject.fresh(), SEQ, SEQ, torch.float32, mask=some)
        for some in (masks, masks[:1])
    )
    if made.shape != (len(masks) * len(one), *one.shape[1:]) or one.numel() % (view.heads * SEQ):
        raise NotAskedError(f"for {len(masks)} rows it gives the shape {tuple(made.shape)}")
    rows, worst = made.double().reshape(len(masks), view.heads, -1, SEQ), 0.0
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
    said = f"beside padding keys receive biases up to {worst:.3g} away from rows without it"
    return fault("padding-shifts-positions", said, worst)
