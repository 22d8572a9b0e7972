"""Where pairs of channels look in a space of several axes, and how fast they turn there."""

import torch
from jaxtyping import Float64
from torch import Tensor

from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axial import AxialRotary
from posenc.encodings.queries_keys.directed import DirectedRotary
from posenc.encodings.queries_keys.learned import RoPEMixed
from posenc.encodings.queries_keys.multimodal import MultimodalRotary, VJEPA2Rotary


def frequency_vectors(encoding: QueryKeyEncoding) -> Float64[Tensor, "*heads pairs axes"]:
    """w of each pair, which turns by ⟨w, p⟩ at a point p: radians a unit along each axis.

    DINOv3's and LTX's encodings turn by where a point is in its grid, and by no such product.

    Example:
        >>> from posenc import AxialRotary
        >>> frequency_vectors(AxialRotary(8))  # (y, x): two pairs along x, then two along y
        tensor([[0.0000, 1.0000],
                [0.0000, 0.1000],
                [1.0000, 0.0000],
                [0.1000, 0.0000]], dtype=torch.float64)
    """
    if isinstance(encoding, DirectedRotary):
        return torch.tensor(encoding.vectors, dtype=torch.float64)
    if isinstance(encoding, RoPEMixed):  # x first
        return encoding.frequencies.detach().double().flip(0).movedim(0, -1)
    if not isinstance(encoding, AxialRotary | MultimodalRotary | VJEPA2Rotary):
        raise TypeError(f"{encoding!r} turns pairs by no product with points.")
    sincos = encoding.sincos
    vectors = torch.zeros(len(sincos.axes), sincos.count, dtype=torch.float64)
    speeds = [iter(schedule.wavelengths()) for schedule in sincos.schedules]
    for pair, axis in enumerate(sincos.axes):
        vectors[pair, axis] = 2 * torch.pi / next(speeds[axis])
    return vectors
