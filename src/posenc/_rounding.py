"""One rounding from float64 to any dtype."""

import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from posenc.guards import floating

EXACT = 2**53
"""Up to here float64 holds every whole number."""

UNIT = 2**11
"""Of whole numbers of 64 bits, float64 holds the multiples of it."""


def rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    """``value`` (float64) rounded once, to nearest, ties to even.

    torch rounds float64 to float16 and bfloat16 by way of float32, which is two roundings. Going
    through float32 *rounded to odd* (Boldo & Melquiond 2008) makes the second one the only one.

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


def odd_doubles(whole: Int64[Tensor, "*shape"]) -> Float64[Tensor, "*shape"]:
    """Whole numbers in float64, which are ``rounded`` as they themselves would be.

    Those that float64 may not hold are rounded to an odd multiple of 2^11, where nothing is lost
    that decides a rounding to fewer digits.

    Example:
        >>> whole = torch.tensor([2**53 + 2**45 + 1])  # just above the middle of two of bfloat16
        >>> rounded(odd_doubles(whole), torch.bfloat16).item() == 2**53 + 2**46
        True
    """
    low = whole & (UNIT - 1)
    odd = torch.where(low == 0, whole, (whole - low) | UNIT)
    return torch.where((whole > EXACT) | (whole < -EXACT), odd, whole).double()
