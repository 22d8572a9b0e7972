"""Class tokens and registers among patches: not turned, wherever in the row they stand."""

import pytest
import torch

from posenc import (
    AxialRotary,
    CirculantSTRING,
    ComRoPE,
    DINOv3Rotary,
    DirectedRotary,
    LieRE,
    LTXRotary,
    MHRoPE,
    RoPEMixed,
    Rotary,
)
from posenc.positions import grid, prefixed

ENCODINGS = [
    AxialRotary(8),
    DINOv3Rotary(8, (3, 4)),
    DINOv3Rotary(8, (3, 4), shift=0.5, jitter=2.0).train(),
    DirectedRotary.spiral(8, 2),
    RoPEMixed(8, heads=2),
    LTXRotary(8, 2, (3, 5)),
    MHRoPE(Rotary(8), heads=2, sections=(1, 1)),
    CirculantSTRING(8),
    ComRoPE(8),
    LieRE(8),
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=lambda each: type(each).__name__)
def test_tokens_that_stand_nowhere_are_not_turned(encoding):
    points, order = prefixed(grid(3, 4), 2), torch.tensor([5, 0, 13, 1, 2])
    q, k = torch.randn(2, 1, 2, 14, 8, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(1)
    turned = encoding(q, k, points)
    torch.manual_seed(1)
    patches = encoding(q[..., 2:, :], k[..., 2:, :], points[2:])
    torch.manual_seed(1)
    some = encoding(q[..., order, :], k[..., order, :], points[order])
    for whole, without, few, content in zip(turned, patches, some, (q, k), strict=True):
        assert torch.equal(whole[..., :2, :], content[..., :2, :])
        torch.testing.assert_close(whole[..., 2:, :], without)
        torch.testing.assert_close(few, whole[..., order, :])
