"""Products of matrices, and tensors joined to one, in their own dtype."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def product(x: Tensor, y: Tensor) -> Tensor:
    """``x @ y`` in the dtype of both, also inside autocast, which would round them to 16 bits."""
    with without_autocast(x):
        return x @ y


def products(x: Tensor, rows: Tensor) -> Tensor:
    """``x @ rowsᵀ`` in the dtype of ``x``, also inside autocast: scores are summed in float32."""
    return product(x, rows.to(x.dtype).mT)


def joined(parts: Sequence[Tensor], dim: int, join: Callable[..., Tensor] = torch.cat) -> Tensor:
    """``torch.cat`` or ``torch.stack`` in the dtype of the parts, also inside autocast.

    Inside autocast torch refuses to join parts in the one 16-bit dtype that is not its own.
    """
    with without_autocast(parts[0]):
        return join(parts, dim=dim)


def without_autocast(x: Tensor) -> AbstractContextManager:
    """Where operations on the device of ``x`` keep the dtypes of what they are given."""
    if x.is_meta or not torch.is_autocast_enabled(x.device.type):  # meta knows no autocast
        return nullcontext()
    return torch.autocast(x.device.type, enabled=False)
