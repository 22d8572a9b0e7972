"""cos and sin of Σ_a p_a · ω_a: angles that several coordinates make together."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.guards import floating, has_float64
from posenc.numerics.exact import cos_sin_of_sum
from posenc.numerics.sincos import SinCos
from posenc.positions import Coordinates


def cos_sin_of_axes(
    parts: Sequence[SinCos],
    positions: Int64[Tensor, "*shape axes"] | Coordinates,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """cos and sin of the sum over axes, rounded once: phases are added while they are integers.

    Compiled graphs are within 0.5000001 units in the last place, as of ``SinCos``.
    """
    dtype = floating(dtype)
    if not has_float64(positions.device):
        cos, sin = cos_sin_of_axes(parts, positions.to("cpu"), dtype)
        return cos.to(positions.device), sin.to(positions.device)
    summands = [part.summand(positions[..., axis]) for axis, part in enumerate(parts)]
    return cos_sin_of_sum(summands, dtype)
