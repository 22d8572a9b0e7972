"""How something is called that rotates tokens on a grid: one axis at a time, as on a line."""

from collections.abc import Iterator
from dataclasses import replace
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.adapters.calls import assignments, lengths_of
from posenc.audit.adapters.rotary import RotaryView, rotary_of
from posenc.audit.report import CannotCheckError
from posenc.audit.subjects import Subject

AXES = ("rows", "columns")


class OnAxis(nn.Module):
    """A thing that takes two coordinates a token, asked along one while the other stands still."""

    wrapped: Any

    def __init__(self, wrapped: Any, axis: int, other: int = 0):
        super().__init__()
        object.__setattr__(self, "wrapped", wrapped)  # its buffers are not ours
        self.axis, self.other = axis, other

    def two(self, line: Tensor) -> Tensor:
        """Positions ``[*, seq]`` along the axis as points ``[*, seq, 2]``."""
        still = torch.full_like(line, self.other)
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


class InWholeImage(OnAxis):
    """One tensor of all tokens of a square image, its rows one after the other."""

    def __init__(self, wrapped: Any, axis: int, other: int = 0, side: int = 0):
        super().__init__(wrapped, axis, other)
        self.max_position_embeddings = self.side = side

    def forward(self, x: Tensor, positions: Tensor) -> Tensor:
        """Tokens at their places in an image that is empty elsewhere."""
        points = self.two(positions)
        if positions.ndim != 1:
            raise ValueError("one place a token, for all rows alike")
        if bool((points >= self.side).any()) or bool((points < 0).any()):
            raise IndexError(f"the image has {self.side} rows and columns")
        made = []
        for token, (row, column) in enumerate(points.tolist()):
            image = x.new_zeros(*x.shape[:-2], self.side**2, x.shape[-1])
            image[..., row * self.side + column, :] = x[..., token, :]
            made.append(self.wrapped(image)[..., row * self.side + column, :])
        return torch.stack(made, dim=-2)


def axes_of(
    subject: Subject, layout: str | None, width: int | None
) -> tuple[RotaryView, type[OnAxis]]:
    """How something that rotates tokens on a grid is called along its first axis that turns.

    Raises:
        CannotCheckError: It does not, in any form known here.
    """
    for kind, orders in _forms(subject):
        for axis in range(2):
            for order in (layout,) if layout else orders:
                try:
                    view = rotary_of(along(subject, kind, axis), order, width)
                except CannotCheckError:
                    continue
                return view, kind
    raise CannotCheckError("nothing that rotates queries and keys on a grid")


def along(subject: Subject, kind: type[OnAxis], axis: int, other: int = 0) -> Subject:
    """The subject asked along one axis."""
    wrap = lambda: turned(subject, kind, axis, other)  # noqa: E731
    name = f"{subject.name} along {AXES[axis]}"
    return replace(subject, name=name, fresh=wrap, original=wrap, build=wrap)


def turned(subject: Subject, kind: type[OnAxis], axis: int, other: int = 0) -> OnAxis:
    """A fresh copy, asked along one axis."""
    thing = subject.fresh()
    if kind is InWholeImage:
        return InWholeImage(thing, axis, other, side_of(thing)).eval()
    return kind(thing, axis, other).eval()


def _forms(subject: Subject) -> Iterator[tuple[type[OnAxis], tuple[str | None, ...]]]:
    thing = subject.fresh()
    if not callable(thing):
        return
    required = [{p.role for p in parameters if p.required} for parameters in assignments(thing)]
    if {"q", "k", "positions"} in required:
        yield ByPoints, (None,)
    if {"x", "positions"} in required or {"q", "positions"} in required:
        yield OneByPoints, (None,)
    if {"x"} in required and side_of(thing):
        yield InWholeImage, ("bhsd", "bsd")


def side_of(thing: Any) -> int:
    """Rows of a square image, as many as columns, of whose tokens a thing keeps a table; or 0."""
    if not isinstance(thing, nn.Module):
        return 0
    squares = [isqrt(n) for n in lengths_of(thing) if n >= 16 and isqrt(n) ** 2 == n]
    return squares[0] if squares else 0
