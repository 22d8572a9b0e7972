"""Convolutional: wav2vec 2.0's and data2vec's layers, in every layout of a sequence."""

import copy
import math
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
from posenc.positions import consecutive, left_padded, packed
from posenc.transformer import Encoder, KeyValueCache

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


def test_weights_begin_as_directions_times_their_lengths():
    encoding = Convolutional(16, 9, groups=4)
    torch.testing.assert_close(encoding.weights(), encoding.weight_v)
    assert encoding.weight_v.std().item() == pytest.approx(2 / 12, rel=0.2)
    with torch.no_grad():
        encoding.weight_g.mul_(3)
    torch.testing.assert_close(encoding.weights(), 3 * encoding.weight_v)


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


def test_padding_that_is_no_number_reaches_no_token():
    encoding = randomized(Convolutional(8, 5, groups=2, depth=2))
    mask = torch.tensor([[False, False, True, True, True, True]])
    x = content(1, 6, 8)
    filled = x.masked_fill(~mask.unsqueeze(-1), math.nan)
    made, expected = encoding(filled, left_padded(mask)), encoding(x[:, 2:])
    torch.testing.assert_close(made[:, 2:], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("real", [[1, 1, 0, 1, 1], [1, 0, 0, 1, 1], [0, 1, 1, 0, 1]], ids=str)
def test_padding_between_tokens_is_refused(real):
    """Positions cannot say which of two tokens at one place is read by those beside it."""
    encoding, real = Convolutional(32, 3), torch.tensor([real]).bool()
    encoder = Encoder(32, 2, 1, positional=Positional(encoding))
    with refused("padding lies between"):
        encoder(content(1, 5, 32), padding_mask=real)


def test_padding_where_a_token_is_missing_is_between_no_neighbors():
    encoder = Encoder(32, 2, 1, positional=Positional(Convolutional(32, 3))).eval()
    x, real = content(1, 5, 32), torch.tensor([[True, True, False, True, True]])
    made = encoder(x, torch.arange(5), padding_mask=real)
    alone = encoder(x[:, real[0]], torch.arange(5)[real[0]])
    torch.testing.assert_close(made[:, real[0]], alone, rtol=1e-5, atol=1e-5)


def test_padding_between_documents_is_outside_of_both():
    encoder = Encoder(32, 2, 1, positional=Positional(Convolutional(32, 3)))
    x, real = content(1, 5, 32), torch.tensor([[True, True, False, True, True]])
    made = encoder(x, padding_mask=real, document_ids=torch.tensor([[0, 0, 0, 1, 1]]))
    for part in (slice(0, 2), slice(3, 5)):
        torch.testing.assert_close(made[:, part], encoder(x[:, part]), rtol=1e-5, atol=1e-5)
    with refused("padding lies between"):
        encoder(x, padding_mask=real, document_ids=torch.zeros(1, 5).long())


def test_positions_that_repeat_between_others_are_refused():
    encoding = Convolutional(8, 3, groups=2)
    for positions in ([0, 1, 1, 2], [7, 8, 8, 8, 9], [0, 1, 0, 1, 1, 2]):
        with refused("Positions repeat between tokens that follow one another"):
            encoding(content(1, len(positions), 8), positions)
    for positions in ([0, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 0, 0, 1], [5, 5, 7, 7, 8]):
        encoding(content(1, len(positions), 8), positions)


def test_packed_documents_do_not_see_each_other():
    encoding, x = randomized(Convolutional(8, 6, groups=2, depth=2)), content(1, 12, 8)
    together = encoding(x, packed([5, 3, 4]))
    alone = [encoding(part) for part in x.split([5, 3, 4], dim=1)]
    torch.testing.assert_close(together, torch.cat(alone, dim=1), rtol=1e-5, atol=1e-5)


def test_the_sum_by_taps_is_the_convolution():
    encoding = randomized(Convolutional(8, 7, groups=4)).double()
    x = content(2, 3, 20, 8, dtype=torch.float64)
    runs = torch.zeros(2, 3, 20, dtype=torch.int64)
    torch.testing.assert_close(encoding._layers(x, runs), encoding.ordered(x), rtol=0, atol=1e-11)
    mapped = torch.func.vmap(encoding, in_dims=(0, None))(x[0], consecutive(20))
    torch.testing.assert_close(mapped, encoding(x[0]), rtol=0, atol=1e-11)


def test_only_the_neighborhood_is_read():
    """An even kernel reaches k/2 tokens back and k/2 − 1 ahead."""
    encoding, x = randomized(Convolutional(8, 6, groups=2)), content(1, 20, 8)
    changed = x.clone()
    changed[0, 10] += 1
    moved = (encoding(x) != encoding(changed)).any(-1)[0]
    assert moved.nonzero().flatten().tolist() == [8, 9, 10, 11, 12, 13]


def test_where_it_starts_to_count_does_not_matter():
    encoding, x = randomized(Convolutional(8, 6, groups=2)), content(1, 20, 8)
    assert torch.equal(encoding(x, consecutive(20, start=2**40)), encoding(x))


# What it refuses.


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Convolutional(10), "dim is 10 and groups 16; groups must divide dim."),
        (lambda: Convolutional(16, 0), "kernel is 0; it must be a whole number from 1 on."),
        (lambda: Convolutional(16, 3)(torch.zeros(1, 4, 8)), "Each token takes one"),
        (lambda: Convolutional(16, 3)(torch.zeros(1, 4, 16), [0, 1, 2]), "Each token takes one"),
    ],
)
def test_what_it_refuses(make, text):
    with refused(text):
        make()


def test_weights_that_are_not_there():
    with refused("Nothing ends in 'conv.bias'", KeyError):
        Convolutional(16).load({})
    with refused("has no conv.parametrizations.weight.original0 and no conv.weight_g", KeyError):
        Convolutional(16).load({"conv.bias": torch.zeros(16)})


def test_a_checkpoint_of_more_than_it_has():
    theirs = Data2VecAudioPositionalConvEmbedding(Data2VecAudioConfig(**FIELDS)).state_dict()
    ours = Convolutional(32, 19, depth=4, weight_norm=False, layer_norm=True)
    before = ours.bias.clone()
    with refused("The checkpoint has 2 more weights, as layers.4.conv.bias."):
        ours.load({name: value + 1 for name, value in theirs.items()})
    assert torch.equal(ours.bias, before)
    normed = {name: torch.zeros(16) for name in ("conv.bias", "batch_norm.weight")}
    normed |= {"conv.weight": torch.zeros(16, 1, 3)}
    with refused("The checkpoint has 1 more weights, as batch_norm.weight."):
        Convolutional(16, 3, weight_norm=False).load(normed)


def test_an_encoder_takes_it_without_a_cache():
    positional = Positional(tokens=Convolutional(16, 4, groups=2))
    encoder = Encoder(16, 2, 1, positional=positional, is_causal=True).eval()
    x = content(2, 6, 16)
    mask = torch.tensor([[True] * 6, [False] * 2 + [True] * 4])
    together = encoder(x, padding_mask=mask)
    torch.testing.assert_close(together[1, 2:], encoder(x[1:, 2:])[0], rtol=1e-5, atol=1e-5)
    with refused("reads later tokens"):
        encoder(x, cache=KeyValueCache())


@pytest.mark.parametrize("held", [torch.bfloat16, torch.float16, torch.float32])
def test_normalized_weights_of_narrow_parameters_are_not_rounded(held):
    encoding = randomized(Convolutional(16, 4, groups=2)).to(held)
    wide, x = copy.deepcopy(encoding).double(), content(1, 9, 16)
    torch.testing.assert_close(encoding(x).double(), wide(x.double()), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(encoding(x.double()), wide(x.double()))


@pytest.mark.parametrize("positions", [range(9), [0, 1, 2, 0, 1, 2, 3, 4, 5]])
def test_autocast_rounds_nothing(positions):
    encoding, x = randomized(Convolutional(16, 4, groups=2)), content(1, 9, 16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = encoding(x, torch.tensor(positions))
    assert torch.equal(made, encoding(x, torch.tensor(positions)))
