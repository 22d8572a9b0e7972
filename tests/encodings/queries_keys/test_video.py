"""Rotary encodings of video among text: which pairs or heads follow an axis, where tokens stand."""

import torch
from torch import Tensor

from posenc import MHRoPE, MultimodalRotary, Rotary
from posenc.positions import consecutive


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


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


def test_mhrope_of_text_is_rotary():
    rotary, positions = Rotary(16), consecutive(6, start=10**9)
    alike, x = positions[:, None].expand(-1, 3), random(1, 8, 6, 16)
    encoding = MHRoPE(rotary)
    got = encoding.encode_keys(x, encoding.table(alike))
    assert torch.equal(got, rotary.encode_keys(x, rotary.table(positions)))
