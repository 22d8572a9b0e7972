"""What implements one of our own interfaces: the contract battery asks it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import Fault, Report, Verdict
from posenc.audit.subjects import Subject
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.testing.battery import Check, battery
from posenc.testing.cases import Case

INTERFACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)


def implements(thing: Any) -> bool:
    """Whether it is one of our encodings, or made like one."""
    return isinstance(thing, INTERFACES)


def of_ours(subject: Subject) -> Report:
    """The contract battery, for what implements one of the interfaces."""
    thing = subject.fresh()
    interface = next(kind for kind in INTERFACES if isinstance(thing, kind))
    report = Report(subject.name, "encoding", f"implements {interface.__name__}", repr(thing))
    case = _case(subject, thing)
    report.verdicts = [_verdict(one) for one in battery(case, compiling=False)]
    return report


def _case(subject: Subject, thing: Any) -> Case:
    """What the battery must know, as far as the thing says it."""
    heads = getattr(thing, "heads", 4)
    head_dim = getattr(thing, "head_dim", 8)
    return Case(
        lambda: _filled(subject.build()),
        heads=heads,
        kv_heads=heads if heads % 2 else heads // 2,
        head_dim=head_dim if isinstance(head_dim, int) else 8,
        limit=getattr(thing, "max_len", None),
        heads_first=getattr(thing, "heads_first", True),
        lift=_lift(thing),
        distinct=not isinstance(thing, ScoreEncoding),
    )


def _filled(thing: Any) -> Any:
    """Parameters that begin at zero as if something had been learned: zeros show nothing."""
    with torch.no_grad():
        for parameter in thing.parameters():
            if parameter.device.type != "meta" and not parameter.any():
                parameter.normal_()
    return thing


def _lift(thing: Any) -> Callable[[Tensor], Tensor] | None:
    """How positions become coordinates: for grids each axis is given the same number."""
    line = torch.arange(4)
    for axes in (1, 2, 3):

        def lift(positions: Tensor, axes: int = axes) -> Tensor:
            return torch.stack([positions] * axes, -1) if axes > 1 else positions

        try:
            given = lift(line)
            thing.table(given, given) if isinstance(thing, ScoreEncoding) else thing.table(given)
        except Exception:
            continue
        return lift if axes > 1 else None
    return None


def _verdict(one: Check) -> Verdict:
    name, asks = one.name.replace("_", "-"), (one.function.__doc__ or "").strip().splitlines()[0]
    try:
        one()
    except AssertionError as broken:
        found = Fault(name, "wrong", f"{asks} But {broken}", 1.0)
        return Verdict(name, asks, True, "failed", found.said, (found,))
    except Exception as error:  # it refuses what the battery gives it
        words = " ".join(str(error).split())
        return Verdict(name, asks, True, "not asked", f"{type(error).__name__}: {words[:160]}")
    return Verdict(name, asks, True, "passed", asks)
