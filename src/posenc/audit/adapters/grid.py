"""How something is called that rotates by several coordinates a token."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.calls import answers, most_taken
from posenc.audit.adapters.rotary import HEADS, Both, RotaryView, rotary_of
from posenc.audit.report import CallFailedError, CannotCheckError
from posenc.audit.subjects import Subject

NAMES = {2: ("rows", "columns"), 3: ("time", "rows", "columns")}  # of axes, by their count
NEAR = 64  # so many coordinates are asked along each axis, where there are as many
FAR = 1 << 20  # by how much one coordinate of a numbered point counts more than the next


@dataclass(frozen=True)
class Form:
    """How a thing is given points: by their numbers, for what counts positions."""

    axes: int  # coordinates of a token
    last: bool  # whether positions are [batch, seq, axes], and not [axes, batch, seq]
    limits: tuple[int, ...] | None = None  # coordinates of each axis, where it refuses others

    @property
    def told(self) -> str:
        """How points are said, in words."""
        shape = f"[…, {self.axes}]" if self.last else f"[{self.axes}, …]"
        return f"coordinates {shape}, asked along each axis"

    def numbered(self, points: Tensor) -> Tensor:
        """One number for each of ``points [*, axes]``, all beyond those of a line."""
        weights = FAR ** torch.arange(self.axes).flip(0)
        return FAR**self.axes + (points * weights).sum(-1)

    def points(self, numbers: Tensor) -> Tensor:
        """Numbers ``[*, seq]`` as points; those of a line, 0, 1, …, as points of the diagonal."""
        size = FAR**self.axes
        each = torch.unravel_index(numbers % size, (FAR,) * self.axes)
        points = [torch.where(numbers < size, numbers, coordinate) for coordinate in each]
        return torch.stack(points, dim=-1 if self.last else 0)

    def along(self, view: RotaryView, axis: int) -> RotaryView:
        """The same asked along one axis; the other coordinates stand at 0."""
        limit = self.limits[axis] if self.limits is not None else None

        def run(thing: Any, q: Tensor, k: Tensor, line: Tensor) -> Both:
            if limit is not None and bool((line >= limit).any()):
                raise CallFailedError(f"its axis has {limit} coordinates")
            points = torch.zeros(*line.shape, self.axes, dtype=torch.long)
            points[..., axis] = line
            return view.run(thing, q, k, self.numbered(points))

        return replace(view, run=run, limit=limit)


def readings(
    subject: Subject, layout: str | None, width: int | None
) -> Iterator[tuple[RotaryView, Form]]:
    """The ways to call something with points, as far as it turns along their diagonal."""
    thing = subject.fresh()
    for form in (Form(2, True), Form(3, True), Form(3, False)):
        try:
            view = rotary_of(subject, layout, width, points=form.points)
        except CannotCheckError:
            continue
        # with other coordinates a head would be wider than it says
        said = [getattr(thing, name, view.dim) for name in ("head_dim", "head_size")]
        if view.moves in ("rows", "line") and all(width == view.dim for width in said):
            yield view, replace(form, limits=_limits(form, view))


def _limits(form: Form, view: RotaryView) -> tuple[int, ...] | None:
    """How many coordinates each axis has, where one has fewer than are asked.

    Each is counted at the ends of those before it: a table of all points, one after the other,
    takes more columns of its first row than it has.
    """
    limits: list[int] = []
    for axis in range(form.axes):
        ends = [max(n - 1, 0) for n in limits]

        def takes(count: int, ends: list[int] = ends, axis: int = axis) -> bool:
            point = torch.tensor([[*ends, count - 1, *[0] * (form.axes - axis - 1)]])
            x = torch.ones(1, HEADS, 1, view.dim)
            return answers(lambda: view.turned(x, at=form.numbered(point)))

        limits.append(most_taken(takes, NEAR))
    return None if min(limits) == NEAR else tuple(limits)
