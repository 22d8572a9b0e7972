"""Claims of an encoding, tested both ways.

A claim that is true must hold near and far. A claim that is false must have a counter-example, and
real coordinates must be refused where they are not encoded exactly.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import torch
from torch import Tensor

from posenc.positions import Coordinates, consecutive
from posenc.testing.cases import QueriesKeys, Scores, Subject, Tensors
from posenc.testing.compare import assert_differs, assert_same

SHIFTS = (1, 1_000, 10**6, 2**40)
TOLERANCE = 1e-6  # in float64: far above rounding, far below any effect
HALF = Fraction(1, 2)
ROUNDINGS = 256 * torch.finfo(torch.float64).eps  # of a position, by which a far angle is off


def claims(subject: Subject) -> str | None:
    """Each claim is true exactly where the search finds no counter-example."""
    subject.module.double()
    unasked = []
    for name, holds in SEARCHES.items():
        if not hasattr(subject.module, name):
            continue  # a claim of another place
        if name in OF_VECTORS and not subject.claims("is_pointwise", True):
            continue  # its table is the positions
        claimed, found = subject.claims(name), holds(subject)
        if found is None:
            unasked.append(name)
            continue
        assert claimed == found, (
            f"{name} is {claimed}, but the search found {'no' if found else 'a'} counter-example"
        )
    return f"too few positions to check {', '.join(unasked)}" if unasked else None


def reals(subject: Subject) -> None:
    """Whole coordinates equal whole positions and halves lie between them, or all are refused."""
    positions = torch.tensor([0, 1, 4, 9, *subject.case.far(2**24 + 1, 2**40 + 1)])
    points = subject.lifted(positions)
    whole, finer = Coordinates(points), Coordinates(2 * points, scale=HALF)
    if not subject.module.takes_reals:
        try:
            subject.tables(whole)
        except TypeError:
            return
        raise AssertionError("takes_reals is False, but real coordinates were not refused")
    table = subject.tables(positions)
    assert_same(subject.tables(whole), table, "whole coordinates", bitwise=True)
    assert_same(subject.tables(finer), table, "whole numbers of halves", bitwise=False)

    others = (whole,) if isinstance(subject, Scores) else ()
    between, *neighbors = (
        subject.module.table(whole + step, *others) for step in (HALF, Fraction(0), Fraction(1))
    )
    for neighbor in neighbors:
        assert_differs((between,), (neighbor,), "a half was rounded to a whole position")
    content = subject.content(len(positions))
    got, want = (subject.run(content, each) for each in (finer, positions))
    assert_same(got, want, "content at coordinates", bitwise=False)


def _content(subject: Subject, seq: int) -> Tensors:
    return subject.content(seq, (1,), torch.float64)


def _scattered(subject: Subject, count: int) -> Tensor:
    """Distinct positions: the first ones, and random ones far out."""
    generator, limit = torch.Generator().manual_seed(1), subject.case.limit
    if limit is not None:
        return torch.randperm(max(limit - 3, 0), generator=generator)[:count]
    far = torch.randint(2**40, (count - 4,), generator=generator)
    return torch.cat([consecutive(4), far])[torch.randperm(count, generator=generator)]


def _keeps_norm(subject: Subject) -> bool | None:
    positions = _scattered(subject, 50)
    if len(positions) < 2:
        return None
    norms = subject.tables(positions, torch.float64).norm(dim=-1)
    return bool((norms.max() - norms.min()) < TOLERANCE * norms.max())


def _keeps_shift(subject: Subject) -> bool | None:
    """Fit M on half of the rows and test it on the other half.

    Few rows are all fitted; ``None`` where any M fits them.
    """
    positions = _scattered(subject, 8 * subject.module.dim)
    before, after = (subject.tables(positions + shift, torch.float64).detach() for shift in (0, 3))
    rows, dim = before.shape[0], before.shape[-1]
    if rows <= dim:
        return None
    fitted, tested = (rows // 2, rows // 2) if rows >= 4 * dim else (rows, 0)
    shift_map = torch.linalg.lstsq(before[:fitted], after[:fitted], driver="gelsd").solution
    return bool((before[tested:] @ shift_map - after[tested:]).abs().max() < TOLERANCE)


def _stands_alone(subject: Subject) -> bool:
    """Some tokens, or some queries and keys, must have what they had among all."""
    content, line = _content(subject, 9), consecutive(9)
    whole = subject.run(content, line)[0]
    for some in (([8, 3], [0, 3, 8]), ([5], [2, 5]), ([4, 7, 1], [0, 1, 6, 7, 8])):
        rows, keys = map(torch.tensor, some)
        among = whole[..., rows, :]
        wanted = among[..., keys] if isinstance(subject, Scores) else among
        if not _equal(subject.alone(content, line, rows, [keys])[0], wanted):
            return False
    return True


def _is_relative(subject: Subject) -> bool | None:
    """Whether tokens give the same scores farther on; ``None`` if there is no farther."""

    def scores(positions: Tensor) -> Tensor:
        q, *keys = subject.call(_content(subject, len(positions)), positions)
        return q @ keys[0].repeat_interleave(q.shape[-3] // keys[0].shape[-3], -3).mT if keys else q

    positions = torch.tensor([0, 1, 2, 3, 4, 5, *subject.case.far(300, 5000, ahead=1)])
    here, last = scores(positions), int(positions[-1])
    ends = subject.case.far(*(last + shift for shift in SHIFTS))
    shifted = (_equal(scores(positions + end - last), here, ROUNDINGS * end) for end in ends)
    return all(shifted) if ends else None


def _documents_matter(subject: Scores) -> bool:
    """Whether other documents before and behind one change its scores."""
    own = slice(4, 8)
    scores, *tokens = _content(subject, 12)
    others = -scores, *(-part for part in tokens)
    others[0][..., own, own] = scores[..., own, own]
    for part, held in zip(tokens, others[1:], strict=True):
        held[..., own, :] = part[..., own, :]
    made = [subject.run(x, consecutive(12))[0] for x in ((scores, *tokens), others)]
    here, there = (subject.pick(part, own) for part in made)
    return not _equal(here, there)


def _later_keys_matter(subject: Scores) -> bool:
    """Whether scores change when the last tokens are left out."""
    content, line = _content(subject, 9), consecutive(9)
    whole = subject.called(content, line)
    firsts = [line[:count] for count in (1, 5, 8)]
    alone = [subject.alone(content, line, first, [first])[0] for first in firsts]
    among = [subject.pick(whole, first) for first in firsts]
    return not all(_equal(a.tril(), b.tril()) for a, b in zip(alone, among, strict=True))


def _changes(part: str, subject: Subject) -> bool:
    """Whether ``encode_values`` or ``encode_output`` changes what it is given."""
    content = _content(subject, 6)
    table = subject.tables(consecutive(6), torch.float64)
    encode = getattr(subject.module, f"encode_{part}")
    if isinstance(subject, QueriesKeys):
        (x,) = subject.laid_out(content[1:] if part == "values" else content[:1])
        made = encode(x, table)
    else:
        x = content[1]
        made = encode(x, content[0].softmax(-1), table)
    assert made.shape == x.shape, f"{part} became {tuple(made.shape)}"
    return not torch.equal(made, x)


def _equal(one: Tensor, other: Tensor, room: float = 0.0) -> bool:
    """Whether numbers are equal within ``room`` or the tolerance; infinities are."""
    apart = (one - other).masked_fill(one == other, 0.0)
    return bool(apart.abs().max() < max(TOLERANCE, room))


OF_VECTORS = ("keeps_norm", "keeps_shift")
SEARCHES: dict[str, Callable[[Any], bool | None]] = {
    "keeps_norm": _keeps_norm,
    "keeps_shift": _keeps_shift,
    "is_pointwise": _stands_alone,
    "is_relative": _is_relative,
    "is_pairwise": _stands_alone,
    "reads_neighbors": _documents_matter,
    "reads_later": _later_keys_matter,
    "changes_values": partial(_changes, "values"),
    "changes_output": partial(_changes, "output"),
}
"""Whether a claim holds, by the search for a counter-example."""
