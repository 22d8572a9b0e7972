"""What does a call leave behind, and what does a cast?"""

from inspect import isfunction
from typing import Any, cast

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.rotary_view import HEADS
from posenc.audit.questions.asking import (
    NO_LENGTH,
    NO_STATE,
    Answer,
    fault,
    question,
)
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.questions.traces import after_other_positions, gradients, state, untouched
from posenc.audit.questions.ways import TABLE_BEFORE, autocast, autocast_fault, training
from posenc.audit.report import NotAskedError

SEQ = 23


@question()
def leaves_its_input_alone(inquiry: RotaryInquiry) -> Answer:
    """Are queries, keys and positions after the call what they were before?"""
    view = inquiry.view
    x = torch.randn(1, HEADS, 6, view.dim)
    return untouched(lambda: view.both(x, x[:, : view.kv_heads].clone()))


@question()
def keeps_no_state(inquiry: RotaryInquiry) -> Answer:
    """Does a call leave no trace in the next: not its length, nor its dtype?"""
    view = inquiry.view
    content = torch.randn(1, 1, 1, view.dim, generator=torch.Generator().manual_seed(5))

    def call(seq: int, dtype: torch.dtype, by: Any) -> Tensor:
        return view.turned(content.expand(1, HEADS, seq, -1).to(dtype).contiguous(), by=by)[0, 0]

    if view.moves:

        def placed(at: Tensor, by: Any) -> Tensor:
            if view.moves == "offset" and bool((at.diff() != 1).any()):
                raise NotAskedError("it takes the first position alone")
            if len(at) > 1 and (view.moves != "rows" or view.layout in layouts.ONE_ROW):
                raise NotAskedError("it takes positions of one row")
            x = content.expand(len(at), HEADS, SEQ, -1).contiguous()
            return view.both(x, x[:, : view.kv_heads], at, by)[0]

        elsewhere = after_other_positions(
            placed,
            view.subject.fresh,
            SEQ,
            f"x = torch.zeros(1, {HEADS}, {SEQ}, {view.dim})",
        )
        if elsewhere is not None:
            return elsewhere
    longest = max(2 * (view.built_for or 0), inquiry.length + 1)
    far = min(longest, 2**23 // (view.dim * HEADS))
    return state(call, view.subject.fresh, SEQ, False, far, view.dim)


@question(
    after=(*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits", "first-dtype-cached")
)
def survives_a_cast(inquiry: RotaryInquiry) -> Answer:
    """After ``.bfloat16()``, are bfloat16 queries turned as well as before?"""
    view, module = inquiry.view, inquiry.view.subject.fresh()
    if not isinstance(module, nn.Module):
        raise NotAskedError("it is no module")
    if any(True for _ in module.parameters()):
        raise NotAskedError("it has parameters, which a cast must round")
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    at = [p for p in inquiry.far[0] if p < inquiry.length]
    fresh, probe = view.subject.fresh(), inquiry.shape.probe()
    narrow = module.bfloat16()
    exact, made = (
        [view.at(at, x, side, by) for side in view.sides]
        for x, by in ((probe, fresh), (probe.bfloat16(), narrow))
    )
    off, _, row = _farthest(made, exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    return fault(
        "cast-breaks-it",
        "lossy",
        f"after .bfloat16() a token at {at[row]:,} is turned up to {off:.3g} off; one rounding "
        "costs 0.004: what it keeps is rounded with the weights",
        off,
        "import copy, torch\n"
        "half = copy.deepcopy(subject).bfloat16()\n"
        f"# compare half and subject at position {at[row]}",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits"))
def survives_autocast(inquiry: RotaryInquiry) -> Answer:
    """Inside autocast to bfloat16, are float32 queries turned as they are outside of it?"""
    view = inquiry.view
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    at, probe = [p for p in inquiry.far[0] if p < inquiry.length], inquiry.shape.probe()
    if view.applied and not view.fed and isfunction(view.subject.fresh()):
        raise NotAskedError(TABLE_BEFORE)
    exact = [view.at(at, probe, side) for side in view.sides]
    built = [view.subject.fresh() for _ in view.sides]
    with autocast():
        made = [view.at(at, probe, side, by) for side, by in zip(view.sides, built, strict=True)]
    off, whose, row = _farthest(made, exact)
    if off < ROUNDED:
        return f"up to {off:.1g} off to position {at[-1]:,}"
    return autocast_fault(
        f"{whose} at {at[row]:,} are turned up to {off:.3g} otherwise than outside",
        off,
        f"x = torch.ones(1, 4, {at[row] + 1}, {view.dim})",
    )


@question(after=(*NO_LENGTH, *NO_STATE, "not-a-number", "positions-in-16-bits"))
def keeps_positions_in_16_bits(inquiry: RotaryInquiry) -> Answer:
    """Are bfloat16 queries turned as float32 ones are, up to their own rounding?"""
    view = inquiry.view
    if not inquiry.shape.firsts:
        raise NotAskedError("nothing turns")
    at = [p for p in inquiry.far[0] if p < inquiry.length]
    probe = inquiry.shape.probe()
    narrow, wide = (
        [view.at(at, x, side) for side in view.sides] for x in (probe.bfloat16(), probe)
    )
    off, whose, row = _farthest(narrow, wide)
    if off < ROUNDED:
        came = view.turned(torch.ones(1, HEADS, 2, view.dim, dtype=torch.bfloat16)).dtype
        if came != torch.bfloat16:
            return fault(
                "dtype-changed",
                "note",
                f"bfloat16 queries come back as {str(came).removeprefix('torch.')}: attention runs "
                "in that unless they are cast",
                1.0,
            )
        return f"up to {off:.1g} off to position {at[-1]:,}, as one rounding is"
    return fault(
        "positions-in-16-bits",
        "lossy",
        f"bfloat16 {whose} at {at[row]:,} are turned up to {off:.3g} away from float32 ones: "
        "positions or angles are held in bfloat16, where 256 and 257 are one number",
        off,
        "import torch\n"
        f"x = torch.ones(1, 4, 300, {view.dim})\n"
        "# subject(x) against subject(x.bfloat16())",
    )


ROUNDED = 5 * 2.0**-8
"""What rounding to bfloat16 costs, of the size of what is rounded."""


def _farthest(made: list[Tensor], exact: list[Tensor]) -> tuple[float, str, int]:
    """How far rows of queries and keys are off, beside their size; whose and which are farthest.

    Each side is held to its own size, and the sizes of both together to what they were: those of
    xPos grow and shrink, and cancel in scores.
    """
    sizes = [
        [x.abs().amax(1, keepdim=True).clamp(min=1e-30) for x in side] for side in (made, exact)
    ]
    offs = [
        (x / own - y / theirs).abs().amax(1)
        for x, y, own, theirs in zip(made, exact, *sizes, strict=True)
    ]
    both = [torch.stack(part).log().mean(0) * 2 for part in sizes]
    offs[0] = offs[0].maximum((both[0] - both[1]).expm1().abs().squeeze(1))
    side = max(range(len(offs)), key=lambda index: offs[index].max().nan_to_num(torch.inf).item())
    row = int(offs[side].nan_to_num(torch.inf).argmax())
    return offs[side][row].item(), ("queries", "keys")[side], row


@question()
def gradients_flow(inquiry: RotaryInquiry) -> Answer:
    """Does every parameter get a gradient in training, and the input too?"""
    view, thing = inquiry.view, training(inquiry.view.subject.fresh())
    x = torch.randn(1, HEADS, 6, view.dim, requires_grad=True)
    at = torch.arange(6)[None]
    both = lambda: view.run(thing, x, x[:, : view.kv_heads], at)  # noqa: E731
    said = gradients(thing, lambda: both()[0], x)
    if isinstance(said, str) and view.sees_keys:
        of_keys = gradients(None, lambda: cast("Tensor", both()[1]), x)
        return said if isinstance(of_keys, str) else of_keys
    return said
