"""One run of positions: from a start on, or behind a cache."""

from operator import index

import torch
from jaxtyping import Int64
from torch import SymInt, Tensor

HALF = 2**62


def consecutive(
    length: int, *, start: int = 0, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """``start, start + 1, …``: one unpadded sequence.

    Example:
        >>> consecutive(4)
        tensor([0, 1, 2, 3])
    """
    if type(length) is not int or type(start) is not int:  # torch would cut 2.5 to 2
        length, start = (n if isinstance(n, SymInt | Tensor) else index(n) for n in (length, start))
    if type(start) is int and start > HALF:  # start + length may be no int64
        return torch.arange(length, dtype=torch.int64, device=device) + start
    return torch.arange(start, start + length, dtype=torch.int64, device=device)


def decoding(
    cached: int, length: int = 1, *, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """The next ``length`` positions behind a cache that already holds ``cached`` tokens.

    Example:
        >>> decoding(7)
        tensor([7])
    """
    return consecutive(length, start=cached, device=device)
