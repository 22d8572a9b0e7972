"""Rotary encodings of video among text: which pairs or heads follow an axis, where tokens stand."""

import torch
from torch import Tensor

from posenc import MultimodalRotary, Rotary


def scattered(*shape: int) -> Tensor:
    return torch.randint(300, shape, generator=torch.Generator().manual_seed(0))


def angles_of(rotary: Rotary, positions: Tensor) -> Tensor:
    """[axes, seq, pairs]: positions times frequencies along each axis, in float64."""
    speeds = 2 * torch.pi / torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    return positions.mT.double()[..., None] * speeds


def test_mm_rope_repeats_a_pattern_of_eight_pairs():
    rotary, positions = Rotary(32), scattered(9, 3)
    pattern = torch.tensor((0, 0, 1, 2, 1, 2, 1, 2))
    which = pattern[torch.arange(16) % 8]
    wanted = angles_of(rotary, positions)[which, :, torch.arange(16)].mT
    encoding = MultimodalRotary(rotary, (4, 6, 6), which.tolist())
    table = encoding.table(positions, dtype=torch.float64)
    torch.testing.assert_close(table[:, 0], wanted.cos(), atol=1e-11, rtol=0)
