"""What is asked of rotary encodings on a grid: whether both axes turn, and each on a line."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import layouts
from posenc.audit.adapters.grid import AXES, NEAR, Form
from posenc.audit.adapters.rotary_view import HEADS, Both, RotaryView
from posenc.audit.identity.rotations import OF_SLIPS, Rotation, plain_schedules, radians
from posenc.audit.identity.structures import Structure
from posenc.audit.questions import rows
from posenc.audit.questions.asking import fault
from posenc.audit.questions.rotary.inquiry import RotaryInquiry
from posenc.audit.report import CannotCheckError, Fault, NotAskedError, Report, Verdict, merged
from posenc.audit.subjects import Subject
from posenc.frequencies import Geometric, Linear

SEQ, LEAST = 6, 8
SMALL, COARSE = 1e-4, 2e-2
"""How far apart what is equal may be; the larger where cosines are numbers of 16 bits."""

LENGTH = 1024
"""Up to where precision is judged: images have no more rows."""


def report_of(
    subject: Subject,
    readings: Iterable[tuple[RotaryView, Form]],
    length: int | None,
    verdicts_of: Callable[[RotaryInquiry], list[Verdict]],
) -> Report:
    """All that is found: the axes first, and if both are sound, each as on a line.

    Args:
        subject: What is asked.
        readings: The ways to call it, at least one; the first in which both axes are sound counts.
        length: Up to where precision is judged.
        verdicts_of: Asks the questions of a line.

    Raises:
        CannotCheckError: Its grid is too small to be asked.
    """
    tried = []
    for view, form in readings:
        if form.limits is not None and min(form.limits) < LEAST:
            continue
        tried.append((view, form, axes_turn(view, form)))
        if not tried[-1][2][0]:
            break
    if not tried:
        raise CannotCheckError(f"its grid has fewer than {LEAST} rows or columns, too few to ask")
    view, form, (faults, told, channels) = next(
        (each for each in tried if not each[2][0]), tried[0]
    )
    outcome = "failed" if faults else "passed"
    asks = "Does each axis turn queries and keys, and both alike?"
    first = Verdict("both-axes-turn", asks, True, outcome, told, tuple(faults))
    understood = _understood(view, form)
    if faults:
        return Report(subject.name, "rotary", understood, "", [first], {}, length or LENGTH)
    parts, said = [], []
    for axis, name in enumerate(AXES):
        own = replace(_narrow(view, channels[axis], subject, form, axis), said="")
        limit = form.limits[axis] if form.limits else LENGTH
        inquiry = AxisInquiry(own, min(length or LENGTH, limit))
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


def _understood(view: RotaryView, form: Form) -> str:
    if form.count:
        axes, what = layouts.SAID[view.layout], "queries and keys" if view.sees_keys else "queries"
        tail = f"; {view.applied}" if view.applied else ""
        return f"rotates {what} {axes} of width {view.dim}: {form.told}{tail}"
    return f"{view.understood.replace('positions by row', 'points by row')}; {form.told}"


class AxisInquiry(RotaryInquiry):
    """One axis, in which small bases are usual."""

    @cached_property
    def rotation(self) -> Rotation | None:
        """The schedule that it follows; a base of 100 is no slip of the exponent here."""
        found = super().rotation
        plain = found is not None and isinstance(found.schedule, Geometric)
        if found is not None and plain and found.schedule.base in OF_SLIPS:  # type: ignore[attr-defined]
            return replace(found, slip="")
        return found or _stretched(self.shape)


def _stretched(shape: Structure) -> Rotation | None:
    """Powers of a base times any angle a step, as where coordinates go from −1 to 1."""
    omegas = shape.speeds
    if len(omegas) < 3 or shape.odd or float(omegas.min()) <= 0:
        return None
    for plain in plain_schedules(shape.width, omegas / omegas[0]):
        schedule = Linear(plain, 1 / float(omegas[0]))
        rates = radians(schedule)
        if len(rates) == len(omegas) and bool(((rates - omegas).abs() < 1e-3 * omegas).all()):
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


def _narrow(
    view: RotaryView, channels: list[int], subject: Subject, form: Form, axis: int
) -> RotaryView:
    """The same of these channels alone, as if they were a head; the others are empty.

    Turned back by what the first point is turned, from which products do not tell: grids are often
    centered, and counted from another point than 0.
    """
    back = torch.linalg.pinv(_first_turn(view, form)[channels][:, channels]).float()

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        wide = [x.new_zeros(*x.shape[:-1], view.dim) for x in (q, k)]
        for whole, part in zip(wide, (q, k), strict=True):
            whole[..., channels] = part
        made = view.run(thing, wide[0], wide[1], positions)
        queries, keys = (x if x is None else _turned_by(back, x[..., channels]) for x in made)
        return queries, keys  # type: ignore[return-value]

    return replace(view, run=run, dim=len(channels), subject=form.along(subject, axis))


def _turned_by(matrix: Tensor, x: Tensor) -> Tensor:
    if bool((matrix - torch.eye(len(matrix))).abs().max() < 1e-6):
        return x  # to the bit
    return (x.to(torch.promote_types(x.dtype, torch.float32)) @ matrix.mT.to(x.device)).to(x.dtype)


def _first_turn(view: RotaryView, form: Form) -> Tensor:
    """What the first point is turned by, its size left aside, ``[dim, dim]``."""
    first = view.matrices(1, by=form.turned(0))[0]
    return first / first.square().sum(0).sqrt().clamp(min=1e-30)


def _said(inquiry: RotaryInquiry, name: str, dim: int) -> str:
    try:
        told = inquiry.identity.removeprefix("a rotary encoding, ")
        told = told or f"{inquiry.shape.pairing} pairing"
    except NotAskedError:
        return ""
    return f"{name} turn {inquiry.view.dim} of {dim} channels, {told}"


def axes_turn(view: RotaryView, form: Form) -> tuple[list[Fault], str, list[list[int]]]:
    """Whether each axis turns; the faults, what was measured, and the channels of each."""
    limits = form.limits or (NEAR, NEAR)
    queries = [view.matrices(limits[axis], by=form.turned(axis)) for axis in range(2)]
    moved = [_moved(matrices) for matrices in queries]
    show = _reproduction(view, form)
    for axis, (name, channels) in enumerate(zip(AXES, moved, strict=True)):
        if not channels:
            said = f"nothing turns along {name}: all tokens of one {AXES[1 - axis][:-1]} are alike"
            return [fault("one-axis-only", "wrong", said, 0.0, show)], said, []
    near = [matrices[:SEQ] for matrices in queries]
    if (near[0] - near[1]).abs().max() < SMALL:
        said = "both coordinates turn the same channels by the same angles: (1, 2) is (2, 1)"
        return [fault("positions-shared", "wrong", said, 2.0, show)], said, []
    if view.sees_keys:
        keys = [view.matrices(SEQ, "k", by=form.turned(axis)) for axis in range(2)]
        apart = [_apart(near[0], keys[i]) for i in range(2)]
        if apart[0] > SMALL >= apart[1]:
            said = "rows turn those channels of keys that columns turn of queries, and back"
            return [fault("axes-swapped", "wrong", said, apart[0], show)], said, []
    off, (row, column), allowed = _points_off(view, form, queries)
    if off > allowed:
        said = (
            f"the point at row {row} and column {column} is not turned as by its row and by its "
            f"column: {off:.3g} apart"
        )
        return [fault("not-relative", "wrong", said, off, show)], said, []
    if count := _by_number(form, queries, moved):
        said = (
            f"in {count} channels {form.side} columns turn as far as one row does: they go by the "
            f"number of the patch, as where number / {form.side} stands for number // {form.side}"
        )
        return [fault("rows-not-whole", "wrong", said, 1 / form.side, show)], said, []
    both = len(moved[0] & moved[1])
    told = (
        f"rows turn {len(moved[0])} channels and columns {len(moved[1])}, {both} of them both; "
        f"each of {limits[0]} × {limits[1]} points as its row and its column, within {off:.1g}"
    )
    return [], told, [sorted(channels) for channels in moved]


def _points_off(
    view: RotaryView, form: Form, queries: list[Tensor]
) -> tuple[float, tuple[int, int], float]:
    """How far points are from R(0, column) R(0, 0)⁻¹ R(row, 0), where most, and how far they may.

    Keys are asked beside queries, where they go through the same call.
    """
    count = len(queries[0]), len(queries[1])
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(HEADS, view.dim, generator=generator)
    x = probe[None, :, None].expand(1, -1, count[0] * count[1], -1).contiguous()
    line = torch.arange(count[0] * count[1])
    thing = form.turned(0, columns=count[1])
    made = view.both(x, x[:, : view.kv_heads], line[None], thing)
    first = torch.linalg.pinv(queries[0][0])
    half = torch.einsum("rij,hj->hri", first @ queries[0], probe.double())
    wanted = torch.einsum("cij,hrj->hrci", queries[1], half)
    held = rows_in_16_bits(torch.cat(queries))
    worst, place = 0.0, 0
    for side in made:
        if side is None:
            continue
        apart = side[0].double().unflatten(1, count) - wanted[: side.shape[1]]
        apart = torch.nan_to_num(apart, nan=torch.inf).abs().amax((0, -1)).flatten()
        if float(apart.max()) > worst:
            worst, place = float(apart.max()), int(apart.argmax())
    size = float(probe.abs().max() * torch.cat(queries).abs().max())
    return worst, divmod(place, count[1]), (COARSE if held else SMALL) * size


def _by_number(form: Form, queries: list[Tensor], moved: list[set[int]]) -> int:
    """How many channels turn by the number of the patch, row after row; 0 for whole rows.

    They are all that one of the axes turns, and some that the other does.
    """
    channels = sorted(min(moved, key=len))
    if not form.side or not moved[0] ^ moved[1] or len(moved[0] & moved[1]) < len(channels):
        return 0
    along = [(each @ torch.linalg.pinv(each[0]))[:, channels][:, :, channels] for each in queries]
    row, columns = along[0][1], along[1][-1] @ along[1][1]  # one more than the last is as many
    off, turned = _apart(row, columns), _apart(row, torch.eye(len(channels)))
    allowed = COARSE if rows_in_16_bits(torch.cat(queries)) else SMALL
    return len(channels) if off < min(4 * allowed, 0.1 * turned) else 0


def rows_in_16_bits(matrices: Tensor) -> bool:
    """Whether cosines and sines are numbers of 16 bits."""
    moving = matrices[:, matrices.std(0) > 1e-6]
    return rows.is_held_in(moving) is not None


def _moved(matrices: Tensor) -> set[int]:
    """Channels that some position changes."""
    change = (matrices - matrices[0]).abs()
    return set((change.amax((0, 1)) > SMALL).nonzero().flatten().tolist())


def _apart(one: Tensor, other: Tensor) -> float:
    return (one - other).abs().max().item()


def _reproduction(view: RotaryView, form: Form) -> str:
    if form.count:
        return (
            f"import torch\nx = torch.ones(1, 4, {form.count}, {view.dim})\n"
            f"# tokens of subject(x), row after row: {form.side} × {form.side}"
        )
    return (
        f"import torch\nx = torch.randn(1, 4, 2, {view.dim})  # [batch, heads, tokens, head_dim]\n"
        f"points = torch.tensor([[1, 2], [2, 1]])"
    )
