"""One rounding from float64 to any dtype."""

import torch
from torch import Tensor

from posenc._guards import floating


def rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    """``value`` (float64) rounded once, to nearest, ties to even.

    torch rounds float64 to float16 and bfloat16 by way of float32, which is two roundings. Going
    through float32 *rounded to odd* (Boldo & Melquiond 2008) makes the second one the only one.

    Raises:
        TypeError: ``dtype`` is no floating one.

    Example:
        >>> x = torch.tensor(1 + 2**-8 + 2**-30, dtype=torch.float64)
        >>> rounded(x, torch.bfloat16).item(), x.to(torch.bfloat16).item()
        (1.0078125, 1.0)
    """
    if dtype not in (torch.float16, torch.bfloat16):
        return value.to(floating(dtype))
    nearest = value.to(torch.float32)
    bits = nearest.view(torch.int32)
    back = nearest.to(torch.float64)
    bits = bits - (back.abs() > value.abs()).int()
    bits = bits | (back != value).int()
    return bits.view(torch.float32).to(dtype)
