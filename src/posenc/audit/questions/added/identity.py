"""What is it, and what do padding and content do to it?"""

import math

import torch
from torch import Tensor

from posenc.audit.identity import sinusoids
from posenc.audit.identity.schedules import KNOWN, slipped
from posenc.audit.questions.added.inquiry import OF_SQUARES, AddedInquiry
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.inquiry import ROUNDING
from posenc.audit.report import NotAskedError
from posenc.encodings.tokens.axial import AxialSinusoidal
from posenc.positions import Coordinates, grid

UNKNOWN = "by no formula that is known here: it was asked for order, decoding and state alone"


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared"))
def is_a_known_function(q: AddedInquiry) -> Answer:
    """Is it one of the published encodings, as far as numbers show?"""
    if q.sinusoid is not None:
        return _of_sinusoid(q.sinusoid, q)
    if q.square is not None:
        return f"{q.square.off:.1g} from {q.square.said}"
    if q.patches is not None and _has_fractional_rows(q.patches):
        side = len(q.patches)
        said = f"channels of rows go by number / {side} instead of number // {side}"
        return fault("rows-not-whole", said, 1 / side)
    if q.is_table:
        raise NotAskedError("its numbers are learned; any table is a right one")
    if q.of_grid:
        return "each half of the channels is one axis' sinusoidal encoding, at every point"
    if q.learns or q.view.grid is not None:
        return fault("unknown-function", f"it is computed {UNKNOWN}", 0.0)
    if slip := sinusoids.slip(q.near):
        return fault(*slip)
    if len(q.near) < 6:
        raise NotAskedError("too few rows to tell")
    return fault("unknown-function", f"it is made {UNKNOWN}", 0.0)


def _has_fractional_rows(table: Tensor) -> bool:
    """Whether rows of square patches go by a patch's number over the side, not by whole rows."""
    side, dim = len(table), table.shape[-1]
    points = grid(side, side).double()
    points[:, 0] += points[:, 1] / side
    forms = (AxialSinusoidal(dim, form, axes=2) for form in OF_SQUARES if dim % 4 == 0)
    made = (form.table(Coordinates(points), dtype=torch.float64) for form in forms)
    return any(bool((each - table.flatten(0, 1)).abs().max() < ROUNDING) for each in made)


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
    learned = "" if found.is_plain else q.factor
    if learned is None:
        said = f"sines and cosines are multiplied with {found.size:.4g}"
        return fault("table-scaled", said, found.size, expected=1.0)
    if ours.base not in KNOWN:
        said = f"base {ours.base:,.6g} is that of no known model"
        return fault("unusual-base", said, ours.base)
    return f"{found.off:.1g} from {found.said}" + (f", as {learned} has learned" if learned else "")


@question(after=NO_STATE)
def keeps_the_size_of_content(q: AddedInquiry) -> Answer:
    """Is content added as it comes, or times the root of its width?"""
    scale, dim = q.scale, q.view.dim
    if q.view.scale is None:
        raise NotAskedError("it gives the table alone, or more than a sum with content")
    if scale is None or scale == "sqrt_dim":
        return "as it comes" if scale is None else f"times √{dim}"
    said = f"content is multiplied with {scale}, where 1 and √{dim} = {dim**0.5:.4g} are usual"
    return fault("content-scaled", said, q.view.scale, expected=1.0)


@question(after=NO_LENGTH)
def padding_moves_nothing(q: AddedInquiry) -> Answer:
    """Do padding tokens around a row leave the encodings of its tokens as they are?"""
    view, seq, pad = q.view, 8, 3
    if view.masked is None:
        raise NotAskedError("it is told of no padding mask")
    unsaid = view.unsaid or view.run  # a mask alone is beside it, never positions
    plain = unsaid(view.subject.fresh(), q.content(seq), None)[0].double()
    rows = {
        "with a mask and no padding": slice(0, seq),
        f"behind {pad} padding tokens on the left": slice(pad, seq),
        f"before {pad} padding tokens on the right": slice(seq - pad),
    }
    mask = torch.zeros(len(rows), seq, dtype=torch.long)
    for row, real in zip(mask, rows.values(), strict=True):
        row[real] = 1
    worst, thing, scale = 0.0, view.subject.fresh(), view.scale or 0.0
    for x in (q.content(seq), q.drawn(q.content(seq))):
        made = view.masked(thing, x.expand(len(rows), -1, -1).clone(), None, mask).double()
        for row, (where, real) in zip(made, rows.items(), strict=True):
            added = (row - scale * x[0].double())[real]
            off = (added - plain[: len(added)]).abs().max().nan_to_num(math.inf).item()
            worst = max(worst, off)
            if off >= ROUNDING * max(1.0, scale):
                said = f"{where}, tokens receive encodings up to {off:.3g} away from those without"
                return fault("padding-shifts-positions", said, off)
    return f"{worst:.1g} apart around {pad} padding tokens"
