"""Positions: one int64 tensor, ``[*batch, seq]``, whatever the way the tokens are laid out.

Every encoding takes explicit positions, so a token gets the same encoding in a plain batch, behind
left padding, in a packed row, from a cache, or on one rank of many. Each function here is one way
to lay tokens out.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor

Layout = Literal["contiguous", "zigzag"]


def plain(
    length: int, *, start: int = 0, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """``start, start + 1, …``: one unpadded sequence.

    Example:
        >>> plain(4)
        tensor([0, 1, 2, 3])
    """
    _not_negative("length", length)
    return torch.arange(start, start + length, dtype=torch.int64, device=device)


def _not_negative(name: str, value: int) -> None:
    if value < 0:
        raise ValueError(f"{name} is {value}; it must be 0 or more.")
