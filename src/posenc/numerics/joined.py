"""Tensors joined to one, in their own dtype."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from posenc.numerics.product import without_autocast


def joined(parts: Sequence[Tensor], dim: int, join: Callable[..., Tensor] = torch.cat) -> Tensor:
    """``torch.cat`` or ``torch.stack`` in the dtype of the parts, also inside autocast.

    Inside autocast torch refuses to join parts in the one 16-bit dtype that is not its own.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     joined([torch.ones(1, dtype=torch.bfloat16)] * 2, dim=0)
        tensor([1., 1.], dtype=torch.bfloat16)
    """
    with without_autocast(parts[0]):
        return join(parts, dim=dim)
