"""What implements one of our own interfaces: the contract battery asks it."""

from collections.abc import Callable, Sequence
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

NEAR = 2**18
"""Where encodings that round their angles (learned generators) still keep what they claim."""

WEAKER = "within a few roundings, for positions below 2^18"

INTERFACES = (TokenEncoding, QueryKeyEncoding, ScoreEncoding)


def of_ours(subject: Subject) -> Report:
    """The contract battery, for what implements one of the interfaces."""
    thing = subject.fresh()
    interface = next(kind for kind in INTERFACES if isinstance(thing, kind))
    case = _case(subject, thing)
    near = replace(case, bitwise=False, limit=min(case.limit or NEAR, NEAR))
    asked = (battery(each, compiling=False) for each in (case, near))
    verdicts = [_verdict(*both) for both in zip(*asked, strict=True)]
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
        lift=partial(_points, thing.size) if table else _lift(thing),
        distinct=not isinstance(thing, ScoreEncoding),
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


def _points(size: Sequence[int], positions: Tensor) -> Tensor:
    """Positions as points of a grid, one after the other."""
    return torch.stack(torch.unravel_index(positions, tuple(size)), dim=-1)


def _lift(thing: Any) -> Callable[[Tensor], Tensor] | None:
    """How positions become coordinates: for grids each axis is given the same number."""
    for axes in (0, 2, 3):
        lift = partial(_repeated, axes) if axes else None
        given = lift(torch.arange(4)) if lift else torch.arange(4)
        with suppress(Exception):
            thing.table(given, given) if isinstance(thing, ScoreEncoding) else thing.table(given)
            return lift
    return None


def _repeated(axes: int, positions: Tensor) -> Tensor:
    return torch.stack([positions] * axes, -1)


def _verdict(one: Check, near: Check) -> Verdict:
    """The outcome of a check; of one that fails, or is refused, that of the weaker one nearby."""
    name, asks = one.name.replace("_", "-"), (one.function.__doc__ or "").strip().splitlines()[0]
    said = name, asks, True
    try:
        reason = one()
    except Exception as error:
        refuses, whole = not isinstance(error, AssertionError), str(error)
        words = f"{type(error).__name__}: " * refuses + " ".join(whole.split())[:160]
    else:
        return Verdict(*said, "not asked" if reason else "passed", reason or asks)
    with suppress(Exception):
        near()
        if refuses:
            return Verdict(*said, "passed", f"{asks} {WEAKER}; farther on, {words}")
        note = Fault(name, "note", f"{asks} But for {words}: {WEAKER}", 1.0)
        return Verdict(*said, "passed", f"{asks} {WEAKER}", (note,))
    if refuses:
        return Verdict(*said, "not asked", words)
    found = Fault(name, "wrong", f"{asks} But {whole}", 1.0)
    return Verdict(*said, "failed", found.said, (found,))
