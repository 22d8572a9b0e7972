"""Does every token receive what its place means?"""

import math

import torch
from torch import Tensor

from posenc.audit.adapters.added import Added
from posenc.audit.adapters.calls import lengths_of, varies
from posenc.audit.questions import rows
from posenc.audit.questions.added.inquiry import ROUNDING, AddedInquiry
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_ORDER,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.report import Fault, FewerRowsError, NotAskedError


def _call(inquiry: AddedInquiry) -> str:
    return inquiry.view.text.replace("…", "positions") if inquiry.view.moves else "subject(x)"


@question(essential=True)
def encodes_the_sequence(inquiry: AddedInquiry) -> Answer:
    """Does the sequence axis carry the position, and it alone?"""
    view = inquiry.view
    batch = 1 if view.layout == "sd" else 3
    made = view.added(view.seq, batch=batch)
    raw = view.call(torch.zeros(batch, view.seq, view.dim))
    across = varies(raw, 0) if len(raw) > 1 else 0.0
    along = varies(made, 1)
    shape = "torch.zeros(3, 7, d)"
    if across > 1e-6:
        mixed = ", so sequence and batch are mixed up" if along > 1e-6 else ""
        return fault(
            "batch-axis-encoded",
            "wrong",
            f"equal rows of a batch receive encodings up to {across:.3g} apart{mixed}",
            across,
            "import torch\n"
            f"x = {shape}  # [batch, seq, dim]\n"
            "(subject(x)[1] - subject(x)[0]).abs().max()",
        )
    if along <= 1e-9 and (along := varies(inquiry.table, 0)) <= 1e-9:
        return fault(
            "encodes-nothing",
            "wrong",
            "all positions of a row receive the same",
            along,
            f"import torch\nx = {shape}\nsubject(x)[0].diff(dim=0).abs().max()",
            1.0,
        )
    said = f"neighbors up to {along:.3g} apart, equal rows of a batch {across:.1g}"
    if view.layout == "sbd" and not view.declared:
        return fault(
            "takes-sequence-first",
            "note",
            "axis 0 carries the position: it takes [seq, batch, dim]. Fed with [batch, seq, dim] "
            "it would encode the index in the batch",
            along,
        )
    return said


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def positions_stay_apart(inquiry: AddedInquiry) -> Answer:
    """Does every position receive a row of its own, also beyond the length it is built for?"""
    view = inquiry.view
    if view.grid is not None:
        return _grid_apart(inquiry)
    built = [n for n in lengths_of(view.subject.fresh()) if 8 <= n <= 2**17]
    most = min(max([inquiry.length, *(2 * n + 2 for n in built[:3])]), 2**22 // view.dim)
    said = "" if view.fixed else _truncation(view, built)
    table = inquiry.table if view.fixed else view.rows(view.longest(most))
    line = torch.arange(len(table))
    found = rows.beyond(
        table,
        line,
        "the encoding",
        lambda p, q: (
            "import torch\n"
            f"made = subject(torch.zeros(1, {q + 1}, {view.dim}))\n"
            f"(made[0, {p}] - made[0, {q}]).abs().max()"
        ),
    )
    if isinstance(said, Fault):
        return [said]
    return found or f"{len(table):,} positions, {len(table):,} rows{said}"


def _truncation(view: Added, built: list[int]) -> Fault | str:
    """What becomes of rows longer than the table."""
    for n in built[:2]:
        try:
            view.added(n + 5)
        except FewerRowsError as reason:
            return fault(
                "truncated-silently",
                "wrong",
                f"{reason}: the tokens beyond are lost without a word",
                n,
                f"import torch\nsubject(torch.zeros(1, {n + 5}, {view.dim})).shape",
            )
        except NotAskedError:
            return f"; it refuses more than {n:,}"
    return ""


def _grid_apart(inquiry: AddedInquiry) -> Answer:
    assert inquiry.view.grid is not None
    table = inquiry.view.added()[0].double()
    show = f"import torch\nsubject(torch.zeros(1, {len(table)}, {inquiry.view.dim}))"
    lost = rows.broken(table, torch.arange(len(table)), "the encoding", lambda p, q: show)
    if lost is not None:
        return lost
    different = len((table * 1e6).round().unique(dim=0))
    if different < len(table):
        return fault(
            "positions-shared",
            "wrong",
            f"{len(table)} points of a grid of {inquiry.view.grid} receive {different} different "
            "encodings",
            different,
            expected=len(table),
        )
    return f"{different} points of the grid, all different"


@question(essential=True, after=(*NO_ORDER, *NO_STATE))
def same_at_another_length(inquiry: AddedInquiry) -> Answer:
    """Does a position receive the same in a short row and in a long one?"""
    view = inquiry.view
    if view.fixed:
        raise NotAskedError(f"it takes rows of {view.seq} tokens alone")
    long = view.longest(40)
    short = max(2, long // 2)
    far = (view.rows(long)[:short] - view.rows(short)).abs().max().item()
    if far < ROUNDING and len(inquiry.table) > long:
        long = len(inquiry.table)
        far = (inquiry.table[:short] - view.rows(short)).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart between {short} and {long} tokens"
    if _leaves_a_class_token(inquiry, short, long):
        raise NotAskedError("the last of its tokens receives nothing, as one behind all patches")
    return fault(
        "depends-on-length",
        "wrong",
        f"position by position, {short} and {long} tokens receive encodings up to {far:.3g} apart",
        far,
        "import torch\n"
        f"a, b = (subject(torch.zeros(1, n, {view.dim})) for n in ({short}, {long}))\n"
        f"(a - b[:, :{short}]).abs().max()",
    )


def _leaves_a_class_token(inquiry: AddedInquiry, short: int, long: int) -> bool:
    """Whether only the last token differs, by nothing that is added, behind a square's patches."""
    if inquiry.square is None and inquiry.patches is None:
        return False
    many, few = inquiry.view.rows(long), inquiry.view.rows(short)
    others = (many[: short - 1] - few[:-1]).abs().max().item()
    return others < ROUNDING and not many[-1].any() and not few[-1].any()


@question(essential=True, after=(*NO_LENGTH, *NO_STATE))
def decodes_as_it_prefills(inquiry: AddedInquiry) -> Answer:
    """Does a token behind a cache receive what it does in the whole row?"""
    view = inquiry.view
    if not view.moves:
        raise NotAskedError("the first position cannot be said")
    whole = view.rows(20)
    starts = (0, 1, 7, 19)
    steps = torch.stack([_step(view, p) for p in starts])
    far = (steps - whole[list(starts)]).abs().max().item()
    if far < ROUNDING:
        return f"{far:.1g} apart at positions 0, 1, 7, 19"
    for shift in (1, -1):
        other = torch.stack([_step(view, p + shift) for p in starts[2:]])
        if (other - whole[list(starts[2:])]).abs().max() < ROUNDING:
            return fault(
                "off-by-one-after-cache",
                "wrong",
                f"behind a cache token p receives what token p − {shift} does in the whole row "
                f"({far:.3g} off)".replace("− -1", "+ 1"),
                far,
                "import torch\n"
                f"x = torch.zeros(1, 20, {view.dim})\n"
                f"# {_call(inquiry)} of x[:, 7:8] at 7 against subject(x)[:, 7:8]",
            )
    return fault(
        "decoding-differs-from-prefill",
        "wrong",
        f"tokens given one by one receive encodings up to {far:.3g} away from those of the row",
        far,
        "import torch\n"
        f"x = torch.zeros(1, 20, {view.dim})\n"
        f"# {_call(inquiry)} of x[:, 7:8] at 7 against subject(x)[:, 7:8]",
    )


def _step(view: Added, position: int) -> Tensor:
    return view.added(1, positions=torch.tensor([position]))[0, 0].double()


@question(after=NO_LENGTH)
def padding_moves_nothing(inquiry: AddedInquiry) -> Answer:
    """Do padding tokens around a row leave the encodings of its tokens as they are?"""
    masked = inquiry.view.masked
    if masked is None:
        raise NotAskedError("it is told of no padding mask")
    thing, view = inquiry.view.subject.fresh(), inquiry.view
    seq, pad = 8, 3
    unsaid = view.unsaid or view.run  # a mask alone is beside it, never positions
    plain = unsaid(view.subject.fresh(), torch.zeros(1, seq, view.dim), None)[0].double()
    rows = {
        "in a row with a mask and no padding": (":0", slice(0, seq)),
        f"behind {pad} padding tokens on the left": (f":{pad}", slice(pad, seq)),
        f"before {pad} padding tokens on the right": (f"-{pad}:", slice(seq - pad)),
    }
    mask = torch.zeros(len(rows), seq, dtype=torch.long)
    for row, (_, real) in zip(mask, rows.values(), strict=True):
        row[real] = 1
    apart, allowed = {}, ROUNDING * max(1.0, view.scale or 0.0)
    for beside, x in (("", torch.zeros(seq, view.dim)), (", beside content", _content(view, seq))):
        made = masked(thing, x.expand(len(rows), -1, -1).clone(), mask).double()
        for row, (where, (padding, real)) in zip(made, rows.items(), strict=True):
            added = (row - (view.scale or 0.0) * x.double())[real]
            off = (added - plain[: len(added)]).abs().max().nan_to_num(math.inf).item()
            apart[where + beside, padding] = off
    wrong = [place for place, off in apart.items() if off >= allowed]
    if not wrong:
        return f"{max(apart.values()):.1g} apart around {pad} padding tokens"
    (where, padding), far = wrong[0], apart[wrong[0]]
    return fault(
        "padding-shifts-positions",
        "wrong",
        f"{where}, tokens receive encodings up to {far:.3g} away from those without a mask",
        far,
        "import torch\n"
        f"x, mask = torch.{'randn' if 'content' in where else 'zeros'}(1, {seq}, {view.dim}), "
        f"torch.ones(1, {seq}).long()\n"
        f"mask[:, {padding}] = 0  # where it is 1, subject(x, mask) - x against the first rows of "
        "subject(x) - x",
    )


def _content(view: Added, seq: int) -> Tensor:
    return torch.randn(seq, view.dim, generator=torch.Generator().manual_seed(12))
