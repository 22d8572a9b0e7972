"""What a bias does to scores, and what a call leaves behind."""

from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.identity.lines import HIDDEN
from posenc.audit.questions.asking import NO_LENGTH, NO_STATE, Answer, fault, question
from posenc.audit.questions.bias.inquiry import BiasInquiry
from posenc.audit.questions.traces import after_calls, apart, gradients
from posenc.audit.questions.ways import by_chance, training
from posenc.audit.report import NotAskedError

SIZE = 32.0
"""How large scores are that are handed on."""


@question()
def keeps_no_state(q: BiasInquiry) -> Answer:
    """Does a call leave no trace in the next?"""
    view, seq = q.view, q.seq
    cases = (
        ("state-between-calls", seq, torch.float32, seq),
        ("first-dtype-cached", seq, torch.bfloat16, seq),
        ("history-changes-result", 64, torch.float32, seq),
        ("history-changes-result", q.seen.shape[-1], torch.float32, seq),  # of a shorter table
        ("state-between-calls", 5, torch.float32, seq),
    )
    return after_calls(lambda n, dtype, by: view.bias(n, n, dtype, by), view.subject.fresh, cases)


@question(after=("input-written", "state-between-calls", "history-changes-result"))
def hands_scores_on(q: BiasInquiry) -> Answer:
    """Do scores come out as they came, with the bias added, and gradients with them?"""
    view, seq = q.view, q.seq
    if "scores" not in view.takes:
        raise NotAskedError("it takes no scores")
    thing, plain = view.subject.fresh(), view.bias(seq, seq)
    scores, seen = _drawn(q, seq), plain.isfinite() & (plain > -HIDDEN)
    made = view.run(thing, seq, seq, torch.float32, scores.clone()).expand_as(plain)
    if torch.equal(made[seen], plain[seen]):
        return "it gives the bias alone"
    for batch in (scores.repeat(3, 1, 1, 1), _drawn(q, seq, 3)):
        if (off := _apart_in_a_batch(q, batch)) > 1e-5 * SIZE:
            said = f"rows of a batch of scores come out up to {off:.3g} away from themselves alone"
            return fault("scores-changed", said, off)
    off = (made - scores[0] - plain)[seen].abs().max().item()
    if off > 1e-5 * SIZE:
        said = f"scores of size {SIZE:g} come out up to {off:.3g} away from scores + bias"
        return fault("scores-changed", said, off)
    x = scores.requires_grad_()
    call = lambda: view.run(thing, seq, seq, torch.float32, x).masked_fill(~seen, 0.0)  # noqa: E731
    said = gradients(None, call, x)
    return said if not isinstance(said, str) else f"scores + bias within {off:.1g}"


def _drawn(q: BiasInquiry, seq: int, rows: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(3)
    return SIZE * torch.randn(rows, q.view.heads, seq, seq, generator=generator)


def _apart_in_a_batch(q: BiasInquiry, rows: Tensor) -> float:
    """How far rows of scores come out from what each is alone; 0 where a batch is refused."""
    seq = rows.shape[-1]
    run = lambda x: q.view.run(q.view.subject.fresh(), seq, seq, torch.float32, x)  # noqa: E731
    alone = [run(row.clone()) for row in rows.split(1)]
    try:
        made = run(rows.clone())
    except NotAskedError:
        return 0.0
    return apart(made, torch.stack(alone)) if made.shape == rows.shape else 0.0


@question(after=(*NO_LENGTH, *NO_STATE))
def same_in_training(q: BiasInquiry) -> Answer:
    """Is the bias in training, with dropout at 0, what it is otherwise?"""
    view, thing = q.view, q.view.subject.fresh()
    if not isinstance(thing, nn.Module):
        raise NotAskedError("it has no training")
    seq, trained = q.seq, training(thing)
    content = torch.randn(1, view.heads, seq, seq, generator=torch.Generator().manual_seed(7))
    runs: list[Any] = [lambda thing: view.bias(seq, seq, by=thing)]
    if "scores" in view.takes:
        runs.append(lambda thing: view.run(thing, seq, seq, torch.float32, content))
    if any(by_chance(lambda run=run: run(trained)) for run in runs):
        raise NotAskedError("in training it differs by chance")
    off, plain = max(apart(run(trained), run(view.subject.fresh())) for run in runs), q.given
    if off > 1e-5 * max(1.0, plain[plain.isfinite()].abs().max().item()):
        said = f"in training the bias comes out up to {off:.3g} otherwise"
        return fault("depends-on-how-it-is-given", said, off)
    return f"{off:.1g} apart"
