"""Does a bias go by distance alone, at every length, behind a cache, and added to scores?"""

from functools import partial
from math import isqrt

import torch
from torch import Tensor

from posenc.audit.adapters.bias import SEQ
from posenc.audit.identity import patterns
from posenc.audit.identity.biases import HIDDEN
from posenc.audit.questions.asking import Answer, Way, compared, needed, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.calls import gradients
from posenc.audit.questions.faults import NO_STATE, fault
from posenc.audit.report import Fault

ROUNDING = 1e-4

SIZE = 32.0  # how large scores are that are handed on
IN_WINDOW = "it is made for all tokens of a window at once"
OTHERWISE = ("depends-on-length", "depends-on-absolute-positions", "encodes-nothing")


@question(after=("not-a-number", *NO_STATE))
def hides_what_a_mask_should(q: BiasInquiry) -> Answer:
    """Does it hide no key, or later ones, or those beyond a window, as masks do?"""
    found = needed(q.mask, "it gives no row for each query")
    if not (found.slip or found.doubtful):
        return f"it {found.said}, of {q.far_square.shape[-1]}"
    return fault("mask-misplaced", f"it {found.said}", severity="wrong" if found.slip else "note")


@question(essential=True, after=("mask-misplaced",))
def tells_distances_apart(q: BiasInquiry) -> Answer:
    """Does the bias differ between keys of one query?"""
    if (lost := q.broken) is not None:
        return fault("not-a-number", f"at distance {lost:,} it is infinite or no number", lost)
    later = torch.ones(q.seen.shape[1:], dtype=torch.bool).triu(1)
    spread = patterns.spread(q.seen.masked_fill(later, -torch.inf), 2).nan_to_num(0.0).amax(1)
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
            said = f"{pair[0]} and {pair[1]} rows and columns apart share one number"
            return fault("values-shared", said, 2.0, expected=1)
        return f"{window.said}; {window.off:.1g} apart"
    (each, sizes), head = patterns.along(q.far_square), q.strays
    if head is not None:
        if count := q.view.fixed:  # of an image, perhaps, or one number for each pair
            known = isqrt(count) ** 2 == count and q.numbers < q.far_square.numel()
            needed(known, f"it takes {count} tokens alone, in an order that is not known")
        said = f"at one distance the bias of head {head} differs by up to {each[head]:.3g}"
        return fault("depends-on-absolute-positions", said, each[head].item())
    if q.view.key_only:
        return fault("key-only", "all queries share one row: as good to softmax", each.max().item())
    return f"{each.max().item():.1g} along diagonals, beside {sizes.max().item():.3g}"


@question(essential=True, after=("encodes-nothing", *NO_STATE))
def same_at_another_length(q: BiasInquiry) -> Answer:
    """Does a pair of tokens receive the same in a short row and in a long one?"""
    needed(not q.view.fixed, f"it takes {q.view.fixed} tokens alone")
    needed(q.window is None, IN_WINDOW)
    pair = q.seen[:, :SEQ, :SEQ], q.view.seen(SEQ, SEQ)
    ways = [(f"in rows of {q.seen.shape[-1]} tokens", ROUNDING, partial(_as_told_apart, *pair))]
    return compared(ways, "depends-on-length", f"away from the same pairs in rows of {SEQ}")


def _less_the_last(one: Tensor, other: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
    """Two biases as a softmax tells them: less that of the last key which both see."""
    seen = one.isfinite() & other.isfinite() & ~hidden
    last = torch.where(seen, torch.arange(one.shape[-1]), 0).amax(2, keepdim=True)
    made, wanted = (x - x.gather(2, last) for x in (one.double(), other.double()))
    return made.masked_fill(hidden, 0.0), wanted.masked_fill(hidden, 0.0)


def _as_told_apart(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The same of keys up to each query's own."""
    q_len, k_len = one.shape[1:]
    later = torch.ones(q_len, k_len, dtype=torch.bool).triu(k_len - q_len + 1)
    return _less_the_last(one, other, later)


@question(essential=True, after=(*OTHERWISE[:2], "buckets-turned", *NO_STATE))
def decodes_as_it_prefills(q: BiasInquiry) -> Answer:
    """Is the row of one query behind a cache the last row of the square?"""
    needed(q.view.rows, "it gives square matrices only")
    needed(q.window is None, IN_WINDOW)

    def last_rows(count: int, square: Tensor) -> tuple[Tensor, Tensor]:
        return _as_told_apart(q.masked(count, square.shape[-1]), square[:, -count:])

    small, far = q.masked(SEQ, SEQ), q.far_square
    cases = *((n, small) for n in (1, 2, 3, SEQ // 2)), (1, far), (7, far)
    ways = [
        (f"{n} queries and {square.shape[-1]} keys", ROUNDING, partial(last_rows, n, square))
        for n, square in cases
    ]
    return compared(ways, "bias-without-cache-offset", "away from the last rows of the square")


@question(after=(*OTHERWISE, "not-a-number", "bias-without-cache-offset", *NO_STATE))
def reads_every_position(q: BiasInquiry) -> Answer:
    """Does a pair receive what its own two positions mean, in any order of queries and keys?"""
    view = q.view
    is_told = "q_positions" in view.takes and not view.fixed
    needed(is_told, "positions of queries and keys cannot be said")
    queries, keys = torch.tensor([7, 3, 11]), torch.tensor([0, 11, 2, 7, 3])
    sizes = len(queries), len(keys)
    line = {"q_positions": queries, "k_positions": keys}
    made = view.run(view.subject.fresh(), *sizes, torch.float32, **line)
    wanted = view.bias(SEQ, SEQ)[:, queries][:, :, keys]
    read = partial(_less_the_last, made, wanted, keys > queries[:, None])
    ways = [(f"queries at {queries.tolist()} and keys at {keys.tolist()}", ROUNDING, read)]
    return compared(ways, "positions-misread", "away from those of a row")


@question(after=("encodes-nothing", "not-a-number", *NO_STATE))
def rows_have_their_own_padding(q: BiasInquiry) -> Answer:
    """In a batch with padding, does each row get the bias of its own mask, for each head?"""
    view = q.view
    needed("mask" in view.takes and not view.fixed, "it takes no mask of padding")
    masks = torch.ones(3, SEQ, dtype=torch.long)
    masks[0, :3], masks[2, -2:] = 0, 0
    made = view.run(view.subject.fresh(), SEQ, SEQ, torch.float32, mask=masks)
    fits = len(made) in (3, 3 * view.heads) and made.numel() % (3 * view.heads * SEQ) == 0
    needed(fits, f"for 3 rows it gives the shape {tuple(made.shape)}")
    rows, ways = made.reshape(3, view.heads, -1, SEQ).expand(-1, -1, SEQ, -1), []
    for row, real in zip(rows, masks.bool(), strict=True):
        count = int(real.sum())
        alone = partial(_as_told_apart, row[:, real][..., real], view.bias(count, count))
        ways.append((f"a row with {SEQ - count} tokens of padding", ROUNDING, alone))
    return compared(ways, "padding-shifts-positions", "away from one without")


@question(after=("input-written", "state-between-calls", "history-changes-result"))
def hands_scores_on(q: BiasInquiry) -> Answer:
    """Do scores come out as they came, with the bias added, and gradients with them?"""
    view, seq = q.view, q.most(SEQ)
    needed("scores" in view.takes, "it takes no scores")
    run = lambda x: view.run(view.subject.fresh(), seq, seq, torch.float32, x)  # noqa: E731
    plain, generator = view.bias(seq, seq), torch.Generator().manual_seed(3)
    scores, *rows = SIZE * torch.randn(4, 1, view.heads, seq, seq, generator=generator)
    made, seen = run(scores.clone()).expand_as(plain), plain.isfinite() & (plain > -HIDDEN)
    if torch.equal(made[seen], plain[seen]):
        return "it gives the bias alone"

    def in_a_batch() -> tuple[Tensor, Tensor]:
        batch, alone = run(torch.cat(rows)), torch.stack([run(row.clone()) for row in rows])
        needed(batch.shape == alone.shape, "it takes no batch of scores")
        return batch, alone

    ways: list[Way] = [
        ("rows of a batch", 1e-5 * SIZE, in_a_batch),
        (f"scores of size {SIZE:g}", 1e-5 * SIZE, lambda: ((made - scores[0])[seen], plain[seen])),
    ]
    answer = compared(ways, "scores-changed", "away from scores + bias")
    if isinstance(answer, Fault):
        return answer
    scores.requires_grad_()
    said = gradients(lambda x: run(x).masked_fill(~seen, 0.0), scores, {})
    return said if isinstance(said, Fault) else answer
