"""One run of positions: from a start on, or behind a cache."""

from numbers import Integral
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.guards import may_look
from posenc.positions.whole import check_whole_numbers, plain

FIRST, LAST = -(2**63), 2**63 - 1
"""The first and the last position that an int64 holds."""


def consecutive(
    length: int, *, start: int = 0, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """``start, start + 1, …``: one unpadded sequence.

    Raises:
        TypeError: ``length`` or ``start`` is no whole number.
        ValueError: ``length`` is negative, or the first or last position leaves int64.

    Example:
        >>> consecutive(4)
        tensor([0, 1, 2, 3])
    """
    check_whole_numbers(length=length, start=start)
    if type(length) is not int or type(start) is not int:
        length, start = _known(length), _known(start)
    # Under torch.compile and torch.export a length may be a symbol, which is never negative.
    if isinstance(length, Integral) and length < 0:
        raise ValueError(f"length is {length}; it must be 0 or more.")
    if type(start) is int and start < FIRST:
        raise ValueError(
            f"start is {start}, before the first int64, -2^63. Count from a later start: only "
            f"differences mean anything to relative encodings."
        )
    if type(start) is int and start > LAST // 2:
        return _near_the_end(length, start, device)
    return torch.arange(start, start + length, dtype=torch.int64, device=device)


def _known(number: Any) -> Any:
    """A number as Python's own; symbols and tensors of a graph as they are."""
    number = plain(number)
    return int(number) if isinstance(number, Tensor) and may_look(number) else number


def _near_the_end(length: int, start: int, device: torch.device | str | None) -> Tensor:
    """The same without the number past the last, which may be no int64."""
    if start + length - 1 > LAST:
        raise ValueError(
            f"{length} positions from {start} on leave int64, which ends at 2^63 - 1. Count from "
            f"an earlier start: only differences mean anything to relative encodings."
        )
    return torch.arange(length, dtype=torch.int64, device=device) + start


def decoding(
    cached: int, length: int = 1, *, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """The next ``length`` positions behind a cache that already holds ``cached`` tokens.

    Raises:
        TypeError: ``cached`` or ``length`` is no whole number.
        ValueError: One is negative.

    Example:
        >>> decoding(7)
        tensor([7])
    """
    check_whole_numbers(cached=cached)
    cached = _known(cached)
    if isinstance(cached, Integral) and cached < 0:
        raise ValueError(f"cached is {cached}; a cache holds 0 tokens or more.")
    return consecutive(length, start=cached, device=device)
