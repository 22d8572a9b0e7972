"""What was seen of steps and their rests when they were made, and how large they are."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor

from posenc._guards import has_float64, may_look
from posenc.positions.words import as_floats, of_floats

NEAR, FARTHEST = 2**62, 2**64
"""Below so many steps, no difference of two leaves int64; and what no count reaches."""

LONG = 2**31
"""Below so many steps, their differences and 20 bits of a rest are what float64 holds."""


class Seen(NamedTuple):
    """What was seen of steps with rests when they were made, and need not be looked for again.

    Attributes:
        below: What no size reaches: ``LONG``, ``NEAR`` or ``FARTHEST``.
        held: Each with its rest as float64, if that holds all of them, as what was a float is one
            still. Not to be written to.
        axis: Which entry of the last axis of ``held`` is meant, as most who take coordinates apart
            read no floats of them.
    """

    below: int
    held: Float64[Tensor, "*points"] | None
    axis: int | None = None

    @property
    def doubles(self) -> Float64[Tensor, "*shape"] | None:
        """Each with its rest as float64, if that holds all of them."""
        return self.held if self.held is None or self.axis is None else self.held[..., self.axis]

    def of_axis(self, axis: int) -> "Seen":
        """The same of one entry of the last axis."""
        return Seen(self.below, self.doubles, axis)

    def each(self, change: Callable[[Tensor], Tensor]) -> "Seen":
        """The same of steps that are put elsewhere, as by an index."""
        doubles = self.doubles
        return self if doubles is None else Seen(self.below, change(doubles))


UNSEEN = Seen(FARTHEST, None)


class Kept(NamedTuple):
    """What was seen, of which tensors, and how often torch had counted a write to them."""

    seen: Seen
    values: Tensor
    rest: Tensor
    writes: int


def seen_of(values: Tensor, rest: Tensor | None) -> Seen:
    """What is kept of the steps of numbers that were taken apart."""
    if rest is None:
        return UNSEEN
    size = size_of(values)
    if size is None or not (values.is_cpu or has_float64(values.device)):
        return UNSEEN
    doubles = as_floats(values, rest)
    is_each = all(map(torch.equal, of_floats(doubles), (values, rest)))
    return Seen(LONG if size + 1 < LONG else NEAR, doubles if is_each else None)


def counted(words: Tensor) -> Tensor:
    """The same in a tensor whose writes torch counts."""
    with torch.inference_mode(mode=False):
        return words.clone()


def adds_up(first: Tensor, second: Tensor, bound: int) -> bool:
    """Whether no sum leaves ``bound``, as far as can be seen."""
    size, other = _sizes(first, second)
    return size is None or other is None or size + other <= bound


def _sizes(first: Tensor, second: Tensor) -> tuple[int | None, int | None]:
    size = size_of(first)
    return size, size if second is first else size_of(second)


def reach_of(first: Tensor, second: Tensor) -> int | None:
    """The largest |value| of both, in one look."""
    if second is first or not may_look(first):
        return size_of(first)
    return size_of(torch.cat((first.flatten(), second.flatten())))


def size_of(values: Tensor) -> int | None:
    """The largest |value|, where anybody can look."""
    if not may_look(values) or not values.numel():
        return None
    low, high = values.aminmax()
    return max(-int(low), int(high))
