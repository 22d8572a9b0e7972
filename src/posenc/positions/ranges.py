"""One run of positions: from a start on, or behind a cache."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.whole import check_whole_numbers


def consecutive(
    length: int, *, start: int = 0, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """``start, start + 1, …``: one unpadded sequence.

    Raises:
        TypeError: A number is not whole.
        ValueError: ``length`` is negative.

    Example:
        >>> consecutive(4)
        tensor([0, 1, 2, 3])
    """
    check_whole_numbers(length=length, start=start)
    # Under torch.compile and torch.export a length may be a symbol, which is never negative.
    if isinstance(length, int) and length < 0:
        raise ValueError(f"length is {length}; it must be 0 or more.")
    return torch.arange(start, start + length, dtype=torch.int64, device=device)


def decoding(
    cached: int, length: int = 1, *, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """The next ``length`` positions behind a cache that already holds ``cached`` tokens.

    Raises:
        TypeError: A number is not whole.
        ValueError: ``cached`` or ``length`` is negative.

    Example:
        >>> decoding(7)
        tensor([7])
    """
    check_whole_numbers(cached=cached, length=length)
    if isinstance(cached, int) and cached < 0:
        raise ValueError(f"cached is {cached}; a cache holds 0 tokens or more.")
    return consecutive(length, start=cached, device=device)
