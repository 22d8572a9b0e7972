"""What a call leaves behind, and what it trains."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import asking, guarded
from posenc.audit.questions.asking import Answer, fault
from posenc.audit.report import NotAskedError

Case = tuple[str, int, torch.dtype, int]
"""A fault, the tokens and dtype of a call, and the tokens of the call after it."""

LINE = 1e-4
"""What float32 may be away from a straight line, as a share of all numbers."""

CONTENT = "what it is given"


def untouched(call: Callable[[], object]) -> Answer:
    """Whether what a call is given is after it what it was before."""
    seen: dict[str, float] = {}
    with asking(changes=seen):
        call()
    if not seen:
        raise NotAskedError("it takes no tensor")
    name, far = max(seen.items(), key=lambda item: item[1])
    if far == 0:
        return f"not a bit of {', '.join(seen)} changed"
    return fault("input-written", f"the tensor given as {name} changes by up to {far:.3g}", far)


def apart(one: Tensor, other: Tensor) -> float:
    """The largest difference; infinite where one has a number and the other none."""
    off = (one.double() - other.double()).abs()
    alike = (one == other) | one.isnan() & other.isnan()
    return off.masked_fill(alike, 0.0).nan_to_num(torch.inf, torch.inf).max().item()


def after_calls(
    call: Callable[[int, torch.dtype, Any], Tensor], fresh: Callable[[], Any], cases: Iterable[Case]
) -> Answer:
    """Whether a call with so many tokens gives to the bit what it does before others."""
    clean: dict[int, Tensor] = {}
    asked = 0
    for name, before, dtype, then in cases:
        if then not in clean:
            clean[then] = call(then, torch.float32, fresh())
        used, kind = fresh(), str(dtype).removeprefix("torch.")
        try:
            call(before, dtype, used)
        except NotAskedError:  # what it has not answered leaves no trace
            continue
        said = f"after {before:,} tokens in {kind}, {then} in float32"
        try:
            again = call(then, torch.float32, used)
        except NotAskedError as reason:
            return fault(name, f"{said} are refused: {reason}")
        off, asked = apart(again, clean[then]), asked + 1
        if off > 0 or again.dtype != clean[then].dtype:
            came = str(again.dtype).removeprefix("torch.")
            said += f" come out as {came}, up to {off:.3g} away from a fresh one"
            return fault(name, said, off or 1.0)
    if not asked:
        raise NotAskedError("it took none of the calls between")
    return f"bit for bit the same after {asked} other calls"


def gradients(
    thing: object,
    call: Callable[[], Tensor],
    x: Tensor | None,
    otherwise: Callable[[], Tensor] | None = None,
) -> Answer:
    """Whether a gradient reaches all parameters and content, and is that of what comes out.

    Parameters that ``otherwise`` trains, a call with other content, need no gradient here.
    """
    learned = dict(thing.named_parameters()) if isinstance(thing, nn.Module) else {}
    learned = {name: p for name, p in learned.items() if p.requires_grad}
    if not learned and x is None:
        raise NotAskedError("it has no parameters and takes no content")
    with asking(gradients=True):
        made = call()
    weights = torch.randn(made.shape, generator=torch.Generator().manual_seed(1))
    named = learned if x is None else {**learned, CONTENT: x}
    found: dict[str, Tensor | None] = dict.fromkeys(named)
    if made.requires_grad:
        total = (made * weights.to(made.dtype)).sum()
        each = guarded(lambda: torch.autograd.grad(total, [*named.values()], allow_unused=True))
        found = dict(zip(named, each, strict=True))
    without = [n for n in learned if (g := found[n]) is None or not g.any()]
    if without and otherwise is not None:
        without = _untrained(otherwise, {name: learned[name] for name in without})
    if without:
        said = f"{', '.join(without)}: no gradient reaches it, so it is never trained"
        return fault("parameter-without-gradient", said, len(without))
    lost = [n for n, g in found.items() if g is not None and not g.isfinite().all()]
    if lost:
        said = f"the gradient of {', '.join(lost)} is infinite or no number"
        return fault("not-a-number", said, len(lost))
    if x is None:
        return f"{len(learned)} parameters, no content"
    gradient = found[CONTENT]
    if gradient is None or not gradient.any():
        said = "no gradient reaches what it is given: layers before it are not trained"
        return fault("gradient-cut", said, 0.0, expected=1.0)
    if (off := _gradient_off(call, x, gradient, made, weights)) is not None:
        said = f"the gradient of what it is given is up to {off:.3g} of its size away from the"
        return fault("gradient-otherwise", f"{said} slope of what comes out", off)
    return f"{len(learned)} parameters, and content"


def _untrained(call: Callable[[], Tensor], learned: dict[str, Tensor]) -> list[str]:
    """The names of those that get no gradient from this call either."""
    try:
        with asking(gradients=True):
            made = call()
        found = torch.autograd.grad(made.square().sum(), [*learned.values()], allow_unused=True)
    except (NotAskedError, RuntimeError):
        raise NotAskedError(f"no gradient reaches {', '.join(learned)} from content") from None
    return [n for n, g in zip(learned, found, strict=True) if g is None or not g.any()]


def _gradient_off(
    call: Callable[[], Tensor], x: Tensor, gradient: Tensor, made: Tensor, weights: Tensor
) -> float | None:
    """By which share a gradient misses the change of ``(made * weights).sum()`` along a step of x.

    None where it does not, and where the change is no straight line or goes by chance.
    """
    step = torch.randn(x.shape, generator=torch.Generator().manual_seed(2))
    before, weights = x.detach().clone(), weights.double()

    def along(share: float) -> Tensor:
        with torch.no_grad():
            x.copy_(before + share * step)
            return call().detach().double() * weights

    there, back, again = along(1.0), along(-1.0), along(0.0)
    size = there.abs().sum().item()
    bent = (there + back - 2 * again).abs().sum().item() > LINE * size
    if bent or not torch.equal(again, made.detach().double() * weights):
        return None
    change = (there - back).sum().item() / 2
    off = abs((gradient.double() * step).sum().item() - change)
    return off / size if off > LINE * size else None
