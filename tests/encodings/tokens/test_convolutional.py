"""Convolutional: wav2vec 2.0's and data2vec's layers, in every layout of a sequence."""

import re

import pytest
import torch
from transformers import Data2VecAudioConfig, HubertConfig, Wav2Vec2Config, WavLMConfig
from transformers.models.data2vec.modeling_data2vec_audio import (
    Data2VecAudioPositionalConvEmbedding,
)
from transformers.models.hubert.modeling_hubert import HubertPositionalConvEmbedding
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2PositionalConvEmbedding
from transformers.models.wavlm.modeling_wavlm import WavLMPositionalConvEmbedding

from posenc import Convolutional, Positional
from posenc.positions import left_padded
from posenc.transformer import Encoder

FIELDS = {"hidden_size": 32, "num_attention_heads": 2}


def refused(text, error=ValueError):
    return pytest.raises(error, match=re.escape(text))


def randomized(module):
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def content(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


@pytest.mark.parametrize("kernel", [128, 7])
@pytest.mark.parametrize(
    ("theirs", "config"),
    [
        (Wav2Vec2PositionalConvEmbedding, Wav2Vec2Config),
        (HubertPositionalConvEmbedding, HubertConfig),
        (WavLMPositionalConvEmbedding, WavLMConfig),
    ],
)
def test_wav2vec2(theirs, config, kernel):
    theirs = randomized(theirs(config(**FIELDS, num_conv_pos_embeddings=kernel)))
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
    state = randomized(Wav2Vec2PositionalConvEmbedding(Wav2Vec2Config(**FIELDS))).state_dict()
    older = {
        f"encoder.pos_conv_embed.{name}": value
        for name, value in zip(
            ("conv.bias", "conv.weight_g", "conv.weight_v"), state.values(), strict=True
        )
    }
    ours, x = Convolutional(32).load(older), content(1, 20, 32)
    assert torch.equal(ours(x), Convolutional(32).load(state)(x))


# Where the neighbors are.


@pytest.mark.parametrize("sides", ["left", "right"])
@pytest.mark.parametrize("kernel", [8, 5])
def test_padding_counts_as_nothing(sides, kernel):
    """As in wav2vec 2.0, which fills it with zeros first."""
    theirs = Wav2Vec2Config(**FIELDS, num_conv_pos_embeddings=kernel)
    theirs = randomized(Wav2Vec2PositionalConvEmbedding(theirs))
    ours = Convolutional(32, kernel).load(theirs.state_dict())
    mask = torch.tensor([[True] * 9, [True] * 4 + [False] * 5])
    mask = mask.flip(1) if sides == "left" else mask
    x = content(2, 9, 32)
    zeroed = x.where(mask.unsqueeze(-1), 0.0)
    expected = x + theirs(zeroed)
    got = ours(x, left_padded(mask))
    where = left_padded(mask)
    if sides == "right":  # padding on the right stands where the last real token does
        assert where[1].tolist() == [0, 1, 2, 3, 3, 3, 3, 3, 3]
    torch.testing.assert_close(got[mask], expected[mask], rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("real", [[1, 1, 0, 1, 1], [1, 0, 0, 1, 1], [0, 1, 1, 0, 1]], ids=str)
def test_padding_between_tokens_is_refused(real):
    """Positions cannot say which of two tokens at one place is read by those beside it."""
    encoding, real = Convolutional(32, 3), torch.tensor([real]).bool()
    encoder = Encoder(32, 2, 1, positional=Positional(encoding))
    with refused("padding lies between"):
        encoder(content(1, 5, 32), padding_mask=real)


# What it refuses.
