"""How something is called that rotates by several coordinates a token: one axis at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import calls_of
from posenc.audit.adapters.rotary import rotary_of
from posenc.audit.adapters.rotary_view import HEADS, RotaryView
from posenc.audit.adapters.sizes import most_taken
from posenc.audit.report import CallFailedError, CannotCheckError, NotAskedError
from posenc.audit.subjects import Subject

NAMES = {2: ("rows", "columns"), 3: ("time", "rows", "columns")}
"""What axes are called, by how many there are."""

NEAR = 64
"""So many coordinates are asked along each axis, where there are as many."""

FAR = 1 << 20
"""By how much one coordinate of a numbered point counts more than the next."""


@dataclass(frozen=True)
class Form:
    """How a thing is given points."""

    kind: "type[OnAxis]"  # what holds it
    fresh: Callable[[], Any]  # gives a copy of it
    axes: int  # coordinates of a token
    last: bool  # whether positions are [batch, seq, axes], and not [axes, batch, seq]
    limits: tuple[int, ...] | None = None  # coordinates of each axis, where it refuses others

    @property
    def told(self) -> str:
        """How points are said, in words."""
        shape = f"[…, {self.axes}]" if self.last else f"[{self.axes}, …]"
        return f"coordinates {shape}, asked along each axis"

    def turned(self, axis: int | None) -> "OnAxis":
        """A fresh copy, asked along one axis, or at points by their numbers."""
        return self.kind(self.fresh(), axis, self).eval()

    def each(self) -> Iterator["OnAxis"]:
        """A fresh copy for each axis."""
        return map(self.turned, range(self.axes))

    def numbered(self, points: Tensor) -> Tensor:
        """One number for each of ``points [n, axes]``."""
        number = torch.zeros(len(points), dtype=torch.long)
        for coordinate in points.unbind(-1):
            number = number * FAR + coordinate
        return number

    def along(self, subject: Subject, axis: int) -> Subject:
        """The subject asked along one axis."""
        wrap = lambda: self.turned(axis)  # noqa: E731
        name = f"{subject.name} along {NAMES[self.axes][axis]}"
        return replace(subject, name=name, fresh=wrap, build=wrap)


class OnAxis(nn.Module):
    """A thing that takes several coordinates a token, asked along one; the others stand at 0.

    Without an ``axis`` positions are the numbers of points.
    """

    wrapped: Any

    def __init__(self, wrapped: Any, axis: int | None, form: Form):
        super().__init__()
        self.wrapped = wrapped  # a part, so that it trains and is cast with what holds it
        self.axis, self.form = axis, form
        if form.limits is not None and axis is not None:
            self.max_position_embeddings = form.limits[axis]

    def points(self, line: Tensor) -> Tensor:
        """Positions ``[*, seq]`` as points."""
        axes, limits = self.form.axes, self.form.limits
        if self.axis is None:
            each = [line // FAR**power % FAR for power in reversed(range(axes))]
        else:
            if limits is not None and bool((line >= limits[self.axis]).any()):
                raise CallFailedError(f"its axis has {limits[self.axis]} coordinates")
            each = [line * (axis == self.axis) for axis in range(axes)]
        return torch.stack(each, dim=-1 if self.form.last else 0)


class ByPoints(OnAxis):
    """Queries and keys with points."""

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        """Both rotated."""
        return self.wrapped(q, k, self.points(positions))


class OneByPoints(OnAxis):
    """One tensor with points."""

    def forward(self, x: Tensor, positions: Tensor) -> Any:
        """It rotated, or cosines and sines for it."""
        return self.wrapped(x, self.points(positions))


def readings(
    subject: Subject, layout: str | None, width: int | None
) -> Iterator[tuple[RotaryView, Form]]:
    """The ways to call something with points, each along an axis that turns."""
    thing = subject.fresh()
    calls = calls_of(thing) if callable(thing) else ()
    required = [call.required for call in calls if call.name == "subject"]
    kinds: list[type[OnAxis]] = [ByPoints] if {"q", "k", "positions"} in required else []
    if {"x", "positions"} in required or {"q", "positions"} in required:
        kinds.append(OneByPoints)
    for kind, (axes, last) in product(kinds, ((2, True), (3, True), (3, False))):
        form = Form(kind, subject.fresh, axes, last)
        for axis in range(axes):
            try:
                view = rotary_of(form.along(subject, axis), layout, width)
            except CannotCheckError:
                continue
            # with other coordinates a head would be wider than it says
            said = [getattr(thing, name, view.dim) for name in ("head_dim", "head_size")]
            if all(width == view.dim for width in said):
                yield view, replace(form, limits=_limits(form, view))
            break


def _limits(form: Form, view: RotaryView) -> tuple[int, ...] | None:
    """How many coordinates each axis has, where one has fewer than are asked.

    Each is counted at the ends of those before it: a table of all points, one after the other,
    takes more columns of its first row than it has.
    """
    every, limits = form.turned(None), []
    for axis in range(form.axes):
        ends = [max(n - 1, 0) for n in limits]

        def takes(count: int, ends: list[int] = ends, axis: int = axis) -> bool:
            point = torch.tensor([[*ends, count - 1, *[0] * (form.axes - axis - 1)]])
            x = torch.ones(1, HEADS, 1, view.dim)
            try:
                view.turned(x, by=every, at=form.numbered(point))
            except NotAskedError:
                return False
            return True

        limits.append(most_taken(takes, NEAR))
    return None if min(limits) == NEAR else tuple(limits)
