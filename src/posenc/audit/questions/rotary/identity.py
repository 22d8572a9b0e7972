"""Which schedule is it, and is it what a configuration says?"""

from math import pi

from torch import Tensor

from posenc.audit.identity import rotations, schedules
from posenc.audit.identity.schedules import KNOWN, OF_GRIDS, is_round
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import Fault, NotAskedError
from posenc.frequencies import Geometric


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(q: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    shape, found = q.shape, q.rotation
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation" + f": {shape.odd}" * bool(shape.odd))
    if found is None:
        if q.learns:
            raise NotAskedError("its frequencies are learned")
        first = ", ".join(f"{w:.4g}" for w in shape.frequencies[:3].tolist())
        said = f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no schedule"
        said += f" that is known here{_against(shape.speeds)}{rotations.resembles(shape)}"
        return fault("unknown-frequencies", said, shape.frequencies[0].item())
    faults = [*_of_exponent(q, found), *_of_size(q, found)]
    if found.missing:
        pairs = ", ".join(map(str, found.missing))
        said = f"pair(s) {pairs} of {len(found.missing) + len(shape.firsts)} never turn"
        faults.append(fault("pair-never-turns", said, len(found.missing)))
    if shape.begin is None and bool(((shape.phases.abs() - pi / 2).abs() < 1e-3).all()):
        said = "sines and cosines are exchanged: pairs turn by π/2 − pω at position p, not by pω"
        faults.append(fault("turned-backwards", said, pi / 2, severity="wrong"))
        return faults
    if shape.sense < 0:
        said = "queries and keys are both turned by −p: weights trained with +p do not fit"
        faults.append(fault("turned-backwards", said, -1.0, expected=1.0))
    if shape.begin != 0:
        where = "at an angle of its own" if shape.begin is None else f"as position {shape.begin}"
        said = f"the first token is turned {where}, queries and keys alike: scores are the same"
        faults.append(fault("begins-elsewhere", said, shape.phases.abs().max().item()))
    return faults or f"within 2e-06 a position of {found.named}"


def _of_exponent(q: RotaryInquiry, found: rotations.Rotation) -> list[Fault]:
    base = getattr(found.schedule, "base", 0.0)
    if isinstance(found.schedule, Geometric) and abs(base - 1) < 1e-5:
        said = f"all {len(q.shape.firsts)} pairs turn by one frequency: the exponent is 0 in each"
        return [fault("wrong-exponent", said)]
    if found.slip:
        meant = ", unless that base is meant" if base > 1 and is_round(base) else ""
        in_use = base in KNOWN and base not in OF_GRIDS  # as 1,000
        name = "perhaps-wrong-exponent" if in_use else "wrong-exponent"
        said = f"frequencies fall as {found.named}: the exponent has {found.slip}{meant}"
        return [fault(name, said)]
    if found.unusual:
        return [fault("unusual-base", f"{found.named} is that of no known model")]
    return []


def _of_size(q: RotaryInquiry, found: rotations.Rotation) -> list[Fault]:
    if not q.off_factor:
        return []
    size = q.shape.size
    if abs(size - 1) <= 1e-5:
        said = f"cosines are not multiplied with the {found.factor:.6g} of {found.named}: its"
        said += " square belongs into the scale of scores, as in DeepSeek's own code"
        return [fault("factor-left-out", said, size, expected=found.factor)]
    said = f"cosines are multiplied with {size:.6g}, where {found.named} has {found.factor:.6g}"
    return [fault("table-scaled", said, size, expected=found.factor)]


def _against(speeds: Tensor) -> str:
    """Which pairs turn against the fastest, in words; empty if none does."""
    pairs = (speeds < 0).nonzero().flatten().tolist()
    more = f", … ({len(pairs)} in all)" if len(pairs) > 4 else ""
    told = ", ".join(map(str, pairs[:4])) + more
    return f"; pair(s) {told} turn against the fastest" if pairs else ""


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(q: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours, shape = q.expected, q.shape
    if ours is None:
        raise NotAskedError("no configuration beside it says a rotary encoding")
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation")
    unseen = q.view.applied.startswith("it gives") or q.view.is_one_of_several
    if shape.pairing != ours.pairing and not unseen:
        said = f"it pairs channels by {shape.pairing}, the configuration's model {ours.pairing}"
        return fault("pairing-of-the-other-convention", said)
    if shape.dim == ours.head_dim > ours.rotated_dim and shape.place != ours.rotated and not unseen:
        said = f"it turns {shape.width} of {shape.dim} channels from channel {shape.start} on, the"
        said += f" configuration's model the {ours.rotated} of {ours.rotated_dim}"
        return fault("unlike-its-configuration", said, shape.start)
    named = schedules.describe(ours.frequencies)
    theirs, wanted = shape.speeds, schedules.radians(ours.frequencies)
    if shape.sense < 0 and bool((wanted < 0).all()):  # nanochat turns by −p, and is meant to
        wanted = -wanted
    if not schedules.fits(wanted, theirs):
        shared = min(len(theirs), len(wanted))
        off = (theirs[:shared] - wanted[:shared]).abs().max().item()
        now = q.rotation.named if q.rotation is not None else "other frequencies"
        said = f"it has {now} over {2 * len(theirs)} channels, the configuration means {named}"
        said += f" over {2 * len(wanted)} (frequencies up to {off:.3g} apart)"
        return fault("unlike-its-configuration", said, off)
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > (1e-3 if q.coarse else 1e-5):
        said = f"cosines are multiplied with {shape.size:.6g}, the configuration means {factor:.6g}"
        return fault("unlike-its-configuration", said, shape.size)
    seen = f"{ours.pairing} pairing" if shape.pairing == ours.pairing else UNSEEN
    return f"{named}, {seen}"


UNSEEN = "whose pairing goes by how it is applied, which was not seen"
