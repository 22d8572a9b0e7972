"""Points of a grid, for images, video and volumes."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.ranges import consecutive


def grid(*sizes: int, device: torch.device | str | None = None) -> Int64[Tensor, "seq axes"]:
    """Every point of a grid, row after row: ``grid(height, width)`` gives ``(y, x)``.

    Raises:
        ValueError: No size is given, or one is negative.

    Example:
        >>> grid(2, 3).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    if not sizes or min(sizes) < 0:
        raise ValueError(f"sizes are {sizes}; give one or more, each 0 or more.")
    axes = [consecutive(size, device=device) for size in sizes]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)
