"""Where two tensors part: how many elements, by how many units in the last place, where first."""

from dataclasses import dataclass

import torch
from torch import Tensor

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class Difference:
    """How two tensors of one shape and dtype differ."""

    name: str  # of what
    count: int  # elements whose bits differ
    total: int  # elements
    by_one: int = 0  # those that differ by one unit in the last place
    most_ulp: int = 0  # the largest number of representable values between two elements
    largest: float = 0.0  # the largest absolute difference
    position: int | None = None  # the first position at which elements differ; None where none does
    pair: int | None = None  # the first pair there
    values: tuple[float, float] | None = None  # the two values there

    @property
    def is_none(self) -> bool:
        """Whether all bits are equal."""
        return self.count == 0


def difference(name: str, a: Tensor, b: Tensor, positions: Tensor) -> Difference:
    """How ``a`` and ``b`` differ, ``[*, positions, 2, pairs]``, the first axes read as one."""
    a, b = a.flatten(0, -4), b.flatten(0, -4)
    apart = (ordered(a) - ordered(b)).abs()
    if not apart.any():
        return Difference(name, 0, a.numel())
    row = int(apart.amax((0, 2, 3)).nonzero()[0])
    pair, head, half = apart[:, row].permute(2, 0, 1).nonzero()[0].tolist()
    where = (head, row, half, pair)
    return Difference(
        name, int((apart > 0).sum()), a.numel(), int((apart == 1).sum()), int(apart.max()),
        (a.double() - b.double()).abs().max().item(), int(positions[row]), pair,
        (float(a[where]), float(b[where])),
    )  # fmt: skip


def ordered(x: Tensor) -> Tensor:
    """Whole numbers in the order of floating ones: neighbors differ by 1, and 0 is −0."""
    whole = INTEGERS[x.element_size()]
    bits = x.contiguous().view(whole).long()
    magnitude = bits & torch.iinfo(whole).max
    return torch.where(bits < 0, -magnitude, magnitude)
