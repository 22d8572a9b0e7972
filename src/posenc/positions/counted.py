"""Counts of one exact step, handled as a tensor is."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.guards import floating, has_float64, may_look
from posenc.positions.steps import (
    Step,
    Text,
    factors,
    in_one_step,
    read,
    the_one,
    written,
)

NOWHERE = -(2**63)
"""Every coordinate of the first token without a place; the next ones count on from there."""

MANY = 2**16
"""The number of marks for tokens without a place."""

CHUNK = 1 << 16
"""So many numbers at a time stay in cache."""

Coords = TypeVar("Coords", bound="Counted")


class Counted:
    """What ``Coordinates`` have in common with tensors: shape, index, device, joining."""

    values: Int64[Tensor, "*shape"]
    scale_text: Text

    def with_values(
        self: Coords, change: Callable[[Tensor], Tensor], text: Text | None = None
    ) -> Coords:
        """The same scale, or another, with ``values`` changed."""
        made = type(self).__new__(type(self))
        made.values = change(self.values)
        made.scale_text = self.scale_text if text is None else text
        return made

    @property
    def shape(self) -> torch.Size:
        """The shape of the coordinates."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.values.ndim

    @property
    def device(self) -> torch.device:
        """The device of the coordinates."""
        return self.values.device

    @property
    def scale(self) -> Step:
        """The size of a step: a ``Fraction``, or one for each entry of the last axis."""
        return read(self.scale_text)

    def numel(self) -> int:
        """The number of coordinates."""
        return self.values.numel()

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Coordinates({self.values!r}, scale={self.scale!r})"

    def __getitem__(self: Coords, index: Any) -> Coords:
        """Some of them, as of a tensor; ``[..., axis]`` takes the scale of that axis along."""
        index = torch.as_tensor(index) if isinstance(index, list) else index
        values, text = self.values[index], self.scale_text
        if isinstance(text, tuple):
            text = text[_of_last_axis(index, self.ndim)]
            if isinstance(text, tuple) and values.shape[-1:] != (len(text),):
                raise ValueError(
                    f"The last axis has {len(text)} scales, one an entry; put new axes before it."
                )
        return self.with_values(lambda _: values, text)

    def unbind(self: Coords, dim: int = -1) -> tuple[Coords, ...]:
        """The coordinates along each axis, each with its own scale.

        Example:
            >>> from posenc.positions import Coordinates
            >>> y, x = Coordinates([[0.5, 2.0], [1.5, 3.0]]).unbind(-1)
            >>> y.tolist()
            [Fraction(1, 2), Fraction(3, 2)]
        """
        if dim not in (-1, self.ndim - 1):
            raise ValueError(f"dim is {dim}; coordinates are unbound along their last axis, -1.")
        columns = zip(self.values.unbind(-1), self._texts(), strict=True)
        return tuple(self.with_values(lambda _, own=own: own, text) for own, text in columns)

    def to(self: Coords, device: torch.device | str) -> Coords:
        """The same on another device."""
        return self.with_values(lambda values: values.to(device))

    def unsqueeze(self: Coords, dim: int) -> Coords:
        """With one axis more, as of a tensor."""
        the_one(self.scale)
        return self.with_values(lambda values: values.unsqueeze(dim))

    def expand(self: Coords, *sizes: int) -> Coords:
        """Repeated without a copy, as of a tensor."""
        return self.with_values(lambda values: values.expand(*sizes))

    def clamp(self: Coords, *, min: int) -> Coords:
        """None below 0, as of a tensor; 0 is the bound that every scale has."""
        if min != 0:
            raise ValueError(f"min is {min}; coordinates are clamped at 0 alone.")
        return self.with_values(lambda values: values.clamp(min=0))

    def floats(self, dtype: torch.dtype = torch.float64) -> Float[Tensor, "*shape"]:
        """As floats: within 3 units in the last place of float64, and one rounding to ``dtype``.

        Fewer than 2^53 steps of a power of two are exact in float64.

        Example:
            >>> from fractions import Fraction
            >>> from posenc.positions import Coordinates
            >>> Coordinates(torch.tensor([1, 2]), scale=Fraction(1, 3)).floats(torch.float32)
            tensor([0.3333, 0.6667])
        """
        dtype = floating(dtype)
        if not has_float64(self.device):
            return self.to("cpu").floats(dtype).to(self.device)
        values, text = self.values, self.scale_text
        if values.numel() > CHUNK and isinstance(text, str) and may_look(values):
            parts = values.reshape(-1).split(CHUNK)
            made = [self.with_values(lambda _, some=some: some).floats(dtype) for some in parts]
            return torch.cat(made).view(self.shape)
        wide = values.double()
        # By tensors: dividing by a number, torch multiplies with its rounded inverse.
        above, below = (None if each == 1.0 else wide.new_tensor(each) for each in factors(text))
        wide = wide if above is None else wide.mul_(above)
        wide = wide if below is None else wide.div_(below)
        return rounded(wide, dtype)

    def tolist(self) -> Any:
        """As fractions, exactly, in lists."""
        return _as_fractions(self.values.tolist(), self.scale)

    def _texts(self) -> tuple[str, ...]:
        """The scale of each entry of the last axis."""
        text = self.scale_text
        return text if isinstance(text, tuple) else (text,) * self.shape[-1]

    @staticmethod
    def stack(parts: Sequence[Coords], dim: int = 0) -> Coords:
        """As ``torch.stack``; along a new last axis (``dim=-1``) each part keeps its own scale.

        Example:
            >>> from posenc.positions import Coordinates
            >>> y, x = Coordinates([0.5, 1.5]), Coordinates([0, 1])
            >>> Coordinates.stack([y, x], dim=-1)
            Coordinates(tensor([[1, 0],
                    [3, 1]]), scale=(Fraction(1, 2), Fraction(1, 1)))
        """
        text: Any = None
        if dim in (-1, parts[0].ndim):
            texts = tuple(written(the_one(part.scale)) for part in parts)
            text = texts if len(set(texts)) > 1 else texts[0]
        else:
            parts = common_scale(*parts)
        return parts[0].with_values(lambda _: torch.stack([p.values for p in parts], dim), text)

    @staticmethod
    def cat(parts: Sequence[Coords], dim: int = 0) -> Coords:
        """As ``torch.cat``, at a ``common_scale``; along the last axis each part keeps its own,
        where one has a scale an axis.

        Example:
            >>> from fractions import Fraction
            >>> from posenc.positions import Coordinates
            >>> Coordinates.cat([Coordinates([0.5]), Coordinates([Fraction(1, 3)])])
            Coordinates(tensor([3, 2]), scale=Fraction(1, 6))
        """
        text, along = None, dim in (-1, parts[0].ndim - 1)
        if along and any(isinstance(part.scale_text, tuple) for part in parts):
            text = tuple(text for part in parts for text in part._texts())
        else:
            parts = common_scale(*parts)
        return parts[0].with_values(lambda _: torch.cat([p.values for p in parts], dim), text)


def common_scale(*given: Coords) -> tuple[Coords, ...]:
    """The same coordinates, all in steps of one size.

    All stay exact where 62 bits hold them; else they are rounded, as ``Coordinates`` says.

    Example:
        >>> from fractions import Fraction
        >>> from posenc.positions import Coordinates
        >>> halves, thirds = common_scale(Coordinates([0.5]), Coordinates([Fraction(1, 3)]))
        >>> halves.values, thirds.values, thirds.scale
        (tensor([3]), tensor([2]), Fraction(1, 6))
    """
    if len({each.scale_text for each in given}) == 1:
        return given
    if any(map(_has_marks, given)):
        raise ValueError("Tokens that stand nowhere cannot be moved; call prefixed at the end.")
    axes = {len(each.scale_text) for each in given if isinstance(each.scale_text, tuple)}
    if not axes:
        values, step = in_one_step([(each.values, the_one(each.scale)) for each in given])
        pairs = zip(given, values, strict=True)
        return tuple(each.with_values(lambda _, n=n: n, written(step)) for each, n in pairs)
    if len(axes) > 1:
        raise ValueError(f"Coordinates have {sorted(axes)} axes; they must have as many.")
    rows = [each.expand(*each.shape[:-1], *axes).unbind(-1) for each in given]
    columns = [common_scale(*column) for column in zip(*rows, strict=True)]
    return tuple(given[0].stack(row, dim=-1) for row in zip(*columns, strict=True))


def _has_marks(given: Counted) -> bool:
    """Whether there are points that stand nowhere, as far as can be seen."""
    values = given.values
    looks = values.ndim >= 2 and may_look(values)
    return looks and bool((values < NOWHERE + MANY).all(-1).any())


def _as_fractions(values: Any, step: Step) -> Any:
    """Lists of whole numbers, each times its step."""
    if not isinstance(values, list):
        return values * step
    if isinstance(step, tuple) and values and not isinstance(values[0], list):
        return [value * own for value, own in zip(values, step, strict=True)]
    return [_as_fractions(each, step) for each in values]


def _of_last_axis(index: Any, ndim: int) -> Any:
    """What an index asks of the last axis."""
    taken = [each for each in (index if isinstance(index, tuple) else (index,)) if each is not None]
    reaches = len(taken) == ndim or any(each is Ellipsis for each in taken)
    return taken[-1] if reaches and taken[-1] is not Ellipsis else slice(None)
