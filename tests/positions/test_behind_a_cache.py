"""Positions of tokens that follow those in a cache."""

import pytest
import torch

from posenc import Positional
from posenc.transformer import Encoder, KeyValueCache


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("real", [[[True, True]], [[False, True]], [[False, False]]])
def test_every_cache_goes_on_behind_the_last_real_token(size, real):
    encoder = Encoder(8, 2, 1, is_causal=True, positional=Positional()).eval()
    cache, x = KeyValueCache(size), torch.randn(1, 2, 8)
    with torch.no_grad():
        given = {"positions": torch.tensor([[-9, -8]]), "padding_mask": torch.tensor(real)}
        encoder(x, **given, cache=cache)
        encoder(x, cache=cache)
    assert isinstance(cache.positions, torch.Tensor)
    start = -7 if real[0][1] else 0
    assert cache.positions[0, 2:4].tolist() == [start, start + 1]
