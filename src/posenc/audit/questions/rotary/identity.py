"""Which schedule is it, and how precisely?"""

from torch import Tensor, nn

from posenc.audit.identity import rotations
from posenc.audit.identity.bases import KNOWN, OF_GRIDS, is_round
from posenc.audit.questions import rows
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
from posenc.frequencies import Geometric

LOSSY = 0.01
"""By how much a score may move: what rounding queries to bfloat16 does to it anyway."""


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(inquiry: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    shape, found = inquiry.shape, inquiry.rotation
    show = (
        "import torch\n"
        f"x = torch.ones(1, 4, 2, {inquiry.view.dim})\n"
        "# the angle of each pair at position 1"
    )
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation" + f": {shape.odd}" * bool(shape.odd))
    if found is None:
        thing = inquiry.view.subject.fresh()
        if isinstance(thing, nn.Module) and any(True for _ in thing.parameters()):
            raise NotAskedError("its frequencies are learned")
        first = ", ".join(f"{w:.4g}" for w in shape.frequencies[:3].tolist())
        return fault(
            "unknown-frequencies",
            "wrong",
            f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no schedule that "
            f"is known here{_against(shape.speeds)}",
            shape.frequencies[0].item(),
            show,
        )
    found_faults = []
    if found.missing:
        found_faults.append(
            fault(
                "pair-never-turns",
                "wrong",
                f"pair(s) {', '.join(map(str, found.missing))} of "
                f"{len(found.missing) + len(shape.firsts)} never turn",
                len(found.missing),
                show,
            )
        )
    alike = isinstance(found.schedule, Geometric) and abs(found.schedule.base - 1) < 1e-5
    if alike:
        found_faults.append(
            fault(
                "wrong-exponent",
                "wrong",
                f"all {len(shape.firsts)} pairs turn by one frequency: the exponent is 0 in each, "
                "as after an integer division",
                1.0,
                show,
            )
        )
    if found.slip:
        base = getattr(found.schedule, "base", 0.0)
        meant = ", unless that base is meant" if base > 1 and is_round(base) else ""
        in_use = base in KNOWN and base not in OF_GRIDS  # as 1,000
        found_faults.append(
            fault(
                "perhaps-wrong-exponent" if in_use else "wrong-exponent",
                "note" if in_use else "wrong",
                f"frequencies fall as {found.named}: the exponent has {found.slip}{meant}",
                1.0,
                show,
            )
        )
    if abs(shape.size - found.factor) > (1e-3 if inquiry.coarse else 1e-5):
        plain = abs(shape.size - 1) <= 1e-5
        told = (
            f"cosines and sines are not multiplied with the {found.factor:.6g} of {found.named}: "
            f"its square belongs into the scale of scores, as in DeepSeek's own code"
            if plain
            else f"cosines and sines are multiplied with {shape.size:.6g}, where {found.named} has "
            f"{found.factor:.6g}"
        )
        name, severity = ("factor-left-out", "note") if plain else ("table-scaled", "wrong")
        found_faults.append(fault(name, severity, told, shape.size, show, found.factor))
    if shape.sense < 0:
        found_faults.append(
            fault(
                "turned-backwards",
                "note",
                "queries and keys are both turned by −p: scores are those of the mirrored "
                "distance, and weights trained with the usual sense do not fit",
                -1.0,
                expected=1.0,
            )
        )
    if shape.begin != 0:
        where = "at an angle of its own" if shape.begin is None else f"as position {shape.begin}"
        found_faults.append(
            fault(
                "begins-elsewhere",
                "note",
                f"the first token is turned {where}, queries and keys alike: scores, which go by "
                "distances, are the same",
                shape.phases.abs().max().item(),
            )
        )
    if found.unusual and not found.slip and not alike:
        found_faults.append(
            fault("unusual-base", "note", f"{found.named} is that of no known model", 1.0)
        )
    if found_faults:
        return found_faults
    return f"within 2e-06 a position of {found.named}"


def _against(speeds: Tensor) -> str:
    """Which pairs turn against the fastest, in words; empty if none does."""
    pairs = (speeds < 0).nonzero().flatten().tolist()
    more = f", … ({len(pairs)} in all)" if len(pairs) > 4 else ""
    told = ", ".join(map(str, pairs[:4])) + more
    return f"; pair(s) {told} turn against the fastest" if pairs else ""


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(inquiry: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours, shape = inquiry.expected, inquiry.shape
    if ours is None:
        raise NotAskedError("no configuration beside it says a rotary encoding")
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation")
    wanted = rotations._that_turn(ours.frequencies)
    show = "from posenc.interop.huggingface import rotary_from_config\nrotary_from_config(config)"
    unseen = inquiry.view.applied.startswith("it gives") or inquiry.view.is_one_of_several
    if shape.pairing != ours.pairing and not unseen:
        return fault(
            "pairing-of-the-other-convention",
            "wrong",
            f"it pairs channels by {shape.pairing}, the configuration's model by {ours.pairing}",
            1.0,
            show,
        )
    if shape.dim == ours.head_dim > ours.rotated_dim and shape.place != ours.rotated and not unseen:
        return fault(
            "unlike-its-configuration",
            "wrong",
            f"it turns {shape.width} of {shape.dim} channels from channel {shape.start} on, the "
            f"configuration's model the {ours.rotated} of {ours.rotated_dim}",
            shape.start,
            show,
        )
    theirs, our = shape.speeds, rotations.radians(wanted)
    if len(theirs) != len(our) or not rotations._fits(wanted, theirs):
        off = (theirs[: len(our)] - our[: len(theirs)]).abs().max().item()
        now = inquiry.rotation.named if inquiry.rotation is not None else "other frequencies"
        return fault(
            "unlike-its-configuration",
            "wrong",
            f"it has {now} over {2 * len(theirs)} channels, the configuration means "
            f"{rotations.describe(ours.frequencies)} over {2 * len(our)} (frequencies up to "
            f"{off:.3g} apart)",
            off,
            show,
        )
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > (1e-3 if inquiry.coarse else 1e-5):
        return fault(
            "unlike-its-configuration",
            "wrong",
            f"cosines are multiplied with {shape.size:.6g}, the configuration means {factor:.6g}",
            shape.size,
            show,
        )
    paired = f"{ours.pairing} pairing" if shape.pairing == ours.pairing else UNSEEN
    return f"{rotations.describe(ours.frequencies)}, {paired}"


UNSEEN = "whose pairing goes by how it is applied, which was not seen"


@question(after=NO_PLACE)
def is_precise(inquiry: RotaryInquiry) -> Answer:
    """Up to the length that counts, are scores those of exact arithmetic?"""
    found = inquiry.rotation
    if found is None:
        raise NotAskedError("what it should be is not known, so nothing can be held against it")
    line = [p for p in inquiry.far[0] if p < inquiry.length]
    errors = inquiry.errors_at(line)
    off = errors.abs().amax(1)
    marks = [p for p in (10, 63, 257, 1024, 2049, 8192) if p in line] + [line[-1]]
    for mark in marks:
        inquiry.errors[mark] = off[: line.index(mark) + 1].max().item()
    moved = _scores_moved(errors)
    worst, score = off.max().item(), moved.max().item()
    show = (
        "import torch\n"
        f"x = torch.ones(1, 4, {line[-1] + 1}, {inquiry.view.dim})\n"
        f"# the last token against posenc.Rotary({found.schedule!r})"
    )
    if inquiry.parting is not None and not found.rounded:
        first, last = line[inquiry.parting], line[inquiry.parting - 1]
        return fault(
            "far-positions-otherwise",
            "wrong",
            f"to position {last:,} cosines are {off[: inquiry.parting].max().item():.3g} off, and "
            f"{off[inquiry.parting].item():.3g} at {first:,}, which no rounding of angles does: "
            "positions there are turned as others",
            first,
            show,
        )
    if found.rounded:
        return fault(
            "frequencies-in-16-bits",
            "lossy",
            f"frequencies are those of {found.named} rounded to {found.rounded}: at position "
            f"{line[-1]:,} cosines are {worst:.3g} off and a score moves by {score:.3g}",
            worst,
            show,
        )
    held = rows.is_held_in(inquiry.far[1])
    if held:
        return fault(
            "table-in-16-bits",
            "lossy",
            f"cosines and sines of float32 content are numbers of {held}: up to {worst:.3g} off, "
            f"a score moves by {score:.3g}",
            worst,
            show,
        )
    if score > LOSSY:
        first = line[int((moved > LOSSY).nonzero()[0])]
        return fault(
            "precision-lost",
            "lossy",
            f"from position {first:,} on scores move by more than {LOSSY} (up to {score:.3g} at "
            f"{line[-1]:,}); cosines are {worst:.3g} off there, exact ones 3e-08",
            worst,
            show,
        )
    return f"cosines up to {worst:.1g} off to position {line[-1]:,}, a score moves by {score:.1g}"


def _scores_moved(error: Tensor) -> Tensor:
    """The standard deviation of q·k / √d for random q and k of size one, by such an error."""
    pairs = error.shape[1] // 2
    return error.square().sum(1).mul(2).sqrt() / (2 * pairs) ** 0.5
