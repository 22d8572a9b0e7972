"""Learned: rows of a table, held against the models of transformers that look rows up."""

import pytest
import torch
from torch.nn import functional as F
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding

from posenc import Learned
from posenc.positions import left_padded


def filled(encoding, weight):
    with torch.no_grad():
        encoding.weight.copy_(weight)
    return encoding


def test_offset_2_is_opt():
    theirs = OPTLearnedPositionalEmbedding(20, 8)
    ours = filled(Learned(8, 20, offset=2), theirs.weight)
    assert ours.weight.shape == theirs.weight.shape == (22, 8)
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    real = mask == 1
    assert torch.equal(ours.table(left_padded(mask))[real], theirs(mask)[real])
    step = theirs(torch.ones(1, 8, dtype=torch.long), past_key_values_length=7)
    assert torch.equal(ours.table(torch.tensor([[7]])), step)


@pytest.mark.parametrize("length", [1, 7, 24, 25, 48, 100])
def test_resizing_is_torchs_interpolation(length):
    encoding = Learned(6, 24).double()  # in float32, places between rows are rounded
    columns = encoding.weight.detach().T[None]
    if length >= 24:
        expected = F.interpolate(columns, size=length, mode="linear")[0].T
    else:  # only the two-dimensional form knows antialiasing
        image = F.interpolate(
            columns[:, :, None], size=(1, length), mode="bilinear", antialias=True
        )
        expected = image[0, :, 0].T
    resized = encoding.resized(length)
    assert resized.max_len == length
    torch.testing.assert_close(resized.weight.detach(), expected, rtol=0, atol=1e-14)
