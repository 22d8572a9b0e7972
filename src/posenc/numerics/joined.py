"""Tensors joined to one, in their own dtype."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def joined(parts: Sequence[Tensor], dim: int, join: Callable[..., Tensor] = torch.cat) -> Tensor:
    """``torch.cat`` or ``torch.stack`` in the dtype of the parts, also inside autocast.

    Inside autocast torch refuses to join parts in the one 16-bit dtype that is not its own.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     joined([torch.ones(1, dtype=torch.bfloat16)] * 2, dim=0)
        tensor([1., 1.], dtype=torch.bfloat16)
    """
    first = parts[0]
    if first.is_meta or not torch.is_autocast_enabled(first.device.type):
        return join(parts, dim=dim)
    with torch.autocast(first.device.type, enabled=False):
        return join(parts, dim=dim)
