"""What implements one of our own interfaces: the contract battery asks it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import Fault, Report, Verdict
from posenc.audit.subjects import Subject
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, TokenEncoding
from posenc.encodings.tokens.learned import AxialLearned
from posenc.encodings.tokens.learned_grid import LearnedGrid
from posenc.testing.battery import Check, battery
from posenc.testing.cases import Case

NEAR = 2**18  # where encodings that round angles, as learned generators, keep what they claim
WEAKER = "within a few roundings, for positions below 2^18"
INTERFACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)


def of_ours(subject: Subject) -> Report:
    """The contract battery, for what implements one of the interfaces."""
    thing = subject.fresh()
    interface = next(kind for kind in INTERFACES if isinstance(thing, kind))
    case = _case(subject, thing)
    verdicts = [_verdict(check) for check in battery(case, compiling=False)]
    told = f"implements {interface.__name__}"
    return Report(subject.name, "encoding", told, repr(thing), verdicts)


def _case(subject: Subject, thing: Any) -> Case:
    """What the battery must know, as far as the thing says it."""
    heads, head_dim = getattr(thing, "heads", 4), getattr(thing, "head_dim", 8)
    table = isinstance(thing, LearnedGrid | AxialLearned)
    return Case(
        lambda: _filled(subject.build()),
        heads=heads,
        kv_heads=heads if heads % 2 else heads // 2,
        head_dim=head_dim if isinstance(head_dim, int) else 8,
        limit=prod(thing.size) if table else getattr(thing, "max_len", None),
        heads_first=getattr(thing, "heads_first", True),
        lift=_lift(thing),
    )


def _filled(thing: Any) -> Any:
    """Parameters that begin at zero as if something had been learned: zeros show nothing.

    What was given as an object is copied, not built, and must be moved to where it would be built.
    """
    if torch.get_default_device().type == "meta":
        thing = thing.to("meta")
    with torch.no_grad():
        for parameter in thing.parameters():
            if parameter.device.type != "meta" and not parameter.any():
                parameter.normal_()
    return thing


def _lift(thing: Any) -> Callable[[Tensor], Tensor] | None:
    """How positions become coordinates: for grids each axis is given the same number."""
    if isinstance(thing, LearnedGrid | AxialLearned):  # points of the grid, one after the other
        return lambda line: torch.stack(torch.unravel_index(line, tuple(thing.size)), -1)
    line = torch.arange(4)
    for lift in (None, partial(_repeated, 2), partial(_repeated, 3)):
        at = lift(line) if lift else line
        with suppress(Exception):
            thing.table(*[at] * (1 + isinstance(thing, ScoreEncoding)))
            return lift
    return None


def _repeated(axes: int, positions: Tensor) -> Tensor:
    return torch.stack([positions] * axes, -1)


def _verdict(check: Check) -> Verdict:
    """The outcome of a check; of one that fails, or is refused, that of the weaker one nearby."""
    name, case = check.name.replace("_", "-"), check.case
    asks = (check.function.__doc__ or "").strip().splitlines()[0]
    verdict = partial(Verdict, name, asks, True)
    try:
        reason = check()
    except Exception as error:
        refuses, whole = not isinstance(error, AssertionError), str(error)
        words = f"{type(error).__name__}: " * refuses + " ".join(whole.split())[:160]
    else:
        return verdict("not asked" if reason else "passed", reason or asks)
    with suppress(Exception):
        limit = min(case.limit or NEAR, NEAR)
        replace(check, case=replace(case, bitwise=False, limit=limit))()
        if refuses:
            return verdict("passed", f"{asks} {WEAKER}; farther on, {words}")
        note = Fault(name, "note", f"{asks} But for {words}: {WEAKER}", 1.0)
        return verdict("passed", f"{asks} {WEAKER}", (note,))
    if refuses:
        return verdict("not asked", words)
    found = Fault(name, "wrong", f"{asks} But {whole}", 1.0)
    return verdict("failed", found.said, (found,))
