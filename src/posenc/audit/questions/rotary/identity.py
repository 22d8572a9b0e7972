"""Which schedule is it, and is it what a configuration says?"""

from math import pi

from posenc.audit.identity import rotations, schedules
from posenc.audit.identity.schedules import KNOWN, OF_GRIDS, is_round
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import Fault, NotAskedError
from posenc.frequencies import Geometric

UNSEEN = "whose pairing goes by how it is applied, which was not seen"


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(q: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    shape, found = q.shape, q.rotation
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation" + f": {shape.odd}" * bool(shape.odd))
    if found is None:
        return _unknown(q)
    faults = [*_of_exponent(q, found), *_of_size(q, found)]
    if found.missing:
        pairs = ", ".join(map(str, found.missing))
        said = f"pair(s) {pairs} of {len(found.missing) + len(shape.firsts)} never turn"
        faults.append(fault("pair-never-turns", said, len(found.missing)))
    if shape.begin is None and bool(((shape.phases.abs() - pi / 2).abs() < 1e-3).all()):
        said = "sines and cosines are exchanged: pairs turn by π/2 − pω at position p, not by pω"
        return [*faults, fault("turned-backwards", said, pi / 2, severity="wrong")]
    if shape.sense < 0:
        said = "queries and keys are both turned by −p: weights trained with +p do not fit"
        faults.append(fault("turned-backwards", said, -1.0, expected=1.0))
    if shape.begin != 0:
        where = "at an angle of its own" if shape.begin is None else f"as position {shape.begin}"
        said = f"the first token is turned {where}, queries and keys alike: scores are the same"
        faults.append(fault("begins-elsewhere", said, shape.phases.abs().max().item()))
    return faults or f"within 2e-06 a position of {found.named}"


def _unknown(q: RotaryInquiry) -> Fault:
    if q.learns:
        raise NotAskedError("its frequencies are learned")
    shape, first = q.shape, ", ".join(f"{w:.4g}" for w in q.shape.frequencies[:3].tolist())
    said = f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no schedule that is "
    said += "known here"
    if pairs := (shape.speeds < 0).nonzero().flatten().tolist():
        more = f", … ({len(pairs)} in all)" if len(pairs) > 4 else ""
        said += f"; pair(s) {', '.join(map(str, pairs[:4]))}{more} turn against the first"
    said += rotations.resembles(shape)
    return fault("unknown-frequencies", said, shape.frequencies[0].item())


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
    size, name = q.shape.size, "table-scaled"
    said = f"cosines are multiplied with {size:.6g}, where {found.named} has {found.factor:.6g}"
    if abs(size - 1) <= 1e-5:
        name, said = "factor-left-out", f"cosines are not multiplied with the {found.factor:.6g} of"
        said += f" {found.named}: its square belongs into the scale of scores, as in DeepSeek's own"
        said += " code"
    return [fault(name, said, size, expected=found.factor)]


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(q: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours, shape = q.expected, q.shape
    if ours is None:
        raise NotAskedError("no configuration beside it says a rotary encoding")
    if not shape.firsts or shape.odd:
        raise NotAskedError("it is no rotation")
    unlike, named = "unlike-its-configuration", schedules.describe(ours.frequencies)
    seen = not (q.view.applied.startswith("it gives") or q.view.is_one_of_several)
    if seen and shape.pairing != ours.pairing:
        said = f"it pairs channels by {shape.pairing}, the configuration's model {ours.pairing}"
        return fault("pairing-of-the-other-convention", said)
    if seen and shape.dim == ours.head_dim > ours.rotated_dim and shape.place != ours.rotated:
        said = f"it turns {shape.width} of {shape.dim} channels from channel {shape.start} on, the"
        said += f" configuration's model the {ours.rotated} of {ours.rotated_dim}"
        return fault(unlike, said, shape.start)
    theirs, wanted = shape.speeds, schedules.radians(ours.frequencies)
    if bool((wanted < 0).all()):  # nanochat turns by −p, and is meant to
        wanted = shape.sense * wanted
    if not schedules.fits(wanted, theirs):
        shared = min(len(theirs), len(wanted))
        off = (theirs[:shared] - wanted[:shared]).abs().max().item()
        now = q.rotation.named if q.rotation is not None else "other frequencies"
        said = f"it has {now} over {2 * len(theirs)} channels, the configuration means {named}"
        said += f" over {2 * len(wanted)} (frequencies up to {off:.3g} apart)"
        return fault(unlike, said, off)
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > (1e-3 if q.coarse else 1e-5):
        said = f"cosines are multiplied with {shape.size:.6g}, the configuration means {factor:.6g}"
        return fault(unlike, said, shape.size)
    return f"{named}, {f'{ours.pairing} pairing' if shape.pairing == ours.pairing else UNSEEN}"
