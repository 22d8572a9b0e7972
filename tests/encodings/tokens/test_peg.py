"""PEG: torch's depthwise convolution over grids, whole or with holes."""

import pytest
import torch
from torch import nn

from posenc import PEG
from posenc.positions import grid, kept, prefixed


def pair(axes=2, kernel=3, dim=6):
    """Ours and torch's with the same weights, in float64."""
    torch.manual_seed(0)
    convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    theirs = convolution(dim, dim, kernel, padding=kernel // 2, groups=dim).double()
    ours = PEG(dim, kernel, axes=axes).double()
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def over(theirs, x, size):
    """x + conv(x) over a whole grid."""
    image = x.mT.unflatten(-1, size)
    return x + theirs(image).flatten(2).mT


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("size", [(7,), (4, 5), (1, 3), (2, 3, 4)])
def test_a_whole_grid_is_torchs_convolution(size, kernel):
    ours, theirs = pair(len(size), kernel)
    x = torch.randn(2, torch.Size(size).numel(), 6, dtype=torch.float64)
    expected = over(theirs, x, size)
    torch.testing.assert_close(ours(x, grid(*size)), expected, rtol=0, atol=1e-13)
    far = grid(*size, start=10**9)
    torch.testing.assert_close(ours(x, far), expected, rtol=0, atol=1e-13)


def test_dropped_patches_count_as_nothing():
    """As the convolution of an image in which they are zeros; each row drops its own."""
    ours, theirs = pair()
    x = torch.randn(2, 20, 6, dtype=torch.float64)
    indices = torch.stack([torch.randperm(20)[:11] for _ in range(2)])
    zeroed = torch.zeros_like(x).scatter(1, indices[..., None].expand(-1, -1, 6), x.gather(
        1, indices[..., None].expand(-1, -1, 6)))  # fmt: skip
    expected = over(theirs, zeroed, (4, 5)).gather(1, indices[..., None].expand(-1, -1, 6))
    got = ours(x.gather(1, indices[..., None].expand(-1, -1, 6)), kept(grid(4, 5), indices))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-13)


def test_a_class_token_stays_as_it_is():
    ours, theirs = pair()
    x = torch.randn(2, 22, 6, dtype=torch.float64)
    got = ours(x, prefixed(grid(4, 5), 2))
    assert torch.equal(got[:, :2], x[:, :2])
    torch.testing.assert_close(got[:, 2:], over(theirs, x[:, 2:], (4, 5)), rtol=0, atol=1e-13)
    alone = torch.randn(1, 1, 6, dtype=torch.float64)
    assert torch.equal(ours(alone, prefixed(grid(0, 5))), alone)
