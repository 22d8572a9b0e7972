"""How something is called that rotates tokens on a grid: one axis at a time, as on a line."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters import layouts
from posenc.audit.adapters.calls import (
    assignments,
    guarded,
    lengths_of,
    most_taken,
    widths_of,
)
from posenc.audit.adapters.rotary import rotary_of
from posenc.audit.adapters.rotary_view import HEADS, Both, RotaryView
from posenc.audit.report import CallFailedError, CannotCheckError, NotAskedError
from posenc.audit.subjects import Subject

AXES = ("rows", "columns")

ITS_GRID = "its grid has"
"""How a refusal begins that is ours: beyond what was found, nothing is asked."""

LONGEST = 64**2 + 1
"""The most tokens of a row of fixed length: those of 64 × 64 patches and a class token."""

NEAR = 64
"""So many rows and columns are asked point by point, where there are as many."""

ALIKE = 0.05
"""How far apart two steps may be that 16 bits have rounded."""


@dataclass(frozen=True)
class Form:
    """How a thing is given points.

    Attributes:
        kind: What holds it.
        fresh: Gives a copy of it.
        side: Rows of a square image, as many as columns, where tokens are said by their number.
        before: Tokens before its first patch, as a class token.
        count: All of its tokens.
        limits: Rows and columns that it has, where it refuses others.
    """

    kind: "type[OnAxis]"
    fresh: Callable[[], Any]
    side: int = 0
    before: int = 0
    count: int = 0
    limits: tuple[int, int] | None = None

    @property
    def told(self) -> str:
        """How points are said, in words."""
        if not self.count:
            return "two coordinates a token, asked along each"
        patches = self.side**2
        beside = f" and {self.count - patches} token beside them" if self.count > patches else ""
        return (
            f"a row of {self.count:,} tokens, the patches of a square of {self.side} × {self.side}"
            f"{beside}, asked along each axis"
        )

    def turned(self, axis: int, columns: int = 0) -> "OnAxis":
        """A fresh copy, asked along one axis, or at all points row after row."""
        return self.kind(self.fresh(), axis, self, columns).eval()

    def along(self, subject: Subject, axis: int) -> Subject:
        """The subject asked along one axis."""
        wrap = lambda: self.turned(axis)  # noqa: E731
        name = f"{subject.name} along {AXES[axis]}"
        return replace(subject, name=name, fresh=wrap, original=wrap, build=wrap)


class OnAxis(nn.Module):
    """A thing that takes two coordinates a token, asked along one while the other stands still.

    Args:
        wrapped: The thing.
        axis: That along which positions count.
        form: How it is given points.
        columns: Columns by which positions count all points, row after row, instead.
    """

    wrapped: Any

    def __init__(self, wrapped: Any, axis: int, form: Form, columns: int = 0):
        super().__init__()
        self.wrapped = wrapped  # a part, so that it trains and is cast with what holds it
        self.axis, self.form, self.columns = axis, form, columns
        if form.limits is not None:
            self.max_position_embeddings = form.limits[axis]

    def two(self, line: Tensor) -> Tensor:
        """Positions ``[*, seq]`` along the axis as points ``[*, seq, 2]``.

        Raises:
            CallFailedError: The grid has fewer.
        """
        if self.columns:
            return torch.stack((line // self.columns, line % self.columns), dim=-1)
        limits = self.form.limits
        if limits is not None and bool((line >= limits[self.axis]).any()):
            raise CallFailedError(f"{ITS_GRID} {limits[self.axis]} {AXES[self.axis]}")
        still = torch.zeros_like(line)
        return torch.stack((line, still) if self.axis == 0 else (still, line), dim=-1)


class ByPoints(OnAxis):
    """Queries and keys with points."""

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        """Both rotated."""
        return self.wrapped(q, k, self.two(positions))


class OneByPoints(OnAxis):
    """One tensor with points."""

    def forward(self, x: Tensor, positions: Tensor) -> Any:
        """It rotated."""
        return self.wrapped(x, self.two(positions))


class InSquare(OnAxis):
    """What rotates a row of tokens that are the patches of a square image, row after row."""

    def places(self, line: Tensor) -> Tensor:
        """The numbers of tokens at positions ``[seq]``.

        Raises:
            CallFailedError: Some lie outside of the image.
        """
        points = self.two(line)
        return self.form.before + points[:, 0] * self.form.side + points[:, 1]


class InWholeRow(nn.Module):
    """All tokens of a row whose length is fixed.

    Args:
        wrapped: The thing.
        count: Tokens of the row.
        stride: Tokens from one position to the next.
    """

    wrapped: Any

    def __init__(self, wrapped: Any, count: int, stride: int = 1):
        super().__init__()
        self.wrapped = wrapped
        self.max_position_embeddings, self.stride = count, stride

    def placed(self, positions: Tensor, *given: Tensor) -> list[Tensor]:
        """What becomes of tokens at their places in rows that are empty elsewhere."""
        count = self.max_position_embeddings
        if positions.ndim != 1:
            raise ValueError("one place a token, for all rows alike")
        positions = positions * self.stride
        if bool((positions >= count).any()) or bool((positions < 0).any()):
            raise IndexError(f"the row has {count} tokens")
        if torch.equal(positions, torch.arange(count)):
            return self.whole(*given)
        made = [
            [
                each[..., place : place + 1, :]
                for each in self.whole(*(_alone(part, place, count) for part in parts))
            ]
            for *parts, place in zip(
                *(x.split(1, -2) for x in given), positions.tolist(), strict=True
            )
        ]
        return [torch.cat(tokens, dim=-2) for tokens in zip(*made, strict=True)]

    def whole(self, *given: Tensor) -> list[Tensor]:
        """What becomes of whole rows, one for each that is given."""
        made = self.wrapped(*given)
        made = [made] if isinstance(made, Tensor) else list(made)
        if len(made) != len(given):
            raise ValueError(f"{len(given)} rows give {len(made)}")
        return made


class OneInWholeRow(InWholeRow):
    """One tensor of them."""

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """It rotated."""
        return self.placed(positions, x)[0]


class BothInWholeRows(InWholeRow):
    """Queries and keys of them."""

    def forward(self, q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, ...]:
        """Both rotated."""
        return tuple(self.placed(positions, q, k))


def _alone(token: Tensor, place: int, count: int) -> Tensor:
    """A token ``[*, 1, dim]`` among so many that are empty."""
    whole = token.new_zeros(*token.shape[:-2], count, token.shape[-1])
    whole[..., place : place + 1, :] = token
    return whole


def readings(
    subject: Subject, layout: str | None, width: int | None
) -> Iterator[tuple[RotaryView, Form]]:
    """The ways to call something with points, each along an axis that turns."""
    for kind in _kinds(subject):
        form = Form(kind, subject.fresh)
        for axis in range(2):
            try:
                view = rotary_of(form.along(subject, axis), layout, width)
            except CannotCheckError:
                continue
            if _is_as_wide(view, subject.fresh()):
                yield view, replace(form, limits=_limits(form, view))
            break


def _is_as_wide(view: RotaryView, thing: Any) -> bool:
    """Whether a head is as wide as it says; with three coordinates a token it would be wider."""
    said = [getattr(thing, name, view.dim) for name in ("head_dim", "head_size")]
    return all(width == view.dim for width in said)


def _kinds(subject: Subject) -> Iterator[type[OnAxis]]:
    thing = subject.fresh()
    if not callable(thing):
        return
    required = [{p.role for p in parameters if p.required} for parameters in assignments(thing)]
    if {"q", "k", "positions"} in required:
        yield ByPoints
    if {"x", "positions"} in required or {"q", "positions"} in required:
        yield OneByPoints


FAR = 1 << 20
"""Columns by which a number tells a row and a column apart."""


def _limits(form: Form, view: RotaryView) -> tuple[int, int] | None:
    """How many rows and columns it has, where it has fewer than are asked.

    Columns are counted in the last row, since a table of all points, one after the other, takes
    more columns of its first row than it has.
    """
    every = form.turned(0, FAR)
    takes = lambda row, column: _takes(view, every, row * FAR + column)  # noqa: E731
    rows = most_taken(lambda n: takes(n - 1, 0), NEAR)
    columns = most_taken(lambda n: takes(max(rows - 1, 0), n - 1), NEAR)
    return None if min(rows, columns) == NEAR else (rows, columns)


def _takes(view: RotaryView, by: OnAxis, position: int) -> bool:
    try:
        view.turned(torch.ones(1, HEADS, 1, view.dim), by=by, at=torch.tensor([position]))
    except NotAskedError:
        return False
    return True


def row_of(subject: Subject, layout: str | None, width: int | None) -> RotaryView | None:
    """Something that takes all tokens of a row of fixed length at once; None for anything else."""
    thing = subject.fresh()
    if not isinstance(thing, nn.Module) or not callable(thing):
        return None
    for kind, count in product((OneInWholeRow, BothInWholeRows), _counts(thing)):
        if not _keeps_shape(kind(thing, count), width):
            continue
        # where one row of an image is turned alike, positions that are rows apart are not
        for stride, order in product((1, isqrt(count)), (layout,) if layout else ("bhsd", "bsd")):
            try:
                view = rotary_of(_in_whole_row(subject, kind, count, stride), order, width)
            except CannotCheckError:
                continue
            axes, both = layouts.SAID[view.layout], kind is BothInWholeRows
            what, given = ("queries and keys", "q, k") if both else ("queries", "x")
            said = f"rotates {what} {axes} of width {view.dim}, all {count:,} tokens of a row"
            row = _in_whole_row(subject, kind, count)
            return replace(view, subject=row, said=f"{said} at once; called as subject({given})")
    return None


def _in_whole_row(subject: Subject, kind: type[InWholeRow], count: int, stride: int = 1) -> Subject:
    wrap = lambda: kind(subject.fresh(), count, stride).eval()  # noqa: E731
    return replace(subject, fresh=wrap, original=wrap, build=wrap)


def _counts(thing: Any) -> list[int]:
    """How many tokens it may be built for: a table of a square may leave a class token alone."""
    found = lengths_of(thing) if isinstance(thing, nn.Module) else []
    found = [n for n in found if 16 <= n <= LONGEST][:3]
    return list(dict.fromkeys(n + k for n in found for k in (0, int(isqrt(n) ** 2 == n))))


def _keeps_shape(row: InWholeRow, width: int | None) -> bool:
    """Whether all of its tokens, of some width, come back as many."""
    tensors = 2 if isinstance(row, BothInWholeRows) else 1
    count = row.max_position_embeddings
    for dim in (width,) if width else widths_of(row.wrapped)[:10]:
        for shape in ((1, HEADS, count, dim), (1, count, dim)):
            given = [torch.zeros(shape) for _ in range(tensors)]
            with suppress(CallFailedError):
                made = guarded(lambda given=given: row.whole(*given))
                if all(isinstance(each, Tensor) and each.shape == shape for each in made):
                    return True
    return False


def squares(view: RotaryView, *, sound: bool = False) -> Iterator[tuple[RotaryView, Form]]:
    """What rotates a row of tokens, as patches of the square images whose table it may keep.

    A class token may stand before the patches or behind them. With ``sound``, only those that may
    be without a fault.
    """
    thing = view.subject.fresh()
    counts = [thing.max_position_embeddings] if isinstance(thing, InWholeRow) else _counts(thing)
    for count in counts:
        for beside, before in ((0, 0), (1, 1), (1, 0)):
            side = isqrt(count - beside)
            if side**2 != count - beside:
                continue
            form = Form(InSquare, view.subject.fresh, side, before, count, (side, side))
            if (not sound or _goes_by_axes(view, form)) and _turns(view, count):
                yield _on_square(view, form), form


def _turns(view: RotaryView, count: int) -> bool:
    """Whether it takes so many tokens, and some step among them is another than the first.

    The steps from row to row of an image are; on a line none is.
    """
    edges = {isqrt(count - beside) for beside in (0, 1)}
    places = sorted({0, *(n for edge in edges for n in (edge - 1, edge, 2 * edge - 1, 2 * edge))})
    at = torch.tensor([p + step for p in places for step in (0, 1)])
    basis = torch.eye(view.dim)[:, None, None].expand(-1, HEADS, len(at), -1).contiguous()
    try:
        made = _at(view, basis, at, count)[:, 0].permute(1, 2, 0).double()
    except NotAskedError:
        return False
    if not torch.isfinite(made).all():
        return False
    steps = made[1::2] @ torch.linalg.pinv(made[::2])
    return bool((steps - steps[:1]).abs().max() > ALIKE)


def _goes_by_axes(view: RotaryView, form: Form) -> bool:
    """Whether neighbors along an axis are turned apart alike, wherever on the other they stand.

    All tokens at once, with one content: what fails here is no rotation by rows and columns, as a
    look at each of them would find out at length.
    """
    probe = torch.randn(view.dim, generator=torch.Generator().manual_seed(3))
    x = probe.expand(1, HEADS, form.count, -1).contiguous()
    try:
        made = view.both(x, x[:, : view.kv_heads], torch.arange(form.count)[None])[0]
    except NotAskedError:
        return False
    patches = made[0, 0, form.before : form.before + form.side**2].double()
    patches = patches.unflatten(0, (form.side, form.side))
    for points in (patches, patches.transpose(0, 1)):
        along = (points[:, 1:] * points[:, :-1]).sum(-1) / patches[0, 0].square().sum()
        if not bool((along - along[:1]).abs().max() < 2 * ALIKE):
            return False
    return True


def _at(view: RotaryView, x: Tensor, places: Tensor, count: int) -> Tensor:
    """Queries as tokens at some places of a row of so many, which is empty elsewhere."""
    whole = x.new_zeros(*x.shape[:2], count, x.shape[-1])
    whole[..., places, :] = x
    line = torch.arange(count).expand(len(x), -1)
    return view.both(whole, whole[:, : view.kv_heads], line)[0][..., places, :]


def _on_square(view: RotaryView, form: Form) -> RotaryView:
    """The row asked along one axis of its square, or at all of its points.

    Tokens stand in one row, but where two would have one place: then each is alone in its own.
    """

    def run(by: InSquare, q: Tensor, k: Tensor, positions: Tensor) -> Both:
        if bool((positions != positions[:1]).any()):
            raise CallFailedError("one place a token, for all rows alike")
        places, line = by.places(positions[0]), torch.arange(form.count).expand(len(q), -1)
        if len(places.unique()) == len(places):
            wholes = [x.new_zeros(*x.shape[:2], form.count, x.shape[-1]) for x in (q, k)]
            for whole, x in zip(wholes, (q, k), strict=True):
                whole[..., places, :] = x
            made = view.run(by.wrapped, wholes[0], wholes[1], line)
            return tuple(x if x is None else x[..., places, :] for x in made)  # type: ignore[return-value]
        sides: list[list[Tensor | None]] = [[], []]
        for one, other, place in zip(q.split(1, 2), k.split(1, 2), places.tolist(), strict=True):
            alone = [_alone(x, place, form.count) for x in (one, other)]
            for side, x in zip(sides, view.run(by.wrapped, alone[0], alone[1], line), strict=True):
                side.append(x if x is None else x[..., place : place + 1, :])
        queries, keys = (None if x[:1] == [None] else torch.cat(x, 2) for x in sides)  # type: ignore[arg-type]
        return queries, keys  # type: ignore[return-value]

    return replace(view, run=run, moves="line", unsaid=None, unheard=None, said="")
