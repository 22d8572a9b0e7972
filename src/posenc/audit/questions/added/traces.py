"""What does a call leave behind, and what does a cast?"""

from inspect import isfunction
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import guarded
from posenc.audit.questions import rows
from posenc.audit.questions.added.inquiry import AddedInquiry
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.traces import (
    SHOWN,
    after_other_positions,
    gradients,
    state,
    untouched,
)
from posenc.audit.questions.ways import TABLE_BEFORE, autocast, autocast_fault, training
from posenc.audit.report import NotAskedError
from posenc.audit.signatures import parameters_of


@question()
def leaves_its_input_alone(inquiry: AddedInquiry) -> Answer:
    """Is the input after the call what it was before?"""
    view = inquiry.view
    return untouched(lambda: view.call(torch.randn(1, view.seq, view.dim)))


@question()
def keeps_no_state(inquiry: AddedInquiry) -> Answer:
    """Does a call leave no trace in the next: not its length, nor its dtype?"""
    view = inquiry.view
    seq = view.seq if view.fixed else view.longest(29)
    if view.moves and not view.fixed and seq > 5:
        some = seq - 5

        def placed(at: Tensor, by: Any) -> Tensor:
            if view.moves == "offset" and bool((at.diff() != 1).any()):
                raise NotAskedError("it takes the first position alone")
            if len(at) == 1:
                return view.added(positions=at[0], by=by)
            return view.call(torch.zeros(*at.shape, view.dim), at, by)

        elsewhere = after_other_positions(
            placed,
            view.subject.fresh,
            some,
            f"x = torch.zeros(1, {some}, {view.dim})",
        )
        if elsewhere is not None:
            return elsewhere
    return state(
        lambda n, dtype, by: view.added(n, dtype=dtype, by=by)[0],
        view.subject.fresh,
        seq,
        view.fixed or view.longest(inquiry.length * 2) <= seq,
        view.longest(min(2 * inquiry.length, 16_384)),
        view.dim,
    )


@question(after=(*NO_LENGTH, "not-a-number", "positions-in-16-bits", "first-dtype-cached"))
def survives_a_cast(inquiry: AddedInquiry) -> Answer:
    """After ``.bfloat16()``, is it as good as a table rounded once?"""
    view, module = inquiry.view, inquiry.view.subject.fresh()
    if not isinstance(module, nn.Module):
        raise NotAskedError("it is no module")
    if inquiry.learns:
        raise NotAskedError("it has parameters, which a cast must round")
    seq = view.longest(min(inquiry.length, 4096))
    exact = view.rows(seq)
    cast = view.added(seq, dtype=torch.bfloat16, by=module.bfloat16())[0].double()
    off = (cast - exact).abs().max().item()
    if off < 4 * 2**-8 * exact.abs().max().item():
        return f"up to {off:.1g} off over {seq:,} positions, as one rounding is"
    return fault(
        "cast-breaks-it",
        "lossy",
        f"after .bfloat16() encodings of {seq:,} positions are up to {off:.3g} off; one rounding "
        "costs 0.004",
        off,
        "import copy, torch\n"
        "half = copy.deepcopy(subject).bfloat16()\n"
        f"half(torch.zeros(1, {seq}, {view.dim}).bfloat16()) - subject(torch.zeros(1, {seq}, "
        f"{view.dim}))",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits"))
def survives_autocast(inquiry: AddedInquiry) -> Answer:
    """Inside autocast to bfloat16, do float32 embeddings receive what they do outside of it?"""
    view = inquiry.view
    seq = view.longest(min(inquiry.length, 4096))
    if view.scale is None and isfunction(view.subject.fresh()):
        raise NotAskedError(TABLE_BEFORE)
    exact, built = view.rows(seq), view.subject.fresh()
    with autocast():
        made = view.rows(seq, built)
    off = (made - exact).abs().max().item()
    if off < 5 * 2**-8 * max(1.0, exact.abs().max().item()):
        return f"up to {off:.1g} off over {seq:,} positions"
    return autocast_fault(
        f"encodings of {seq:,} positions are up to {off:.3g} off",
        off,
        f"x = torch.zeros(1, {seq}, {view.dim})",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "not-a-number", "input-written"))
def keeps_the_dtype(inquiry: AddedInquiry) -> Answer:
    """Do bfloat16 embeddings come back as bfloat16, with positions apart as far as they can be?"""
    view = inquiry.view
    seq = view.longest(min(inquiry.length, 2048))
    made = view.added(seq, dtype=torch.bfloat16)[0]
    exact = view.rows(seq)
    best, own = rows.distinct_in(exact, torch.bfloat16), len(made.unique(dim=0))
    off = (made.double() - exact).abs().max().item()
    coarse = not off <= 5 * 2**-8 * max(1.0, exact.abs().max().item())  # no number is coarse, too
    fewer = own < best - max(2, best // 50) and view.grid is None
    if made.dtype == torch.bfloat16 and (coarse or fewer):
        return fault(
            "positions-in-16-bits",
            "lossy",
            f"in bfloat16 {seq:,} positions receive {own:,} different encodings, up to {off:.3g} "
            f"off; rounding the table once leaves {best:,}",
            off,
            "import torch\n"
            f"x = torch.zeros(1, {seq}, {view.dim}, dtype=torch.bfloat16)\n"
            "len(subject(x)[0].unique(dim=0))",
            best,
        )
    if view.scale is not None and made.dtype != torch.bfloat16:
        return fault(
            "dtype-changed",
            "note",
            f"bfloat16 embeddings come back as {str(made.dtype).removeprefix('torch.')}: the rest "
            "of the model runs in that unless it is cast",
            1.0,
        )
    return f"{own:,} different rows of {seq:,}"


@question()
def gradients_flow(inquiry: AddedInquiry) -> Answer:
    """Does every parameter get a gradient in training, and the input too?"""
    view, thing = inquiry.view, training(inquiry.view.subject.fresh())
    seq = view.seq if view.fixed else view.longest(16)
    x = torch.randn(1, seq, view.dim, requires_grad=True)
    parameters = parameters_of(thing) if view.text.startswith("subject(") else []
    named = {p.role: p.name for p in parameters if not p.required}
    shown, otherwise = SHOWN, None
    if view.layout == "bsd" and "x" in named:
        shown = f"subject({named['x']}=torch.randn(1, {seq}, {view.dim}))"
    if "ids" in named and view.scale is not None:  # whose own rows content stands for
        ids = torch.arange(seq)[None] % 3
        otherwise = lambda: guarded(lambda: thing(**{named["ids"]: ids}))  # noqa: E731
    content = x if view.scale is not None else None
    call = lambda: view.run(thing, x, None)  # noqa: E731
    return gradients(thing, call, content, shown=shown, otherwise=otherwise)
