"""Is a bias the known one that it looks like, at every distance and in 16 bits?"""

import torch
from torch import nn

from posenc.audit.identity import biases
from posenc.audit.questions.asking import Answer, needed, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.bias.order import OTHERWISE
from posenc.audit.questions.faults import UNKNOWN, fault
from posenc.numerics import slopes


@question(essential=True, after=OTHERWISE)
def favors_near_keys(q: BiasInquiry) -> Answer:
    """Does a linear bias fall with distance, and leave the future to the mask?"""
    found = needed(q.linear, "it does not fall linearly with distance")
    least, grows = found.fall.min().item(), int((found.fall < 0).sum())
    if grows:
        said = (
            f"in {grows} of {len(found.fall)} heads the bias grows, by up to {-least:.3g} a token"
        )
        return fault("wrong-sign", said, -least)
    return f"falls by {least:.3g} to {found.fall.max().item():.3g} a token"


@question(essential=True, after=(*OTHERWISE, "wrong-sign"))
def has_known_slopes(q: BiasInquiry) -> Answer:
    """Has a linear bias the slopes of ALiBi's authors?"""
    if q.linear is None and q.computes and q.buckets is None:
        return fault("unknown-function", UNKNOWN, 0.0)
    found = needed(q.linear, "it does not fall linearly with distance (no ALiBi)")
    needed(not q.numbers, "its slopes are learned")
    heads, off = len(found.fall), 100 * found.off
    if found.rule == "authors":
        return f"slopes of {heads} heads within {off:.1g} % of the authors'"
    if found.rule == "geometric":
        wanted = torch.tensor(slopes.alibi(heads), dtype=torch.float64)
        off = (found.fall / wanted - 1).abs().max().item()
        return fault("slopes-of-other-head-counts", f"{heads} heads are no power of 2", off)
    if found.rule:
        return fault("slopes-in-another-order", f"the {heads} slopes are the authors'", found.off)
    return fault("wrong-slopes", f"slopes of {heads} heads are up to {off:.3g} % off", off)


@question(essential=True, after=(*OTHERWISE, "wrong-sign", "bias-without-cache-offset"))
def stays_on_its_line(q: BiasInquiry) -> Answer:
    """Does a bias with known slopes fall as steeply far away as it does near?"""
    found = needed(q.linear, "it does not fall linearly with distance")
    needed(found.rule, "it falls by slopes of its own")
    needed(not (q.view.slopes_only or q.view.fixed), "it gives no row of more tokens")
    if q.parting is None:
        return f"slope × distance in a row of {q.longest_row(torch.float32).shape[1]:,} keys"
    distance, head, given, wanted = q.parting
    said = f"at distance {distance:,} head {head} adds {given:.4g}, not slope × distance"
    return fault("far-keys-otherwise", said, abs(given - wanted))


@question(essential=True, after=OTHERWISE[:2])
def has_known_buckets(q: BiasInquiry) -> Answer:
    """Does a bias that is looked up read the row that T5 reads at each distance?"""
    found = needed(q.buckets, "it reads no table [buckets, heads] by distance")
    if found.kind in ("t5", "clipped"):
        if found.kind == "t5" and (words := _of_sides(q, found)):
            return fault("buckets-by-side", words, 0.0)
        return f"{found.said}, at every distance to {(len(found.index) - 1) // 2}"
    if found.kind == "turned":
        return fault("buckets-turned", "keys before a query read the rows of later ones")
    far = found.past[150:]  # distances share rows there, as those of logarithmic buckets do
    is_like_t5 = len(far) > 50 and len(far[far >= 0].unique()) in (1, 2)
    is_like_t5 = is_like_t5 or found.off <= found.compared // 2
    needed(is_like_t5, "it has buckets of another kind than T5's")
    said = f"{found.off} of {found.compared} distances read another row, from {found.first_off} on"
    return fault("buckets-off", said, found.off)


def _of_sides(q: BiasInquiry, found: biases.Buckets) -> str:
    """What T5's buckets do to later keys, where these may be meant otherwise; empty if not."""
    later = found.later[1:]
    shows_none = bool((later < 0).all()) or _decodes(q)
    if found.bidirectional:
        is_odd = shows_none and len(later) > found.rows // 4 + 1  # so far rows of both are alike
        return "half of its buckets are for later keys, which it never shows" if is_odd else ""
    if shows_none and found.knows_later_keys:
        return ""
    return "its buckets are for the past, but keys after the query read some: right under a mask"


def _decodes(q: BiasInquiry) -> bool:
    """Whether it says of itself that no query sees later keys."""
    thing, said = q.view.subject.fresh(), dict(q.view.subject.arguments)
    for part in thing.modules() if isinstance(thing, nn.Module) else ():
        said |= vars(part)
    means = {"bidirectional": False, "is_decoder": True, "causal": True, "is_causal": True}
    return any(said.get(name) is value for name, value in means.items())


@question(after=("far-keys-otherwise", "bias-without-cache-offset"))
def keeps_distances_apart(q: BiasInquiry) -> Answer:
    """Is a bias of 16 bits as good as one computed from the distance and rounded once?"""
    is_alibi = q.linear is not None and q.linear.rule == "authors"
    needed(is_alibi and not q.view.slopes_only, "it is no ALiBi")
    made, distance = q.visible_row(torch.bfloat16)
    count, rule = made.shape[1], torch.tensor(slopes.alibi(len(made)), dtype=torch.float64)
    exact, known = made.dtype == torch.float32, len(made[0].unique())
    narrow = torch.bfloat16 in biases.of_16_bits(made) and count >= 512 and known < count // 2
    if exact and not narrow:
        return f"float32, {known:,} different values of {count:,}"
    near, distance = made[:, -64:].double(), distance[-64:]
    off = (near - near[:, -1:] + rule[:, None] * distance).abs().max().item()
    if off < 0.05 and not exact:
        return f"{made.dtype}, up to {off:.1g} off for the nearest {len(distance)} keys"
    values = len(made[int(rule.argmax())].unique())
    said = f"{values} values for {count:,} keys in {made.dtype}, the nearest up to {off:.3g} off"
    return fault("bias-in-16-bits", said, off)
