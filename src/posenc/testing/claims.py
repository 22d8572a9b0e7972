"""Claims of an encoding, tested both ways.

A claim that is true must hold near and far. A claim that is false must have a counter-example.
"""

from collections.abc import Callable
from functools import partial
from operator import lt
from typing import Any

import torch
from torch import Tensor

from posenc.positions import consecutive
from posenc.testing.cases import Case, QueriesKeys, Subject, Tokens

SHIFTS = (1, 1_000, 10**6, 2**40)
TOLERANCE = 1e-6  # in float64: far above rounding, far below any effect
ROUNDINGS = 256 * torch.finfo(torch.float64).eps  # of a position, by which a far angle is off


def claims(case: Case) -> str | None:
    """Each claim is true exactly where the search finds no counter-example."""
    subject, module, unasked = case.subject(), case.module().double(), list[str]()
    for name, holds in _claims_of(subject).items():
        claimed = getattr(module, name, False)  # most encodings do not name it
        found = holds(case, subject)
        if found is None:
            unasked.append(name)
            continue
        assert claimed == found, (
            f"{name} is {claimed}, but the search found {'no' if found else 'a'} counter-example"
        )
    return f"too few positions to check {', '.join(unasked)}" if unasked else None


def _claims_of(subject: Subject) -> dict[str, Callable[[Case, Subject], bool | None]]:
    changes_values, changes_output = (partial(_changes, part) for part in ("values", "output"))
    if isinstance(subject, Tokens):
        shifts = {"keeps_norm": _keeps_norm, "keeps_shift": _keeps_shift}
        if not getattr(subject.case.module(), "is_pointwise", True):
            shifts = {}  # its table is the positions
        return {**shifts, "is_pointwise": _tokens_are_pointwise}
    if isinstance(subject, QueriesKeys):
        return {
            "is_relative": _is_relative,
            "changes_values": changes_values,
            "changes_output": changes_output,
        }
    return {
        "is_relative": _is_relative,
        "is_pairwise": _scores_are_pairwise,
        "reads_neighbors": _documents_matter,
        "reads_later": _later_keys_matter,
        "changes_output": changes_output,
    }


def _scattered(case: Case, count: int) -> Tensor:
    """Distinct positions: the first ones, and random ones far out."""
    generator = torch.Generator().manual_seed(1)
    if case.limit is not None:
        return torch.randperm(max(case.limit - 3, 0), generator=generator)[:count]
    far = torch.randint(2**40, (count - 4,), generator=generator)
    return torch.cat([consecutive(4), far])[torch.randperm(count, generator=generator)]


def _keeps_norm(case: Case, subject: Subject) -> bool | None:
    positions = _scattered(case, 50)
    if len(positions) < 2:
        return None
    table = subject.tables(case.module().double(), positions, torch.float64)
    norms = table.norm(dim=-1)
    return bool((norms.max() - norms.min()) < TOLERANCE * norms.max())


def _keeps_shift(case: Case, subject: Subject) -> bool | None:
    """Fit M on half of the rows and test it on the other half.

    Few rows are all fitted; ``None`` where any M fits them.
    """
    module = case.module().double()
    positions = _scattered(case, 8 * module.dim)  # type: ignore[operator]
    before, after = (
        subject.tables(module, positions + shift, torch.float64).detach() for shift in (0, 3)
    )
    rows, dim = len(positions), before.shape[-1]
    if rows <= dim:
        return None
    fitted, tested = (rows // 2, rows // 2) if rows >= 4 * dim else (rows, 0)
    shift_map = torch.linalg.lstsq(before[:fitted], after[:fitted], driver="gelsd").solution
    return bool((before[tested:] @ shift_map - after[tested:]).abs().max() < TOLERANCE)


def _tokens_are_pointwise(case: Case, subject: Subject) -> bool:
    """Without some tokens, the others must stay as they were."""
    module, positions = case.module().double(), consecutive(9)
    content = subject.content(9, (1,), torch.float64)
    whole = subject.run(module, content, positions)
    for some in ([4], [8, 3], [0, 1, 2, 3, 4]):
        rows = torch.tensor(some)
        alone = subject.run_rows(module, content, positions, rows)[0]
        if (alone - subject.rows(whole, rows)[0]).abs().max() >= TOLERANCE:
            return False
    return True


def _is_relative(case: Case, subject: Subject) -> bool | None:
    """Whether tokens give the same scores farther on; ``None`` if there is no farther."""
    module = case.module().double()

    def scores(positions: Tensor) -> Tensor:
        content = subject.content(len(positions), (1,), torch.float64)
        made = subject.call(module, content, positions)
        if not isinstance(subject, QueriesKeys):
            return made[0]
        q, k = made
        return q @ k.repeat_interleave(q.shape[-3] // k.shape[-3], dim=-3).mT

    positions = torch.tensor([0, 1, 2, 3, 4, 5, *case.far(300, 5000, ahead=1)])
    here, last = scores(positions), int(positions[-1])
    ends = case.far(*(last + shift for shift in SHIFTS))
    rooms = [max(TOLERANCE, ROUNDINGS * end) for end in ends]
    off = [(scores(positions + end - last) - here).abs().max() for end in ends]
    return all(map(lt, off, rooms)) if ends else None


def _scores_are_pairwise(case: Case, subject: Subject) -> bool:
    """Some queries and keys, in another order, must have the scores that they had among all."""
    module = case.module().double()
    content, positions = subject.content(9, (1,), torch.float64), consecutive(9)
    whole = subject.run(module, content, positions)[0]
    for some_q, some_k in (([8, 3], [0, 3, 8]), ([5], [5, 2]), ([4, 7, 1], [6, 8, 7, 1, 0])):
        (scores, q), (k, *hidden) = subject.rows(content[:2], torch.tensor(some_q)), content[2:]
        scores, k = scores[..., some_k], k[..., some_k, :]
        places = [subject.lifted(positions[chosen]) for chosen in (some_q, some_k)]
        read = {}
        if hidden:
            sides = {"q_hidden": some_q, "k_hidden": some_k}
            read = {name: hidden[0][..., chosen, :] for name, chosen in sides.items()}
        alone = module(scores, *places, q=q, k=k, **read)
        if (alone - whole[..., some_q, :][..., some_k]).abs().max() >= TOLERANCE:
            return False
    return True


def _documents_matter(case: Case, subject: Subject) -> bool:
    """Whether other documents before and behind one change its scores."""
    module, own = case.module().double(), slice(4, 8)
    scores, *tokens = subject.content(12, (1,), torch.float64)
    others = -scores, *(-part for part in tokens)
    others[0][..., own, own] = scores[..., own, own]
    for part, held in zip(tokens, others[1:], strict=True):
        held[..., own, :] = part[..., own, :]
    here, there = (
        subject.pick(subject.run(module, content, consecutive(12))[0], own)
        for content in ((scores, *tokens), others)
    )
    return bool((here - there).abs().max() >= TOLERANCE)


def _later_keys_matter(case: Case, subject: Subject) -> bool:
    """Whether scores change when the last tokens are left out."""
    module, content = case.module().double(), subject.content(9, (1,), torch.float64)
    whole = subject.call(module, content, consecutive(9))[0]
    for count in (1, 5, 8):
        scores, *tokens = content
        first = scores[..., :count, :count], *(part[..., :count, :] for part in tokens)
        alone = subject.call(module, first, consecutive(count))[0]
        before = whole[..., :count, :count]
        if (alone - before).masked_fill(alone == before, 0.0).tril().abs().max() >= TOLERANCE:
            return True
    return False


def _changes(part: str, case: Case, subject: Subject) -> bool:
    """Whether ``encode_values`` or ``encode_output`` changes what it is given."""
    module: Any = case.module().double()
    content = subject.content(6, (1,), torch.float64)
    table = subject.tables(module, consecutive(6), torch.float64)
    encode = getattr(module, f"encode_{part}")
    if isinstance(subject, QueriesKeys):
        (x,) = subject.laid_out(content[1:] if part == "values" else content[:1])
        made = encode(x, table)
    else:
        x = content[1]
        made = encode(x, content[0].softmax(-1), table)
    assert made.shape == x.shape, f"{part} became {tuple(made.shape)}"
    return not torch.equal(made, x)
