"""Is a bias the known one that it looks like, at every distance and in 16 bits?"""

import torch
from torch import Tensor, nn

from posenc.audit.identity import lookups
from posenc.audit.questions.asking import Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.report import NotAskedError
from posenc.numerics import slopes


@question(
    essential=True,
    after=("depends-on-length", "depends-on-absolute-positions", "encodes-nothing", "wrong-sign"),
)
def has_known_slopes(inquiry: BiasInquiry) -> Answer:
    """Has a linear bias the slopes of ALiBi's authors?"""
    found = inquiry.linear
    if found is None and inquiry.computes and inquiry.buckets is None:
        return fault(
            "unknown-function",
            "note",
            "it is no bias that is known here: its numbers were compared with no formula, and it "
            "was asked for order, decoding and state alone",
            0.0,
        )
    if found is None:
        raise NotAskedError("it does not fall linearly with distance (no ALiBi)")
    if inquiry.learns:
        raise NotAskedError("its slopes are learned")
    heads = len(found.fall)
    show = (
        "from posenc.numerics import slopes\n"
        f"slopes.alibi({heads})\n"
        "# against the fall of bias[:, -1] by key"
    )
    if found.rule == "alibi":
        return f"slopes of {heads} heads within {100 * found.off:.1g} % of the authors'"
    if found.rule == "geometric":
        wanted = torch.tensor(slopes.alibi(heads), dtype=torch.float64)
        off = (found.fall / wanted - 1).abs().max().item()
        return fault(
            "slopes-of-other-head-counts",
            "wrong",
            f"{heads} is no power of two; 2^(−8h/{heads}) differs from the authors' slopes by up "
            f"to {100 * off:.0f} %",
            off,
            show,
        )
    if found.rule:
        return fault(
            "slopes-in-another-order",
            "wrong",
            f"the {heads} slopes are the authors' in another order",
            found.off,
            show,
        )
    return fault(
        "wrong-slopes",
        "wrong",
        f"slopes of {heads} heads differ from the authors' by up to {100 * found.off:.3g} %",
        found.off,
        show,
    )


@question(
    essential=True,
    after=(
        *("depends-on-length", "depends-on-absolute-positions", "encodes-nothing", "wrong-sign"),
        "bias-without-cache-offset",
    ),
)
def stays_on_its_line(inquiry: BiasInquiry) -> Answer:
    """Does a bias with known slopes fall as steeply far away as it does near?"""
    found = inquiry.linear
    if found is None or not found.rule:
        raise NotAskedError("it does not fall linearly with distance, or by slopes of its own")
    if inquiry.view.slopes_only:
        raise NotAskedError("it gives slopes, and no bias")
    if inquiry.view.fixed:
        raise NotAskedError(f"it takes {inquiry.view.fixed} tokens alone")
    apart = inquiry.parting
    if apart is None:
        return f"slope × distance in a row of {inquiry.longest_row(torch.float32).shape[1]:,} keys"
    return fault(
        "far-keys-otherwise",
        "wrong",
        f"near keys receive slope × distance, but at distance {apart.distance:,} head {apart.head} "
        f"adds {apart.given:.4g} where that is {apart.wanted:.4g}",
        abs(apart.given - apart.wanted),
        inquiry.shown(f"{1 if inquiry.view.rows else apart.length}, {apart.length}"),
    )


@question(essential=True, after=("depends-on-length", "depends-on-absolute-positions"))
def has_known_buckets(inquiry: BiasInquiry) -> Answer:
    """Does a bias that is looked up read the row that T5 reads at each distance?"""
    found = inquiry.buckets
    if found is None:
        raise NotAskedError("it reads no table [buckets, heads] by distance")
    show = (
        "from posenc.numerics.buckets import t5_buckets\n"
        "# t5_buckets(q − k, buckets, max_distance, bidirectional)"
    )
    if found.kind in ("t5", "clipped"):
        if found.kind == "t5" and (words := _of_sides(inquiry, found)):
            return fault("buckets-by-side", "note", words, 0.0, show)
        return f"{found.said}, at every distance to {(len(found.index) - 1) // 2}"
    if found.kind == "turned":
        return fault(
            "buckets-turned",
            "wrong",
            "distances are taken with the other sign: keys before a query read the rows of keys "
            "after it",
            1.0,
            show,
        )
    if found.off > found.compared // 2 and not _is_like_t5(found):
        raise NotAskedError("it has buckets of another kind than T5's")
    return fault(
        "buckets-off",
        "wrong",
        f"{found.off} of {found.compared} distances read another row than T5's, the nearest of "
        f"them {found.first_off} (buckets {found.rows}, maximal distance {found.max_distance})",
        found.off,
        show,
    )


def _of_sides(inquiry: BiasInquiry, found: lookups.Buckets) -> str:
    """What T5's buckets do to later keys, where these may be meant otherwise; empty if not."""
    past = found.index[len(found.index) // 2 + 1 :]
    later = found.index[: len(past)].flip(0)
    hides, decodes = bool((later < 0).all()), _decodes(inquiry)
    if found.bidirectional:
        if not (hides or decodes) or len(past) <= found.rows // 4 + 1:  # so far the rows are alike
            return ""
        why = "it hides all later keys" if hides else "it says of itself that it decodes"
        return (
            f"its {found.rows} buckets are for both directions, but {why}: half of them are left "
            "for keys before the query, where T5's decoders have all (bidirectional=False)"
        )
    right = "right where a causal mask hides these; T5's encoders have buckets for both directions"
    if torch.equal(later, past):
        return f"keys after the query read the rows of keys as far before it: {right}"
    if not found.knows_later_keys:
        return f"its buckets are for the past, and keys after the query read some of them: {right}"
    if hides or decodes:
        return ""
    return (
        f"its buckets are for the past, and all keys after the query read row 0, as its own key "
        f"does: {right}"
    )


def _decodes(inquiry: BiasInquiry) -> bool:
    """Whether it says of itself that no query sees later keys."""
    thing, said = inquiry.view.subject.fresh(), dict(inquiry.view.subject.arguments)
    for part in thing.modules() if isinstance(thing, nn.Module) else ():
        said |= vars(part)
    means = {"bidirectional": False, "is_decoder": True, "causal": True, "is_causal": True}
    return any(said.get(name) is value for name, value in means.items())


def _is_like_t5(found: lookups.Buckets) -> bool:
    """Whether far distances share rows, as those of logarithmic buckets do."""
    n = (len(found.index) + 1) // 2
    far = found.index[n + 149 :]  # of the past, which no causal mask hides
    return n > 200 and len(far[far >= 0].unique()) in (1, 2)


@question(after=("far-keys-otherwise", "bias-without-cache-offset"))
def keeps_distances_apart(inquiry: BiasInquiry) -> Answer:
    """Is a bias of 16 bits as good as one computed from the distance and rounded once?"""
    view, found = inquiry.view, inquiry.linear
    if found is None or found.rule != "alibi" or view.slopes_only:
        raise NotAskedError("it is no ALiBi")
    made, distance = inquiry.visible_row(torch.bfloat16)
    if made.dtype == torch.float32 and not _held(made):
        return (
            f"float32, {len(made[0].unique()):,} different values of {made.shape[1]:,} in the "
            "steepest head"
        )
    rule = torch.tensor(slopes.alibi(len(made)), dtype=torch.float64)
    near, distance = made[:, -64:].double(), distance[-64:]
    wanted = -rule[:, None] * distance
    off = (near - near[:, -1:] - wanted).abs().max().item()
    kind = str(made.dtype).removeprefix("torch.")
    if off < 0.05 and not (_held(made) and made.dtype == torch.float32):
        return f"{kind}, up to {off:.1g} off for the nearest {len(distance)} keys"
    steepest = made[int(rule.argmax())]
    return fault(
        "bias-in-16-bits",
        "lossy",
        f"at length {made.shape[1]:,} ({kind}) the steepest head has {len(steepest.unique())} "
        f"different values, and the nearest {len(distance)} keys, which matter most, are off by up "
        f"to {off:.3g}: slope × absolute position rounds where the numbers are largest",
        off,
        inquiry.shown(f"1, {made.shape[1]}"),
    )


def _held(made: Tensor) -> bool:
    """Whether float32 numbers are all numbers of bfloat16, and many."""
    if made.shape[1] < 512 or made.dtype != torch.float32:
        return False
    return (
        bool((made.bfloat16().float() == made).all()) and len(made[0].unique()) < made.shape[1] // 2
    )
