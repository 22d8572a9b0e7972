"""What is asked of rotary encodings of several axes: whether each turns, and each on a line."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any, ClassVar

import torch
from torch import Tensor

from posenc.audit.adapters.grid import NAMES, NEAR, Form, readings
from posenc.audit.adapters.rotary import Both, RotaryView
from posenc.audit.identity.rotations import OF_SLIPS, Rotation, stretched
from posenc.audit.questions import rows
from posenc.audit.questions.asking import Answer, needed, question
from posenc.audit.questions.faults import NO_LENGTH, NO_STATE, fault
from posenc.audit.questions.rotary.inquiry import COARSE, RotaryInquiry
from posenc.audit.questions.rows import apart
from posenc.audit.report import CannotCheckError, NotAskedError, Report, Severity, Verdict, merged
from posenc.audit.subjects import Subject

SEQ, LEAST = 6, 8
SMALL = 1e-4  # how far apart what is equal may be; COARSE where cosines are numbers of 16 bits
LENGTH = 1024  # up to where precision is judged, as images end; and how many points are asked


@dataclass(frozen=True)
class Axes:
    """What each axis turns."""

    view: RotaryView  # how it is called
    form: Form  # how it is given points
    length: int = LENGTH
    expected: Any = None

    @cached_property
    def limits(self) -> tuple[int, ...]:
        """How many coordinates are asked along each axis."""
        return self.form.limits or (NEAR,) * self.form.axes

    @cached_property
    def near(self) -> list[Tensor]:
        """R(0), R(1), … of queries along each axis."""
        return [self.form.along(self.view, a).matrices(n) for a, n in enumerate(self.limits)]

    @cached_property
    def channels(self) -> list[list[int]]:
        """The channels that each axis turns."""
        change = [(each - each[0]).abs().amax((0, 1)) for each in self.near]
        return [(each > SMALL).nonzero().flatten().tolist() for each in change]

    def points_off(self) -> tuple[float, list[int]]:
        """How far points are from what their coordinates turn one by one, and where most."""
        generator = torch.Generator().manual_seed(0)
        probe = torch.randn(self.view.dim, generator=generator)
        drawn = [torch.randint(n, (LENGTH,), generator=generator) for n in self.limits]
        points = torch.stack(drawn, -1).unique(dim=0)
        wanted, back = probe.double()[:, None], torch.linalg.pinv(self.near[0][0])
        for axis, each in enumerate(self.near):
            wanted = each[points[:, axis]] @ (back @ wanted if axis else wanted)
        numbers = self.form.numbered(points).tolist()
        sides = [self.view.at(numbers, probe, side) for side in self.view.sides]
        off = (torch.stack(sides) - wanted[..., 0]).abs().amax((0, 2)).nan_to_num(torch.inf)
        return float(off.max() / probe.abs().max()), points[int(off.argmax())].tolist()


@question(essential=True)
def both_axes_turn(q: Axes) -> Answer:
    """Does each axis turn queries and keys, and both alike?"""
    names, view = NAMES[q.form.axes], q.view
    for name, channels in zip(names, q.channels, strict=True):
        if not channels:
            return fault("one-axis-only", f"nothing turns along {name}", 0.0)
    near = [each[:SEQ] for each in q.near]
    pairs = list(permutations(range(q.form.axes), 2))
    for a, b in pairs:
        if apart(near[a], near[b]) < SMALL:
            return fault("positions-shared", f"{names[a]} and {names[b]} turn the same", 2.0)
    if view.sees_keys:
        keys = [q.form.along(view, a).matrices(SEQ, "k") for a in range(q.form.axes)]
        for a, b in pairs:
            if apart(near[a], keys[a]) > SMALL >= apart(near[a], keys[b]):
                said = f"{names[b]} turn those channels of keys that {names[a]} turn of queries"
                return fault("axes-swapped", said, apart(near[a], keys[a]))
    every, (off, point) = torch.cat(q.near), q.points_off()
    held = rows.is_held_in(every[:, every.std(0) > 1e-6])
    if off > (COARSE if held else SMALL) * float(every.abs().max()):
        return fault("not-relative", f"the point {point} is turned {off:.3g} otherwise", off)
    if (said := _unlike(q)) is not None:
        return fault("unlike-its-configuration", said)
    told = ", ".join(f"{n} turn {len(c)} channels" for n, c in zip(names, q.channels, strict=True))
    return f"{told}; points as their coordinates, within {off:.1g}"


def _unlike(q: Axes) -> str | None:
    """Where pairs go by other axes than the configuration says, in words."""
    axes, rotary = getattr(q.expected, "axes", None), getattr(q.expected, "rotary", None)
    if axes is None or rotary is None or q.form.axes != 3:
        return None
    step = 1 if rotary.pairing == "half" else 2
    for pair, axis in enumerate(axes):
        by = [a for a in range(q.form.axes) if pair * step in q.channels[a]]
        if by and by != [axis]:
            told = ", ".join(NAMES[3][a] for a in by)
            return f"pair {pair} goes by {told}, where the configuration means {NAMES[3][axis]}"
    return None


@question(after=(*NO_LENGTH, *NO_STATE))
def axes_go_as_configured(q: RotaryInquiry) -> Answer:
    """Where tokens have three coordinates, does each pair go by the axis that is configured?"""
    pairs = getattr(q.meant, "axes", ())
    needed(pairs, "no configuration beside it gives pairs to several axes")
    found = readings(q.view.subject, q.view.layout, q.view.dim)
    three = (Axes(view, form, expected=q.meant) for view, form in found if form.axes == 3)
    axes = needed(next(three, None), "it takes no three coordinates")
    if (said := _unlike(axes)) is not None:
        return fault("unlike-its-configuration", said)
    return f"each of {len(pairs)} pairs; points within {axes.points_off()[0]:.1g}"


def report_of(
    subject: Subject,
    readings: Iterable[tuple[RotaryView, Form]],
    length: int | None,
    verdicts_of: Callable[[RotaryInquiry], list[Verdict]],
    expected: Any = None,
) -> Report:
    """All that is found by the first reading whose axes are sound: these, and each as a line."""
    found = [Axes(view, form, length or LENGTH, expected) for view, form in readings]
    large = [(axes, both_axes_turn.verdict(axes)) for axes in found if min(axes.limits) >= LEAST]
    if not large:
        raise CannotCheckError(f"its grid has fewer than {LEAST} rows or columns, too few to ask")
    axes, first = next((each for each in large if each[1].outcome == "passed"), large[0])
    understood = f"{axes.view.understood}; {axes.form.told}"
    if first.outcome != "passed":
        return Report(subject.name, "rotary", understood, "", [first], {}, axes.length)
    parts = [_along(axes, axis, verdicts_of) for axis in range(axes.form.axes)]
    whole, said = merged(subject.name, parts), [part.identity for part in parts]
    whole.kind, whole.understood = "rotary", understood
    whole.identity = f"an axial rotary encoding: {'; '.join(said)}" if all(said) else ""
    whole.verdicts.insert(0, first)
    return whole


def _along(axes: Axes, axis: int, verdicts_of: Callable[[RotaryInquiry], list[Verdict]]) -> Report:
    """What is found of one axis."""
    name, limit = NAMES[axes.form.axes][axis], (axes.form.limits or (LENGTH,) * 3)[axis]
    inquiry = AxisInquiry(_narrow(axes, axis), min(axes.length, limit))
    verdicts, identity = verdicts_of(inquiry), ""
    with suppress(NotAskedError):
        told = inquiry.identity.removeprefix("a rotary encoding, ")
        told = told or f"{inquiry.shape.pairing} pairing"
        identity = f"{name} turn {inquiry.view.dim} of {axes.view.dim} channels, {told}"
    return Report(name, "rotary", "", identity, verdicts, inquiry.errors, inquiry.length)


@dataclass
class AxisInquiry(RotaryInquiry):
    """One axis, in which small bases are usual."""

    what: ClassVar[str] = "the rotation along it"
    unknown: ClassVar[Severity] = "note"  # grids have frequencies of many kinds

    @cached_property
    def rotation(self) -> Rotation | None:
        """The schedule that it follows; a base of 100 is no slip of the exponent here."""
        found = super().rotation or stretched(self.shape)
        is_meant = found is not None and getattr(found.schedule, "base", None) in OF_SLIPS
        return replace(found, slip="") if found is not None and is_meant else found


def _narrow(axes: Axes, axis: int) -> RotaryView:
    """The same of the channels of one axis alone, as if they were a head; others are empty."""
    view, channels = axes.form.along(axes.view, axis), axes.channels[axis]

    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        wide_q, wide_k = (x.new_zeros(*x.shape[:-1], view.dim) for x in (q, k))
        wide_q[..., channels], wide_k[..., channels] = q, k
        queries, keys = view.both(wide_q, wide_k, positions, thing)
        return queries[..., channels], None if keys is None else keys[..., channels]

    return replace(view, run=run, dim=len(channels), order=None)
