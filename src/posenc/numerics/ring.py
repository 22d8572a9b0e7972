"""Distances around a ring."""

import torch
from jaxtyping import Int64
from torch import Tensor


def around(distance: Int64[Tensor, "*shape"], period: int) -> Int64[Tensor, "*shape"]:
    """The shorter way around a ring, within ±period/2.

    Example:
        >>> around(torch.tensor([0, 2, 3, -3, 4, 5, 6, -5]), 6)
        tensor([ 0,  2,  3, -3, -2, -1,  0,  1])
    """
    forward = distance.remainder(period)
    back = forward - period
    half = period - forward == forward
    return torch.where(half & (distance < 0), back, torch.where(forward > -back, back, forward))
