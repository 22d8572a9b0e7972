"""Products of matrices in their own dtype."""

import torch
from torch import Tensor


def product(x: Tensor, y: Tensor) -> Tensor:
    """``x @ y`` in the dtype of both, also inside autocast, which would round them to 16 bits.

    Example:
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     product(torch.tensor([[1 / 3]]), torch.eye(1)).item() == torch.tensor(1 / 3).item()
        True
    """
    if x.is_meta:  # which has no autocast
        return x @ y
    with torch.autocast(x.device.type, enabled=False):
        return x @ y
