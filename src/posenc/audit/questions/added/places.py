"""Is every position read as it is said?"""

import torch
from torch import Tensor

from posenc.audit.adapters.added import Added
from posenc.audit.questions.added.inquiry import ROUNDING, AddedInquiry
from posenc.audit.questions.asking import NO_PLACE, Answer, fault, question
from posenc.audit.questions.places import STARTS, allowed, lines, over_the_edge, said, told
from posenc.audit.report import Fault, NotAskedError

BATCH, MOST = 2, 2**22


@question(after=NO_PLACE)
def reads_every_position(inquiry: AddedInquiry) -> Answer:
    """Does each token receive what its own position means: several at once, far, in any order?"""
    view, table = inquiry.view, inquiry.table
    others = _by_others(view, table)
    if isinstance(others, Fault):
        return others
    if not view.moves:
        return others or _not_said(view)
    asked: list[Tensor] = []
    for line in lines(len(table), in_any_order=view.moves == "positions"):
        try:
            made = view.added(positions=line)[0].double()
        except NotAskedError:  # it may refuse what a table built of the whole row has
            continue
        off = (made - table[line]).abs().max().item()
        if off > allowed(line, ROUNDING):
            return _misread(view, f"tokens at {said(line)}, said by {view.moves},", off)
        asked.append(line)
    words = told(asked)
    if (off := _row_by_row(view, table)) is not None:
        if off > ROUNDING:
            return _misread(view, "two rows, each with positions of its own,", off)
        words += "; row by row"
        off = _one_by_one(view, table)
        if off is not None and off > ROUNDING:
            return fault(
                "padding-shifts-positions",
                "wrong",
                f"{len(STARTS)} rows of one token each, at {said(STARTS)}, receive encodings up "
                f"to {off:.3g} away from those of these positions in a row",
                off,
                f"import torch\nx = torch.zeros({len(STARTS)}, 1, {view.dim})\n"
                f"at = torch.tensor({STARTS.tolist()})[:, None]\n# {view.text} there",
            )
        words += "" if off is None else ", of one token too"
    if view.unsaid is not None:
        count = max(1, min(len(table), MOST // view.dim))
        made = view.unsaid(view.subject.fresh(), torch.zeros(BATCH, count, view.dim), None)
        off = (made.double() - table[:count]).abs().max().item()
        if off > ROUNDING:
            return _misread(view, f"a row of {count:,} tokens without {view.moves}", off)
        words += f"; without {view.moves}, {count:,} tokens"
    beyond = None if view.fixed else _beyond(view, len(table))
    return beyond or "; ".join(filter(None, (words, others)))


def _beyond(view: Added, count: int) -> Fault | None:
    """What becomes of one token, and of two, that reach beyond as many rows as it gives."""
    return over_the_edge(
        lambda line: view.added(positions=line)[0],
        count,
        f"import torch\nx = torch.zeros(1, {{count}}, {view.dim})\n# {view.text} at {{first}}",
    )


def _not_said(view: Added) -> Answer:
    refused = "".join(f"; {name} was refused" for name, _ in view.others)
    raise NotAskedError(f"the first position cannot be said{refused}")


def _by_others(view: Added, table: Tensor) -> str | Fault:
    """Three tokens by each other parameter that may say where they stand."""
    heard = []
    line = torch.arange(5, 8)
    if view.others and view.unsaid is not None:  # which may count its rows from another number
        whole = torch.zeros(1, int(line[-1]) + 1, view.dim)
        table = view.unsaid(view.subject.fresh(), whole, None)[0].double()
    for name, run in view.others if len(table) > int(line[-1]) else ():
        try:
            made = run(view.subject.fresh(), torch.zeros(1, len(line), view.dim), line)
        except NotAskedError:
            continue
        if (off := (made[0].double() - table[line]).abs().max().item()) > ROUNDING:
            return _misread(view, f"tokens at {said(line)}, said by {name},", off)
        heard.append(f"so by {name}")
    return "; ".join(heard)


def _row_by_row(view: Added, table: Tensor) -> float | None:
    """How far two rows are from what positions of their own mean; None where it refuses them."""
    line = torch.stack((torch.arange(6), torch.arange(6) + 7)).clamp(max=len(table) - 1)
    if view.moves != "positions":
        return None
    try:
        made = view.call(torch.zeros(*line.shape, view.dim), line)
    except NotAskedError:
        return None
    return (made.double() - table[line]).abs().max().item() if len(made) == len(line) else None


def _one_by_one(view: Added, table: Tensor) -> float | None:
    """The same of the tokens that rows with padding on the left decode next."""
    line = STARTS[:, None].clamp(max=len(table) - 1)
    try:
        made = view.call(torch.zeros(*line.shape, view.dim), line)
    except NotAskedError:
        return None
    return (made.double() - table[line]).abs().max().item()


def _misread(view: Added, what: str, off: float) -> Fault:
    return fault(
        "positions-misread",
        "wrong",
        f"{what} receive encodings up to {off:.3g} away from those of these positions in a row",
        off,
        f"import torch\nx = torch.zeros(1, 3, {view.dim})\n# {view.text} there",
    )
