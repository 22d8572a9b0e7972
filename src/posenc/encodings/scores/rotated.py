"""What encodings of scores share that rotate queries and keys anew."""

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.rotary.front import rotate
from posenc.numerics.sincos import RADIANS


def check_rotary(rotary: Rotary) -> None:
    """``rotary`` is plainly frequencies and a layout."""
    if not isinstance(rotary, Rotary) or rotary.arithmetic != "exact":
        raise ValueError(f"rotary is {rotary!r}; it must be a Rotary with arithmetic='exact'.")


def radians(rotary: Rotary, device: torch.device) -> Float[Tensor, "pairs"]:
    """Its frequencies in float64."""
    own = [turn * 2.0**-TURN_BITS * RADIANS for turn in rotary.sincos.turns]
    return torch.tensor(own, dtype=torch.float64, device=device)


def rotated_by(
    rotary: Rotary,
    x: Float[Tensor, "*batch heads seq head_dim"],
    angles: Float[Tensor, "*batch heads seq pairs"],
    factor: float = 1.0,
) -> Float[Tensor, "*batch heads seq head_dim"]:
    """``x`` turned by ``angles`` of its own in the layout of ``rotary``, and times ``factor``."""
    both = angles.cos(), angles.sin()
    cos, sin = ((part * factor).to(x.dtype).to(x.device) for part in both)
    return rotate(x, cos, sin, pairing=rotary.pairing, rotated=rotary.rotated)
