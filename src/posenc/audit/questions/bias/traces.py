"""What does a call leave behind?"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.bias import SEQ, BiasView
from posenc.audit.identity.lines import HIDDEN
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.traces import apart, gradients, untouched
from posenc.audit.questions.ways import by_chance, training
from posenc.audit.report import NotAskedError


@question()
def leaves_its_input_alone(inquiry: BiasInquiry) -> Answer:
    """Is what it was given after the call what it was before?"""
    seq = inquiry.view.fixed or SEQ
    return untouched(lambda: inquiry.view.bias(seq, seq))


@question()
def keeps_no_state(inquiry: BiasInquiry) -> Answer:
    """Does a call leave no trace in the next?"""
    view = inquiry.view
    seq = view.fixed or SEQ
    clean, asked = view.bias(seq, seq), 0
    for name, dtype, before in (
        ("state-between-calls", torch.float32, seq),
        ("first-dtype-cached", torch.bfloat16, seq),
        ("history-changes-result", torch.float32, 64),
        ("history-changes-result", torch.float32, inquiry.seen.shape[-1]),  # of a shorter table
        ("state-between-calls", torch.float32, 5),
    ):
        used = view.subject.fresh()
        try:
            view.bias(before, before, dtype, by=used)
        except NotAskedError:  # which the bias may do: what it has not answered leaves no trace
            continue
        try:
            again = view.bias(seq, seq, by=used)
        except NotAskedError as reason:
            return fault(
                name,
                "wrong",
                f"after a call with {before} tokens, {seq} tokens are refused: {reason}",
                1.0,
                inquiry.shown(f"{seq}, {seq}"),
            )
        off, asked = apart(again, clean), asked + 1
        if off > 0 or again.dtype != clean.dtype:
            return fault(
                name,
                "wrong",
                f"after a call with {before} tokens in {str(dtype).removeprefix('torch.')}, {seq} "
                f"tokens receive a bias up to {off:.3g} away from a fresh one",
                off or 1.0,
                inquiry.shown(f"{seq}, {seq}"),
            )
    if not asked:
        raise NotAskedError("it took none of the calls between")
    return f"bit for bit the same after {asked} other calls"


@question(after=("input-written", "state-between-calls", "history-changes-result"))
def hands_scores_on(inquiry: BiasInquiry) -> Answer:
    """Do scores come out as they came, with the bias added, and gradients with them?"""
    view = inquiry.view
    if not view.takes_scores:
        raise NotAskedError("it takes no scores")
    seq, thing = view.fixed or SEQ, view.subject.fresh()
    plain = view.bias(seq, seq)
    scores = _drawn(view, seq, 1)
    made = view.run(thing, seq, seq, torch.float32, scores.clone()).expand_as(plain)
    seen = torch.isfinite(plain) & (plain > -HIDDEN)
    if torch.equal(made[seen], plain[seen]):
        return "it gives the bias alone"
    several = (
        ("equal rows of a batch of scores come out up to {} apart", scores.repeat(3, 1, 1, 1)),
        ("rows of a batch come out up to {} away from themselves alone", _drawn(view, seq, 3)),
    )
    for words, batch in several:
        if (off := _apart_in_a_batch(inquiry, batch)) > 1e-5 * SIZE:
            return fault(
                "scores-changed",
                "wrong",
                words.format(f"{off:.3g}"),
                off,
                "import torch\n"
                f"scores = torch.randn(3, {view.heads}, {seq}, {seq})\n"
                "# subject(scores) against torch.cat([subject(row) for row in scores.split(1)])",
            )
    off = (made - scores[0] - plain)[seen].abs().max().item()
    if off > 1e-5 * SIZE:
        return fault(
            "scores-changed",
            "wrong",
            f"scores of size {SIZE:g} come out up to {off:.3g} away from scores + bias",
            off,
            "import torch\n"
            f"scores = {SIZE:g} * torch.randn(1, {view.heads}, {seq}, {seq})\n"
            "(subject(scores) - subject(0 * scores) - scores).abs().max()",
        )
    x = scores.requires_grad_()
    call = lambda: view.run(thing, seq, seq, torch.float32, x).masked_fill(~seen, 0.0)  # noqa: E731
    said = gradients(None, call, x)
    return said if not isinstance(said, str) else f"scores + bias within {off:.1g}"


def _drawn(view: BiasView, seq: int, rows: int) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return SIZE * torch.randn(rows, view.heads, seq, seq, generator=generator)


def _apart_in_a_batch(inquiry: BiasInquiry, rows: Tensor) -> float:
    """How far rows of scores come out from what each is alone; 0 where a batch is refused."""
    view, seq = inquiry.view, rows.shape[-1]
    alone = [
        view.run(view.subject.fresh(), seq, seq, torch.float32, row.clone())
        for row in rows.split(1)
    ]
    try:
        made = view.run(view.subject.fresh(), seq, seq, torch.float32, rows.clone())
    except NotAskedError:
        return 0.0
    return apart(made, torch.stack(alone)) if made.shape == rows.shape else 0.0


SIZE = 32.0
"""How large scores are that are handed on."""


@question(after=(*NO_LENGTH, *NO_STATE))
def same_in_training(inquiry: BiasInquiry) -> Answer:
    """Is the bias in training, where nothing is dropped, what it is otherwise?"""
    view, thing = inquiry.view, inquiry.view.subject.fresh()
    seq = view.fixed or SEQ
    if not isinstance(thing, nn.Module):
        raise NotAskedError("it has no training")
    trained, plain = training(thing), view.bias(seq, seq)
    content = torch.randn(1, view.heads, seq, seq, generator=torch.Generator().manual_seed(7))
    runs: list[Callable[[Any], Tensor]] = [lambda thing: view.bias(seq, seq, by=thing)]
    if view.takes_scores:
        runs.append(lambda thing: view.run(thing, seq, seq, torch.float32, content))
    if any(by_chance(lambda run=run: run(trained)) for run in runs):
        raise NotAskedError("in training it differs by chance")
    off = max(apart(run(trained), run(view.subject.fresh())) for run in runs)
    if off > 1e-5 * max(1.0, plain[plain.isfinite()].abs().max().item()):
        return fault(
            "depends-on-how-it-is-given",
            "wrong",
            f"in training the bias comes out up to {off:.3g} otherwise",
            off,
            f"import torch\nsubject.train()  # against subject.eval(), for {seq} queries and keys",
        )
    return f"{off:.1g} apart"


@question()
def gradients_flow(inquiry: BiasInquiry) -> Answer:
    """Does every parameter get a gradient in training?"""
    thing, seq = training(inquiry.view.subject.fresh()), inquiry.view.fixed or SEQ
    if not (isinstance(thing, nn.Module) and any(p.requires_grad for p in thing.parameters())):
        raise NotAskedError("it has no parameters")
    call = lambda: inquiry.view.bias(seq, seq, by=thing)  # noqa: E731
    if "." not in inquiry.view.text.split("(")[0]:
        return gradients(thing, call, None)
    # of a method of attention, whose other parameters belong to other methods
    for parameter in thing.parameters():
        parameter.requires_grad_(parameter.ndim == 2 and inquiry.view.heads in parameter.shape)
    return gradients(thing, call, None)
