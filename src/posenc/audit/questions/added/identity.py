"""What is it, and what do padding and content do to it?"""

from functools import partial
from math import isqrt

import torch
from torch import Tensor

from posenc.audit.identity import sinusoids
from posenc.audit.identity.schedules import KNOWN, slipped
from posenc.audit.questions.added.inquiry import LARGEST, AddedInquiry
from posenc.audit.questions.asking import Answer, compared, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_STATE, UNKNOWN, fault

PADDING = ("with a mask and no padding", "behind 3 padding tokens", "before 3 padding tokens")


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared"))
def is_a_known_function(q: AddedInquiry) -> Answer:
    """Is it one of the published encodings, as far as numbers show?"""
    if q.sinusoid is not None:
        return _of_sinusoid(q.sinusoid, q)
    if said := q.square():
        return said
    if q.square(fraction=1.0):
        side = isqrt(q.most(LARGEST))
        return fault("rows-not-whole", f"rows are number / {side}, not number // {side}", 1 / side)
    needed(not q.is_table, "its numbers are learned; any table is a right one")
    if q.of_grid:
        return "each half of the channels is one axis' sinusoidal encoding, at every point"
    if not q.learns and q.view.grid is None and (slip := sinusoids.slip(q.near)):
        return fault(*slip)
    return fault("unknown-function", UNKNOWN, 0.0)


def _of_sinusoid(found: sinusoids.Sinusoid, q: AddedInquiry) -> Answer:
    ours, said = found.encoding, ""
    if ours.convention.name == "double_exponent":
        said = f"channel j turns with {ours.convention.formula}: j stands where i counts pairs"
    elif ours.base == 1:
        said = "all channels turn by one frequency: the exponent is 0 in each"
    elif ours.base < 1:
        said = f"frequencies grow with the channel: base {ours.base:.3g}, a sign is missing"
    elif slip := slipped(ours.base, ours.dim, usual=KNOWN[:1]):
        said = f"frequencies fall as those of base {ours.base:,.6g}: the exponent has {slip}"
    if said:
        return fault("wrong-exponent", said, ours.base, expected=10_000.0)
    learned = q.learned(q.view.subject.fresh()).items()
    factor = next((name for name, p in learned if p.numel() == 1), None)
    if not found.is_plain and factor is None:
        return fault("table-scaled", f"sines are times {found.size:.4g}", found.size, expected=1.0)
    if ours.base not in KNOWN:
        return fault("unusual-base", f"{ours.base:,.6g} is the base of no known model", ours.base)
    told = f"{found.off:.1g} from {found.said}"
    return told if found.is_plain else f"{told}, as {factor} has learned"


@question(after=NO_STATE)
def keeps_the_size_of_content(q: AddedInquiry) -> Answer:
    """Is content added as it comes, or times the root of its width?"""
    scale, dim = q.scale, q.view.dim
    factor = needed(q.view.scale, "it gives the table alone, or more than a sum with content")
    if scale is None or scale == "sqrt_dim":
        return "as it comes" if scale is None else f"times √{dim}"
    said = f"content is multiplied with {scale}, where 1 and √{dim} are usual"
    return fault("content-scaled", said, factor, expected=1.0)


@question(after=NO_LENGTH)
def padding_moves_nothing(q: AddedInquiry) -> Answer:
    """Do padding tokens around a row leave the encodings of its tokens as they are?"""
    view, seq = q.view, 8
    masked = needed(view.masked, "it is told of no padding mask")
    mask = torch.ones(len(PADDING), seq, dtype=torch.long)
    mask[1, :3], mask[2, -3:] = 0, 0
    # a mask is beside no positions
    plain = q.otherwise(view.unsaid or view.run).whole(q.content(seq))[0]

    def padded(x: Tensor, row: int) -> tuple[Tensor, Tensor]:
        made = masked(view.subject.fresh(), x.repeat(len(mask), 1, 1), None, mask)[row]
        added = (made.double() - (view.scale or 0.0) * x[0].double())[mask[row].bool()]
        return added, plain[: len(added)]

    ways = [
        (where, q.dense, partial(padded, x, row))
        for x in (q.content(seq), q.drawn(q.content(seq)))
        for row, where in enumerate(PADDING)
    ]
    return compared(ways, "padding-shifts-positions", "away from a row without a mask")
