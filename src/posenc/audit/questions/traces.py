"""What a call leaves behind, asked alike in every place."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import guarded, keeping_gradients, watching
from posenc.audit.questions.asking import (
    Answer,
    fault,
)
from posenc.audit.report import NotAskedError


def untouched(call: Callable[[], object]) -> Answer:
    """The same for any place."""
    with watching() as seen:
        call()
    if not seen:
        raise NotAskedError("it takes no tensor")
    name, far = max(seen.items(), key=lambda item: item[1])
    if far == 0:
        return f"not a bit of {', '.join(seen)} changed"
    return fault(
        "input-written",
        "wrong",
        f"the tensor given as {name} changes by up to {far:.3g}",
        far,
        "import torch\n"
        f"{name} = torch.randn(2, 7, 64); kept = {name}.clone()\n"
        f"subject({name}); ({name} - kept).abs().max()",
    )


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; infinite where one has a number and the other none.

    Example:
        >>> apart(torch.tensor([1.0, torch.nan]), torch.tensor([1.5, torch.nan]))
        0.5
        >>> apart(torch.tensor([1.0, torch.nan]), torch.tensor([1.0, 2.0]))
        inf
    """
    off = (one.double() - other.double()).abs()
    alike = (one == other) | one.isnan() & other.isnan()
    return off.masked_fill(alike, 0.0).nan_to_num(torch.inf, torch.inf).max().item()


def state(
    call: Callable[[int, torch.dtype, Any], Tensor],
    fresh: Callable[[], Any],
    seq: int,
    fixed: bool,
    far: int,
    dim: int,
) -> Answer:
    """The same for any place: ``call(seq, dtype, by)`` gives rows."""
    clean = {seq: call(seq, torch.float32, fresh())}
    longer = min(100, far)
    if not fixed and longer > seq:
        clean[longer] = call(longer, torch.float32, fresh())
    checked = []
    for name, dtype, before, then in (
        ("state-between-calls", torch.float32, seq, seq),
        ("history-changes-result", torch.float32, far, seq),
        ("state-between-calls", torch.float32, max(2, seq // 2), seq),
        ("state-between-calls", torch.float32, longer // 2, longer),
        ("first-dtype-cached", torch.bfloat16, seq, seq),
        ("first-dtype-cached", torch.float16, seq, seq),
    ):
        if then not in clean:
            continue
        if fixed and before != seq:
            continue
        used = fresh()
        try:
            call(before, dtype, used)
        except NotAskedError:
            continue
        try:
            again = call(then, torch.float32, used)
        except NotAskedError as reason:
            return fault(
                name,
                "wrong",
                f"after a call with {before:,} tokens, {then} tokens are refused: {reason}",
                1.0,
                "import torch\n"
                f"subject(torch.zeros(1, {before}, {dim}, dtype={dtype}))\n"
                f"subject(torch.zeros(1, {then}, {dim}))",
            )
        checked.append(name)
        off = apart(again, clean[then])
        if off > 0 or again.dtype != clean[then].dtype:
            kind = str(dtype).removeprefix("torch.")
            return fault(
                name,
                "wrong",
                f"after a call with {before:,} tokens in {kind}, {then} tokens in float32 come "
                f"out as {str(again.dtype).removeprefix('torch.')}, up to {off:.3g} away from a "
                "fresh one",
                off or 1.0,
                "import torch\n"
                f"subject(torch.zeros(1, {before}, {dim}, dtype={dtype}))\n"
                f"subject(torch.zeros(1, {then}, {dim}))  # against a fresh subject",
            )
    if not checked:
        raise NotAskedError("it took none of the calls between")
    return f"bit for bit the same after {len(checked)} other calls"


def after_other_positions(
    call: Callable[[Tensor, Any], Tensor], fresh: Callable[[], Any], seq: int, shown: str
) -> Answer | None:
    """A fault where as many tokens at other positions get what those before got.

    ``call(at, by)`` gives what tokens at positions ``[rows, seq]`` come to; ``shown`` is the line
    of a reproduction that makes a row of them. It may refuse any.
    """
    line = torch.arange(seq)
    mixed = torch.cat((line[:1], line[1:-1].flip(0), line[-1:]))  # first, last, sum as before
    fewer = torch.cat((line[:1], line[1:-1] // 2, line[-1:]))
    for words, before, then in (
        ("from position 5 on", line[None] + 5, line[None]),
        ("at the same positions in another order", mixed[None], line[None]),
        ("between the same first and last position", fewer[None], line[None]),
        ("whose second row has other positions", line.expand(2, -1), torch.stack((line, fewer))),
    ):
        used = fresh()
        try:
            clean = call(then, fresh())
            call(before, used)
            off = apart(call(then, used), clean)
        except NotAskedError:
            continue
        if off:
            return fault(
                "state-between-calls",
                "wrong",
                f"after a call with {seq} tokens {words}, as many from 0 on come out up to "
                f"{off:.3g} away from a fresh one",
                off,
                f"import torch\n{shown}\n# at positions {before.tolist()}, then at "
                f"{then.tolist()}, against a fresh subject",
            )
    return None


SHOWN = "subject(torch.randn(1, 16, 64))"


def gradients(
    thing: object,
    call: Callable[[], Tensor],
    x: Tensor | None,
    *,
    shown: str = SHOWN,
    otherwise: Callable[[], Tensor] | None = None,
) -> Answer:
    """The same for any place; ``shown`` is the call as Python.

    Parameters that ``otherwise`` trains, a call with other content, need no gradient here.
    """
    learned = dict(thing.named_parameters()) if isinstance(thing, nn.Module) else {}
    learned = {name: p for name, p in learned.items() if p.requires_grad}
    if not learned and x is None:
        raise NotAskedError("it has no parameters and takes no content")
    made = _with_gradients(call)
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
    wanted = [*learned.values(), *([x] if x is not None else [])]
    if not made.requires_grad:
        found: tuple[Tensor | None, ...] = (None,) * len(wanted)
    else:
        made_by = (made * weights.to(made.dtype)).sum()
        found = guarded(lambda: torch.autograd.grad(made_by, wanted, allow_unused=True))
    without = [n for n, g in zip(learned, found, strict=False) if g is None or not g.any()]
    if without and otherwise is not None:
        without = _untrained(otherwise, {name: learned[name] for name in without})
    if without:
        return fault(
            "parameter-without-gradient",
            "wrong",
            f"{', '.join(without)}: no gradient reaches it, so it is never trained",
            len(without),
            "import torch\n"
            f"out = {shown}; out.sum().backward()\n"
            "[n for n, p in subject.named_parameters() if p.grad is None]",
        )
    names = [*learned, "what it is given"]
    lost = [
        n for n, g in zip(names, found, strict=False) if g is not None and not g.isfinite().all()
    ]
    if lost:
        return fault(
            "not-a-number",
            "wrong",
            f"the gradient of {', '.join(lost)} is infinite or no number: one step of training "
            "makes all weights so",
            len(lost),
            "import torch\n"
            f"out = {shown}; out.sum().backward()\n"
            "[n for n, p in subject.named_parameters() if not p.grad.isfinite().all()]",
        )
    if x is not None and (found[-1] is None or not found[-1].any()):
        return fault(
            "gradient-cut",
            "wrong",
            "no gradient reaches what it is given: layers before it are not trained",
            0.0,
            "import torch\n"
            "x = torch.randn(1, 16, 64, requires_grad=True)\n"
            "subject(x).sum().backward(); x.grad",
            1.0,
        )
    if x is not None and (off := _gradient_off(call, x, found[-1], made, weights)) is not None:
        return fault(
            "gradient-otherwise",
            "wrong",
            f"the gradient of what it is given is up to {off:.3g} of its size away from the slope "
            "of what comes out: the backward pass belongs to another function",
            off,
            "import torch\n"
            "x = torch.randn(1, 16, 64, requires_grad=True)\n"
            "w, step = torch.randn_like(x), torch.randn_like(x)\n"
            "# the gradient of (subject(x) * w).sum() along step, against the sum's own change",
        )
    return f"{len(learned)} parameters, {'and content' if x is not None else 'no content'}"


def _untrained(call: Callable[[], Tensor], learned: dict[str, nn.Parameter]) -> list[str]:
    """The names of those that get no gradient from this call either."""
    try:
        made = _with_gradients(call)
        found = torch.autograd.grad(made.square().sum(), [*learned.values()], allow_unused=True)
    except (NotAskedError, RuntimeError):
        raise NotAskedError(
            f"{', '.join(learned)}: no gradient reaches it from content, and ids of tokens, of "
            "which it may be, were refused"
        ) from None
    return [n for n, g in zip(learned, found, strict=True) if g is None or not g.any()]


def _gradient_off(
    call: Callable[[], Tensor], x: Tensor, gradient: Tensor | None, made: Tensor, weights: Tensor
) -> float | None:
    """By which share a gradient misses the change of ``(made * weights).sum()`` along a step of x.

    None where it does not, and where the change is no straight line or goes by chance.
    """
    if gradient is None:
        return None
    step = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    before, weights = x.detach().clone(), weights.double()

    def along(share: float) -> Tensor:
        with torch.no_grad():
            x.copy_(before + share * step)
            return call().detach().double() * weights

    there, back, again = along(1.0), along(-1.0), along(0.0)
    size = there.abs().sum().item()
    if (there + back - 2 * again).abs().sum().item() > LINE * size or not torch.equal(
        again, made.detach().double() * weights
    ):
        return None
    change = (there - back).sum().item() / 2
    off = abs((gradient.double() * step).sum().item() - change)
    return off / size if off > LINE * size else None


LINE = 1e-4
"""What float32 may be away from a straight line, as a share of all numbers."""


def _with_gradients(call: Callable[[], Tensor]) -> Tensor:
    """Adapters call without gradients; here a call keeps them."""
    with keeping_gradients():
        return call()
