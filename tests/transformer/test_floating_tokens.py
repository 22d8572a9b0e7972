"""Tokens are floating numbers: whole and complex ones are refused in words that say so."""

import pytest
import torch

from posenc import ALiBi, Positional, Sinusoidal
from posenc.transformer import (
    BatchNorm,
    Block,
    Encoder,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
)

WRONG = [torch.complex64, torch.int64, torch.bool]


@pytest.mark.parametrize("dtype", WRONG, ids=str)
@pytest.mark.parametrize("positional", [Positional(), Positional(Sinusoidal(8), scores=ALiBi(2))])
def test_an_encoder_takes_floating_tokens(dtype, positional):
    x = torch.ones(1, 3, 8, dtype=dtype)
    with pytest.raises(TypeError, match=f"x is {dtype}; this encoder takes floating tokens"):
        Encoder(8, 2, 1, positional=positional)(x)


@pytest.mark.parametrize("dtype", WRONG, ids=str)
@pytest.mark.parametrize("norm", [BatchNorm(8), LayerNorm(8)], ids=["batch", "layer"])
def test_norms_take_floating_tokens(dtype, norm):
    """The square of a complex number is no variance."""
    with pytest.raises(TypeError, match=f"x is {dtype}; norms take floating tokens"):
        norm.stages(torch.ones(1, 3, 8, dtype=dtype))


@pytest.mark.parametrize("dtype", [*WRONG, torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
@pytest.mark.parametrize("layer", [
    Block(8, 2), Block(8, 2, norm="pre"), MultiHeadAttention(8, 2), FeedForward(8, 4), LayerNorm(8),
], ids=["post", "pre", "attention", "feed_forward", "norm"])  # fmt: skip
def test_layers_alone_take_what_an_encoder_takes(dtype, layer):
    words = f"Content is {dtype}" if dtype.is_floating_point else f"x is {dtype};.* floating"
    for call in (layer, layer.stages):
        with pytest.raises(TypeError, match=words):
            call(torch.ones(1, 3, 8).to(dtype))
