"""Questions to all: what calls leave behind, what other ways to call change, what is trained."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import asking, guarded
from posenc.audit.questions.asking import ROUNDED, Answer, Way, compared, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_STATE, fault
from posenc.audit.questions.rows import apart
from posenc.audit.report import NotAskedError
from posenc.audit.signatures import parameters_of

LINE = 1e-4  # what float32 may be away from a straight line, as a share of all numbers
CONTENT = "what it is given"

Given = tuple[Tensor, Tensor | None]  # content, and its positions where these are said


@question()
def leaves_its_input_alone(q: Any) -> Answer:
    """Is what it is given after the call what it was before?"""
    seen: dict[str, float] = {}
    with asking(changes=seen):
        q.whole(q.drawn(q.content(q.most(6))))
    needed(seen, "it takes no tensor")
    name, far = max(seen.items(), key=lambda item: item[1])
    if far == 0:
        return f"not a bit of {', '.join(seen)} changed"
    return fault("input-written", f"the tensor given as {name} changes by up to {far:.3g}", far)


@question()
def keeps_no_state(q: Any) -> Answer:
    """Does a call leave no trace in the next: not its length, its dtype or its positions?"""
    asked = 0
    for name, before, then in _after_others(q):
        used, (x, at) = q.view.subject.fresh(), before
        try:
            clean = q.whole(*then)
            q.whole(x, at, used)
        except NotAskedError:  # what it has not answered leaves no trace
            continue
        where = "" if at is None else " at other positions"
        said = f"after {x.shape[-2]:,} tokens in {x.dtype}{where}, {then[0].shape[-2]} in float32"
        try:
            again = q.whole(*then, by=used)
        except NotAskedError as reason:
            return fault(name, f"{said} are refused: {reason}")
        off, asked = apart(again, clean), asked + 1
        if off > 0 or again.dtype != clean.dtype:
            said += f" come out as {again.dtype}, up to {off:.3g} away from a fresh one"
            return fault(name, said, off or 1.0)
    needed(asked, "it took none of the calls between")
    return f"bit for bit the same after {asked} other calls"


def _after_others(q: Any) -> Iterator[tuple[str, Given, Given]]:
    """Faults, and pairs of calls of which the second must not know of the first."""
    seq, far = q.most(29), q.longest
    x, line, other = q.content(seq), torch.arange(seq), min(100, far)
    yield "state-between-calls", (x, None), (x, None)
    if not q.view.fixed:
        yield "history-changes-result", (q.content(far), None), (x, None)
        yield "state-between-calls", (q.content(max(2, seq // 2)), None), (x, None)
        yield "state-between-calls", (q.content(other // 2), None), (q.content(other), None)
        if q.view.moves:
            yield "state-between-calls", (x, line + 5), (x, line)
        if q.view.moves not in ("", "offset"):
            same_ends = torch.cat((line[:1], line[1:-1] // 2, line[-1:]))
            yield "state-between-calls", (x, same_ends), (x, line)
    for dtype in (torch.bfloat16, torch.float16):
        yield "first-dtype-cached", (x.to(dtype), None), (x, None)


@question(after=(*NO_LENGTH, *NO_STATE, "gradient-cut"))
def same_however_it_is_given(q: Any) -> Answer:
    """Do tokens get the same in larger batches, in training and in other dtypes?"""
    x = q.content(q.most(9), q.batch(2), seed=11)
    plain, some, left = q.whole(x), q.drawn(x), ""
    ways = [*(_batches(q, x, plain) if x.ndim > 2 else ()), *q.own_ways(x, plain)]
    thing = training(q.view.subject.fresh())

    def trained(number: int) -> Tensor:
        torch.manual_seed(number)
        return q.whole(some, by=thing)

    if isinstance(thing, nn.Module):
        if torch.equal(trained(0), trained(1)):
            ways.append(("in training", q.dense, lambda: (trained(0), q.whole(some))))
        else:
            left = "; not in training, where it differs by chance"
    seen = x if x.any() else plain[plain.isfinite()]
    scale = max(1.0, seen.abs().max().item())
    ways = [(name, allowed * scale, call) for name, allowed, call in ways]
    words = "away from the same at the same positions"
    answer = compared(ways, "depends-on-how-it-is-given", words)
    return answer + left if isinstance(answer, str) else answer


def _batches(q: Any, x: Tensor, plain: Tensor) -> Iterator[Way]:
    """In larger batches, and in other dtypes."""

    def batch(size: int) -> tuple[Tensor, Tensor]:
        rows = torch.arange(size) % len(x)
        return q.whole(x[rows]), plain[rows]

    def narrow(dtype: torch.dtype, rows: int | None = None) -> tuple[Tensor, Tensor]:
        return q.whole(x.to(dtype))[..., :rows, :], plain[..., :rows, :]

    yield "in a batch of 3", q.dense, partial(batch, 3)
    yield "in a batch of 5", q.dense, partial(batch, 5)
    yield "in float64", ROUNDED, partial(narrow, torch.float64)
    yield "in float16", ROUNDED, partial(narrow, torch.float16)
    # of later tokens, positions in 16 bits are a loss, which is asked for elsewhere
    yield "in bfloat16", ROUNDED, partial(narrow, torch.bfloat16, 3)


def training(thing: Any) -> Any:
    """The thing in training mode, with dropout set to 0."""
    for part in thing.train().modules() if isinstance(thing, nn.Module) else ():
        is_dropout = "drop" in type(part).__name__.lower()
        for name, value in list(vars(part).items()):
            drops = "drop" in name.lower() or (name == "p" and is_dropout)
            if drops and isinstance(value, float) and 0 < value < 1:
                setattr(part, name, 0.0)
    return thing


@question()
def gradients_flow(q: Any) -> Answer:
    """Does every parameter get a gradient in training, and the input too?"""
    thing = training(q.view.subject.fresh())
    passes = q.view.kind == "rotary" or getattr(q.view, "scale", None) is not None
    x = q.drawn(q.content(q.most(6))).requires_grad_(passes)
    said: Answer = ""
    for index in reversed(range(len(getattr(q.view, "sides", "q")))):
        call = lambda x, index=index: q.called(x, by=thing)[index]  # noqa: E731
        said = gradients(call, x, {} if index else q.learned(thing), _of_ids(q, thing))
        if not isinstance(said, str):
            break
    return said


def gradients(
    call: Callable[[Tensor], Tensor],
    x: Tensor,
    learned: dict[str, nn.Parameter],
    otherwise: Callable[[], Tensor] | None = None,
) -> Answer:
    """Whether a gradient reaches all that is learned, by ``otherwise`` too, and content."""
    needed(learned or x.requires_grad, "it has no parameters and takes no content")
    with asking(gradients=True):
        made = call(x)
        beside = 0.0 if otherwise is None else otherwise().sum()
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
    named: dict[str, Tensor] = learned | ({CONTENT: x} if x.requires_grad else {})
    total = (made * weights.to(made.dtype)).sum() + beside
    reach = lambda: torch.autograd.grad(total, [*named.values()], allow_unused=True)  # noqa: E731
    each = guarded(reach) if made.requires_grad else [None] * len(named)
    found: dict[str, Any] = dict(zip(named, each, strict=True))
    lacking = [name for name, g in found.items() if g is None or not g.any()]
    if without := [name for name in lacking if name in learned]:
        said = f"no gradient reaches {', '.join(without)}"
        return fault("parameter-without-gradient", said, len(without))
    if lacking:
        return fault("gradient-cut", f"no gradient reaches {CONTENT}", 0.0, expected=1.0)
    if lost := [name for name, g in found.items() if not g.isfinite().all()]:
        return fault("not-a-number", f"gradients of {', '.join(lost)} are no numbers", len(lost))
    if x.requires_grad and (off := _gradient_off(call, x, found[CONTENT], made, weights)):
        return fault("gradient-otherwise", f"the gradient is off by {off:.3g} of its size", off)
    return f"{len(learned)} parameters" + ", and content" * x.requires_grad


def _of_ids(q: Any, thing: Any) -> Callable[[], Tensor] | None:
    """A call with ids of tokens, whose own rows content stands for."""
    parameters = parameters_of(thing) if q.view.text.startswith("subject(") else []
    named = {p.role: p.name for p in parameters if not p.required}
    if "ids" not in named:
        return None
    ids = torch.arange(q.most(6))[None] % 3
    return lambda: guarded(lambda: thing(**{named["ids"]: ids}))


def _gradient_off(
    call: Callable[[Tensor], Tensor], x: Tensor, gradient: Tensor, made: Tensor, weights: Tensor
) -> float:
    """By which share a gradient misses the change along a step; 0 where that is no line."""
    step = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    x, weights = x.detach(), weights.double()
    along = lambda share: call(x + share * step).detach().double() * weights  # noqa: E731
    there, back, again = along(1.0), along(-1.0), along(0.0)
    size = there.abs().sum().item()
    bent = (there + back - 2 * again).abs().sum().item() > LINE * size
    if bent or not torch.equal(again, made.detach().double() * weights):
        return 0.0
    change = (there - back).sum().item() / 2
    off = abs((gradient.double() * step).sum().item() - change)
    return off / size if off > LINE * size else 0.0
