"""What is asked of rotary encodings on a grid: whether both axes turn, and each on a line."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.grid import AXES, OnAxis, along, turned
from posenc.audit.adapters.rotary import Both, RotaryView
from posenc.audit.identity.bases import OF_GRIDS
from posenc.audit.identity.rotations import Rotation, plain_schedules, radians
from posenc.audit.identity.structures import Structure
from posenc.audit.questions.asking import fault
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import Fault, NotAskedError, Report, Verdict, merged
from posenc.audit.subjects import Subject
from posenc.frequencies import Geometric, Linear

SEQ = 6
SMALL = 1e-4
LENGTH = 1024
"""Up to where precision is judged: images have no more rows."""


def report_of(
    subject: Subject,
    view: RotaryView,
    kind: type[OnAxis],
    length: int | None,
    verdicts_of: Callable[[RotaryInquiry], list[Verdict]],
) -> Report:
    """All that is found: the axes first, and if both are sound, each as on a line."""
    faults, told, channels = axes_turn(subject, view, kind)
    outcome = "failed" if faults else "passed"
    asks = "Does each axis turn queries and keys, and both alike?"
    first = Verdict("both-axes-turn", asks, True, outcome, told, tuple(faults))
    what = view.understood.replace("positions by row", "points by row")
    understood = f"{what}; two coordinates a token, asked along each"
    if faults:
        return Report(subject.name, "rotary", understood, "", [first], {}, length or LENGTH)
    parts, said = [], []
    for axis, name in enumerate(AXES):
        own = replace(_narrow(view, channels[axis]), subject=along(subject, kind, axis))
        inquiry = AxisInquiry(own, length or view.built_for or LENGTH)
        part = Report(name, "rotary", "", _said(inquiry, name, view.dim), verdicts_of(inquiry))
        part.errors, part.length = inquiry.errors, inquiry.length
        part.verdicts = [_mild(verdict) for verdict in part.verdicts]
        parts.append(part)
        said.append(part.identity)
    whole = merged(subject.name, parts)
    whole.kind, whole.understood = "rotary", understood
    whole.verdicts.insert(0, first)
    whole.identity = f"an axial rotary encoding: {'; '.join(filter(None, said))}" * all(said)
    return whole


class AxisInquiry(RotaryInquiry):
    """One axis, in which small bases are usual."""

    @cached_property
    def rotation(self) -> Rotation | None:
        """The schedule that it follows; a base of 100 is no slip of the exponent here."""
        found = super().rotation
        plain = found is not None and isinstance(found.schedule, Geometric)
        if found is not None and plain and found.schedule.base in OF_GRIDS:  # type: ignore[attr-defined]
            return replace(found, slip="")
        return found or _stretched(self.shape)


def _stretched(shape: Structure) -> Rotation | None:
    """Powers of a base times any angle a step, as where coordinates go from −1 to 1."""
    omegas = shape.speeds
    if len(omegas) < 3 or shape.odd or float(omegas.min()) <= 0:
        return None
    for plain in plain_schedules(shape.width, omegas / omegas[0]):
        schedule = Linear(plain, 1 / float(omegas[0]))
        if bool(((radians(schedule) - omegas).abs() < 1e-3 * omegas).all()):
            named = f"base {plain.base:,.10g}, {float(omegas[0]):.4g} radians a step"
            return Rotation(shape, schedule, named)
    return None


def _mild(verdict: Verdict) -> Verdict:
    """Grids have frequencies of many kinds: those that are not known here are no fault."""
    faults = tuple(
        replace(each, severity="note") if each.name == "unknown-frequencies" else each
        for each in verdict.faults
    )
    failed = any(each.severity != "note" for each in faults)
    outcome = "passed" if verdict.faults and not failed else verdict.outcome
    return replace(verdict, faults=faults, outcome=outcome)


def _narrow(view: RotaryView, channels: list[int]) -> RotaryView:
    """The same of these channels alone, as if they were a head; the others are empty."""

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        wide = [x.new_zeros(*x.shape[:-1], view.dim) for x in (q, k)]
        for whole, part in zip(wide, (q, k), strict=True):
            whole[..., channels] = part
        queries, keys = view.run(thing, wide[0], wide[1], positions)
        return queries[..., channels], None if keys is None else keys[..., channels]

    return replace(view, run=run, dim=len(channels))


def _said(inquiry: RotaryInquiry, name: str, dim: int) -> str:
    try:
        told = inquiry.identity
    except NotAskedError:
        told = ""
    told = told.removeprefix("a rotary encoding, ") or f"{inquiry.shape.pairing} pairing"
    return f"{name} turn {inquiry.view.dim} of {dim} channels, {told}"


def axes_turn(
    subject: Subject, view: RotaryView, kind: type[OnAxis]
) -> tuple[list[Fault], str, list[list[int]]]:
    """Whether each axis turns; the faults, what was measured, and the channels of each."""
    queries = [view.matrices(SEQ, by=turned(subject, kind, axis)) for axis in range(2)]
    moved = [_moved(matrices) for matrices in queries]
    show = _reproduction(view)
    for axis, (name, channels) in enumerate(zip(AXES, moved, strict=True)):
        if not channels:
            said = f"nothing turns along {name}: all tokens of one {AXES[1 - axis][:-1]} are alike"
            return [fault("one-axis-only", "wrong", said, 0.0, show)], said, []
    if (queries[0] - queries[1]).abs().max() < SMALL:
        said = "both coordinates turn the same channels by the same angles: (1, 2) is (2, 1)"
        return [fault("positions-shared", "wrong", said, 2.0, show)], said, []
    if view.sees_keys:
        keys = [view.matrices(SEQ, "k", by=turned(subject, kind, axis)) for axis in range(2)]
        apart = [_apart(queries[0], keys[i]) for i in range(2)]
        if apart[0] > SMALL >= apart[1]:
            said = "rows turn those channels of keys that columns turn of queries, and back"
            return [fault("axes-swapped", "wrong", said, apart[0], show)], said, []
    point = view.matrices(SEQ, by=turned(subject, kind, 0, other=3))
    off = _apart(point, queries[1][3] @ queries[0])
    if off > SMALL:
        said = f"a point is not turned as by its row and by its column: {off:.3g} apart"
        return [fault("not-relative", "wrong", said, off, show)], said, []
    both = len(moved[0] & moved[1])
    told = (
        f"rows turn {len(moved[0])} channels and columns {len(moved[1])}, {both} of them both; a "
        f"point as its row and its column, within {off:.1g}"
    )
    return [], told, [sorted(channels) for channels in moved]


def _moved(matrices: Tensor) -> set[int]:
    """Channels that some position changes."""
    change = (matrices - torch.eye(matrices.shape[-1], dtype=matrices.dtype)).abs()
    return set((change.amax((0, 1)) > SMALL).nonzero().flatten().tolist())


def _apart(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def _reproduction(view: RotaryView) -> str:
    return (
        f"import torch\nx = torch.randn(1, 4, 2, {view.dim})  # [batch, heads, tokens, head_dim]\n"
        f"points = torch.tensor([[1, 2], [2, 1]])"
    )
