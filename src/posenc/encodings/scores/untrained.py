"""A warning of distances in buckets that no sequence of the trained length has."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.guards import may_look


def trained_rows(row_of: Callable[[Tensor], Tensor], length: int | None) -> frozenset[int] | None:
    """The rows of all distances in a sequence of ``length`` tokens; ``None`` without a length."""
    if length is None:
        return None
    check_whole(trained_length=length)
    return frozenset(row_of(torch.arange(1 - length, length, device="cpu")).unique().tolist())


def warn_untrained(rows: Tensor, trained: frozenset[int] | None, length: int | None) -> None:
    """Tell of rows that were not trained, in the same words each time: Python shows them once."""
    if trained is None or not may_look(rows) or trained.issuperset(rows.unique().tolist()):
        return
    told = f"A distance has a bucket that no sequence of trained_length {length} reaches."
    warnings.warn(told, stacklevel=3)
