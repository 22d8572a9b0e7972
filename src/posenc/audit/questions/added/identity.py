"""What is it, and how precisely?"""

from posenc.audit.identity import sinusoids
from posenc.audit.questions import rows
from posenc.audit.questions.added.inquiry import AddedInquiry, _grid_identity
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_PLACE,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.report import NotAskedError

LOSSY = 2.0**-7
"""An error that one rounding of embeddings to bfloat16 does not hide."""


@question(essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared"))
def is_a_known_function(inquiry: AddedInquiry) -> Answer:
    """Is it one of the published encodings, as far as numbers show?"""
    found, near = inquiry.sinusoid, inquiry.near
    show = f"import torch\nsubject(torch.zeros(1, 8, {inquiry.view.dim}))[0]"
    if found is not None:
        return _slips(found, show, inquiry)
    if inquiry.square is not None:
        return f"{inquiry.square.off:.1g} from {inquiry.square.said}"
    if inquiry.is_table:
        raise NotAskedError("its numbers are learned; any table is a right one")
    if inquiry.learns:
        return fault(
            "unknown-function",
            "note",
            "it is computed from parameters, by no formula that is known here; it was asked for "
            "order, decoding and state alone",
            0.0,
        )
    if inquiry.view.grid is not None:
        if not _grid_identity(inquiry):
            return fault(
                "unknown-function",
                "note",
                "it encodes a grid by no formula that is known here; it was asked for order, "
                "decoding and state alone",
                0.0,
            )
        return "each half of the channels is one axis' sinusoidal encoding, at every point"
    if inquiry.patches is not None:
        rows, columns = inquiry.patches
        return fault(
            "unknown-function",
            "note",
            f"each channel goes by one axis of {rows} × {columns} patches, by no formula that is "
            "known here; it was asked for order, decoding and state alone",
            0.0,
        )
    if (which := sinusoids.twice(near)) is not None:
        return fault(
            "sine-twice",
            "wrong",
            f"both channels of each pair hold the same {which}: positions that mirror each other "
            "cannot be told apart, and a shift is no linear map",
            1.0,
            show,
        )
    if sinusoids.has_whole_angles(near):
        return fault(
            "angles-rounded",
            "wrong",
            "every channel is a sine or cosine of whole radians, and slow ones stand still in runs "
            "of neighbors: positions are divided by //",
            1.0,
            show,
        )
    if sinusoids.is_sinusoidal(near):
        return fault(
            "unknown-frequencies",
            "wrong",
            "every channel is a sine of position, but of frequencies or phases that no convention "
            "has",
            1.0,
            show,
        )
    if len(near) < 6:
        raise NotAskedError("too few rows to tell")
    return fault(
        "unknown-function",
        "note",
        "it is no encoding that is known here; it was asked for order, decoding and state alone",
        0.0,
    )


@question(after=NO_STATE)
def keeps_the_size_of_content(inquiry: AddedInquiry) -> Answer:
    """Is content added as it comes, or times the root of its width?"""
    scale, dim = inquiry.scale, inquiry.view.dim
    if inquiry.view.scale is None:
        raise NotAskedError("it gives the table alone, or more than a sum with content")
    if scale is None or scale == "sqrt_dim":
        return "as it comes" if scale is None else f"times √{dim}"
    return fault(
        "content-scaled",
        "note",
        f"content is multiplied with {scale} before the sum, where 1 and √{dim} = {dim**0.5:.4g} "
        "are usual",
        inquiry.view.scale,
        expected=1.0,
    )


def _slips(found: sinusoids.Sinusoid, show: str, inquiry: AddedInquiry) -> Answer:
    ours = found.encoding
    if ours.convention.name == "double_exponent":
        return fault(
            "wrong-exponent",
            "wrong",
            f"channel j turns with {ours.convention.formula}: the channel index stands where the "
            "paper's i counts pairs. Old checkpoints load with "
            "Sinusoidal(convention='double_exponent')",
            1.0,
            show,
        )
    if ours.base == 1:
        return fault(
            "wrong-exponent",
            "wrong",
            "all channels turn by one frequency: the exponent is 0 in each, as after an integer "
            "division",
            ours.base,
            show,
            10_000.0,
        )
    if ours.base < 1:
        return fault(
            "wrong-exponent",
            "wrong",
            f"frequencies grow with the channel instead of falling: base {ours.base:.3g}, a sign "
            "is missing in the exponent",
            ours.base,
            show,
            10_000.0,
        )
    if any(abs(ours.base / slipped - 1) < 5e-3 for slipped in (1e2, 1e8)):
        return fault(
            "wrong-exponent",
            "wrong",
            f"frequencies fall as those of base {ours.base:,.6g}: the exponent has half or twice "
            "what it should",
            ours.base,
            show,
            10_000.0,
        )
    half = ours.dim // 2
    if half > 1 and _is_usual(ours.base ** ((half - 1) / half)) and not _is_usual(ours.base):
        return fault(
            "wrong-exponent",
            "wrong",
            f"frequencies fall as i / {half - 1} instead of i / {half}: the width in the exponent "
            f"is {ours.dim - 2} instead of {ours.dim}. Old checkpoints load with "
            f"Sinusoidal({ours.dim}, base={ours.base:.10g})",
            ours.base,
            show,
            10_000.0,
        )
    learned = "" if found.is_plain else inquiry.factor
    if learned is None:
        return fault(
            "table-scaled",
            "wrong",
            f"sines and cosines are multiplied with {found.size:.4g}",
            found.size,
            show,
            1.0,
        )
    if ours.base not in sinusoids.KNOWN:
        return fault(
            "unusual-base", "note", f"base {ours.base:,.6g} is that of no known model", ours.base
        )
    beside = f", as {learned} has learned" if learned else ""
    return f"{found.off:.1g} from {found.said}{beside}"


def _is_usual(base: float) -> bool:
    """Whether it is 10,000, by which nearly all of these are built."""
    return abs(base / 10_000.0 - 1) < 1e-3


@question(after=NO_PLACE)
def is_precise(inquiry: AddedInquiry) -> Answer:
    """Up to the length that counts, is what it adds that of exact arithmetic?"""
    line, off = inquiry.error
    table, last = inquiry.table, int(line[-1])
    marks = [m for m in (10, 100, 1_000, 10_000, 100_000) if m < last]
    inquiry.errors |= {m: off[line <= m].max().item() for m in [*marks, last]}
    worst = off.max().item()
    show = f"import torch\nsubject(torch.zeros(1, {last + 1}, {inquiry.view.dim}))[0, -1]"
    held = rows.is_held_in(table[:512])
    if inquiry.fitted() is None and held is None:
        return fault(
            "frequencies-in-16-bits",
            "lossy",
            f"frequencies are rounded to 16 bits: at position {last:,} encodings are {worst:.3g} "
            "off",
            worst,
            show,
        )
    if held:
        return fault(
            "table-in-16-bits",
            "lossy",
            f"every number of the float32 table is one of {held}: up to {worst:.3g} off",
            worst,
            show,
        )
    if (apart := rows.parting(line, off)) is not None:
        first, before = int(line[apart]), int(line[apart - 1])
        return fault(
            "far-positions-otherwise",
            "wrong",
            f"to position {before:,} encodings are {off[:apart].max().item():.3g} off, and "
            f"{off[apart].item():.3g} at {first:,}, which no rounding of angles does: positions "
            "there receive what others should",
            first,
            show,
        )
    if worst > LOSSY:
        first = int(line[off > LOSSY][0])
        return fault(
            "precision-lost",
            "lossy",
            f"from position {first:,} on encodings are more than {LOSSY} off, up to {worst:.3g} "
            f"at {int(line[off.argmax()]):,}; computed exactly they are off by 3e-08",
            worst,
            show,
        )
    return f"up to {worst:.1g} off to position {last:,}"
