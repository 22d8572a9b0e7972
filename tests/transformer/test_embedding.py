"""Token ids become vectors."""

import pytest
import torch
from torch import nn

from posenc.transformer import TokenEmbedding


def test_it_is_the_lookup_of_torch():
    ours, theirs = TokenEmbedding(50, 8, padding_idx=3), nn.Embedding(50, 8, padding_idx=3)
    theirs.load_state_dict(ours.state_dict())
    ids = torch.randint(0, 50, (2, 3, 7))
    assert torch.equal(ours(ids), theirs(ids))
    assert ours(ids).shape == (2, 3, 7, 8)


def test_padding_is_zero_and_stays_zero():
    embedding = TokenEmbedding(10, 4, padding_idx=0)
    ids = torch.tensor([[5, 0, 0]])
    embedding(ids).square().sum().backward()
    assert embedding(ids)[0, 1:].eq(0).all()
    assert embedding.weight.grad[0].eq(0).all()
    assert embedding.weight.grad[5].ne(0).any()


@pytest.mark.parametrize(("scale", "factor"), [(None, 1.0), ("sqrt_dim", 4.0), (2.5, 2.5)])
def test_scale(scale, factor):
    embedding = TokenEmbedding(10, 16, scale=scale)
    ids = torch.arange(10)
    assert torch.equal(embedding(ids), embedding.weight * factor)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint32])
def test_ids_of_any_whole_dtype_are_looked_up(dtype):
    """Bytes of a text come as uint8, and torch's lookup takes int64 and int32 alone."""
    embedding, ids = TokenEmbedding(50, 8), torch.tensor([[3, 49, 0]])
    assert torch.equal(embedding(ids.to(dtype)), embedding(ids))
