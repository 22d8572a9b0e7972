"""Keys that are moved stand where they would have been encoded."""

import pytest
import torch

from posenc import AxialRotary, MultimodalRotary, Rotary, move_keys
from posenc.frequencies import Geometric, YaRN
from posenc.positions import grid

YARN = YaRN(Geometric(8), factor=4.0, trained_length=64)
ENCODINGS = {
    "half": Rotary(8),
    "interleaved": Rotary(8, pairing="interleaved"),
    "prefix": Rotary(Geometric(4), head_dim=8),
    "suffix": Rotary(Geometric(4), head_dim=8, rotated="suffix", pairing="interleaved"),
    "factor": Rotary(YARN),
    "seq first": Rotary(8, heads_first=False),
}
AXES = {
    "multimodal": MultimodalRotary(Rotary(8), (2, 1, 1)),
    "multimodal with a factor": MultimodalRotary(Rotary(YARN), (2, 1, 1), "interleaved"),
    "axial": AxialRotary(12, form="wan"),
}
FAR = torch.tensor([0, 5, -3, 2**40, 2**62])
THERE = torch.tensor([1, 2**62, 10**9, -(2**41), 0])


def keys(encoding, seq: int) -> torch.Tensor:
    shape = (2, 3, seq) if encoding.heads_first else (2, seq, 3)
    torch.manual_seed(0)
    return torch.randn(*shape, encoding.head_dim, dtype=torch.float64)


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_they_are_what_encoding_them_there_gives(encoding):
    k = keys(encoding, len(FAR))
    here = encoding.encode_keys(k, encoding.table(FAR, dtype=torch.float64))
    there = encoding.encode_keys(k, encoding.table(THERE, dtype=torch.float64))
    assert torch.allclose(move_keys(here, FAR, THERE, encoding), there, atol=1e-14, rtol=0)


@pytest.mark.parametrize("encoding", AXES.values(), ids=AXES)
def test_each_axis_moves_by_itself(encoding):
    points = grid(2, 2, 2)
    moved = points * torch.tensor([100, -7, 3]) + torch.tensor([5, 0, 2**40])
    k = keys(encoding, len(points))
    here = encoding.encode_keys(k, encoding.table(points, dtype=torch.float64))
    there = encoding.encode_keys(k, encoding.table(moved, dtype=torch.float64))
    assert torch.allclose(move_keys(here, points, moved, encoding), there, atol=1e-14, rtol=0)


def test_the_factor_is_not_squared():
    """Encoding by the difference, as is often done, is off by the factor itself."""
    rotary = ENCODINGS["factor"]
    factor = YARN.attention_factor
    assert factor > 1.1
    k = keys(rotary, 3)
    positions = torch.arange(3)
    cached = rotary.encode_keys(k, rotary.table(positions, dtype=torch.float64))
    still = move_keys(cached, positions, positions, rotary)
    naive = rotary.encode_keys(cached, rotary.table(positions - positions, dtype=torch.float64))
    assert torch.equal(still, cached)
    assert torch.allclose(naive / cached, torch.tensor(factor, dtype=torch.float64))
