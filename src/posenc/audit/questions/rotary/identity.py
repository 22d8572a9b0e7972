"""Which schedule is it, and is it what a configuration says?"""

from collections.abc import Iterator
from math import pi

from posenc.audit.identity import rotations, schedules
from posenc.audit.identity.schedules import KNOWN, OF_GRIDS
from posenc.audit.questions.asking import Answer, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_STATE, fault
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import Fault
from posenc.frequencies import Geometric


@question(
    essential=True, after=(*NO_LENGTH, *NO_STATE, "positions-shared", "off-by-one-after-cache")
)
def has_known_frequencies(q: RotaryInquiry) -> Answer:
    """Are its frequencies those of a published schedule?"""
    needed(q.shape.firsts and not q.shape.odd, f"it is no rotation: {q.shape.odd}")
    if q.rotation is None:
        return _unknown(q)
    return [*_slips(q, q.rotation)] or f"within 2e-06 a position of {q.rotation.named}"


def _unknown(q: RotaryInquiry) -> Fault:
    needed(not q.learns, "its frequencies are learned")
    shape, first = q.shape, ", ".join(f"{w:.4g}" for w in q.shape.frequencies[:3].tolist())
    said = f"{len(shape.firsts)} pairs turn by {first}, … a position, which is no known schedule"
    if pairs := (shape.speeds < 0).nonzero().flatten().tolist():
        more = f", … ({len(pairs)} in all)" if len(pairs) > 4 else ""
        said += f"; pair(s) {', '.join(map(str, pairs[:4]))}{more} turn against the first"
    said, number = said + rotations.resembles(shape), shape.frequencies[0].item()
    return fault("unknown-frequencies", said, number, severity=q.unknown)


def _slips(q: RotaryInquiry, found: rotations.Rotation) -> Iterator[Fault]:
    """What is wrong or unusual about a schedule and how it is applied."""
    shape, base = q.shape, getattr(found.schedule, "base", 0.0)
    if isinstance(found.schedule, Geometric) and abs(base - 1) < 1e-5:
        yield fault("wrong-exponent", "all pairs turn by one frequency: the exponent is 0 in each")
    elif found.slip:
        in_use = base in KNOWN and base not in OF_GRIDS  # as 1,000
        name = "perhaps-wrong-exponent" if in_use else "wrong-exponent"
        yield fault(name, f"frequencies fall as {found.named}: the exponent has {found.slip}")
    elif found.unusual:
        yield fault("unusual-base", f"{found.named} is that of no known model")
    if q.off_factor:
        name = "factor-left-out" if abs(shape.size - 1) <= 1e-5 else "table-scaled"
        said = f"cosines are multiplied with {shape.size:.6g}, not the {found.factor:.6g} of"
        yield fault(name, f"{said} {found.named}", shape.size, expected=found.factor)
    if found.missing:
        pairs = ", ".join(map(str, found.missing))
        yield fault("pair-never-turns", f"pair(s) {pairs} never turn", len(found.missing))
    if shape.begin is None and bool(((shape.phases.abs() - pi / 2).abs() < 1e-3).all()):
        yield fault("turned-backwards", "sines and cosines are exchanged", pi / 2, severity="wrong")
        return
    if shape.sense < 0:
        yield fault("turned-backwards", "queries and keys are turned by −p", -1.0, expected=1.0)
    if shape.begin != 0:
        where = "at an angle of its own" if shape.begin is None else f"as position {shape.begin}"
        said = f"the first token is turned {where}, queries and keys alike: scores are the same"
        yield fault("begins-elsewhere", said, shape.phases.abs().max().item())


@question(after=(*NO_LENGTH, *NO_STATE))
def is_as_configured(q: RotaryInquiry) -> Answer:
    """Is it what the configuration beside it says?"""
    ours = needed(q.expected, "no configuration beside it says a rotary encoding")
    shape = q.shape
    needed(shape.firsts and not shape.odd, "it is no rotation")
    unlike, named = "unlike-its-configuration", schedules.describe(ours.frequencies)
    seen = not (q.view.gives_tables or q.view.is_one_of_several)
    if seen and shape.pairing != ours.pairing:
        said = f"the pairing is {shape.pairing}, the configuration means {ours.pairing}"
        return fault("pairing-of-the-other-convention", said)
    if seen and shape.dim == ours.head_dim > ours.rotated_dim and shape.place != ours.rotated:
        return fault(unlike, f"it turns channels from {shape.start} on", shape.start)
    theirs, wanted = shape.speeds, schedules.radians(ours.frequencies)
    if bool((wanted < 0).all()):  # nanochat turns by −p, and is meant to
        wanted = shape.sense * wanted
    if not schedules.fits(wanted, theirs):
        shared = min(len(theirs), len(wanted))
        off = (theirs[:shared] - wanted[:shared]).abs().max().item()
        now = q.rotation.named if q.rotation is not None else "other frequencies"
        said = f"it has {now} over {2 * len(theirs)} channels, the configuration means {named}"
        return fault(unlike, f"{said} over {2 * len(wanted)}", off)
    factor = ours.frequencies.attention_factor
    if abs(shape.size - factor) > (1e-3 if q.coarse else 1e-5):
        return fault(unlike, f"cosines are times {shape.size:.6g}, not {factor:.6g}", shape.size)
    if shape.pairing == ours.pairing:
        return f"{named}, {ours.pairing} pairing"
    return f"{named}, whose pairing goes by how it is applied, which was not seen"
