"""Which keys does a bias hide?"""

from posenc.audit.questions.asking import NO_STATE, Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.report import NotAskedError


@question(after=("not-a-number", *NO_STATE))
def hides_what_a_mask_should(inquiry: BiasInquiry) -> Answer:
    """Does it hide no key, or later ones, or those beyond a window, as masks do?"""
    found = inquiry.mask
    if found is None:
        raise NotAskedError("it gives no row for each query")
    seq = inquiry.far_square.shape[-1]
    if not (found.slip or found.doubtful):
        return f"it {found.said}, of {seq}"
    return fault(
        "mask-misplaced",
        "wrong" if found.slip else "note",
        f"it {found.said}: numbers so low leave a key no weight, and a mask that is meant for "
        "the future hides all of it and nothing else",
        1.0,
        inquiry.shown(f"{seq}, {seq}") + "; bias == -inf, or is far below all others",
    )
