"""Convolutional: wav2vec 2.0's and data2vec's layers, in every layout of a sequence."""

import pytest
import torch
from transformers import Data2VecAudioConfig, Wav2Vec2Config
from transformers.models.data2vec.modeling_data2vec_audio import (
    Data2VecAudioPositionalConvEmbedding,
)
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2PositionalConvEmbedding

from posenc import Convolutional
from posenc.positions import left_padded

FIELDS = {"hidden_size": 32, "num_attention_heads": 2}


def randomized(module):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def content(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def wav2vec2(kernel):
    config = Wav2Vec2Config(**FIELDS, num_conv_pos_embeddings=kernel)
    return randomized(Wav2Vec2PositionalConvEmbedding(config))


@pytest.mark.parametrize("kernel", [128, 7])
def test_wav2vec2(kernel):
    theirs = wav2vec2(kernel)
    ours = Convolutional(32, kernel).load(theirs.state_dict())
    x = content(2, 150, 32)
    torch.testing.assert_close(ours(x), x + theirs(x), rtol=1e-5, atol=2e-5)


def test_data2vec():
    config = Data2VecAudioConfig(**FIELDS)
    theirs = randomized(Data2VecAudioPositionalConvEmbedding(config))
    ours = Convolutional(32, 19, depth=5, weight_norm=False, layer_norm=True)
    ours.load(theirs.state_dict())
    x = content(2, 40, 32)
    torch.testing.assert_close(ours(x), x + theirs(x), rtol=1e-5, atol=2e-5)


def test_a_checkpoint_of_the_older_weight_norm():
    state, names = wav2vec2(128).state_dict(), ("conv.bias", "conv.weight_g", "conv.weight_v")
    parts = zip(names, state.values(), strict=True)
    older = {f"encoder.pos_conv_embed.{name}": value for name, value in parts}
    ours, x = Convolutional(32).load(older), content(1, 20, 32)
    assert torch.equal(ours(x), Convolutional(32).load(state)(x))


@pytest.mark.parametrize("sides", ["left", "right"])
@pytest.mark.parametrize("kernel", [8, 5])
def test_padding_counts_as_nothing(sides, kernel):
    """As in wav2vec 2.0, which fills it with zeros first."""
    theirs = wav2vec2(kernel)
    ours = Convolutional(32, kernel).load(theirs.state_dict())
    mask = torch.tensor([[True] * 9, [True] * 4 + [False] * 5])
    mask = mask.flip(1) if sides == "left" else mask
    x = content(2, 9, 32)
    expected = x + theirs(x.where(mask.unsqueeze(-1), 0.0))
    got = ours(x, left_padded(mask))
    torch.testing.assert_close(got[mask], expected[mask], rtol=1e-5, atol=2e-5)
