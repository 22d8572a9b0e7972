"""A number that is set on a built model does what it would have done, or is refused."""

import inspect
from types import SimpleNamespace

import pytest
import torch

from posenc import (
    ALiBi,
    PoSE,
    Positional,
    RemappedRotary,
    Rotary,
    SelfExtend,
    Sinusoidal,
    T5Bias,
)
from posenc.distributed.dropout import HiddenDropout
from posenc.interop.torch import CosSinRoPE, RotaryPositionalEmbeddings
from posenc.transformer import Block, Encoder, KeyValueCache, MultiHeadAttention
from posenc.transformer.dropout import dropped

CONFIG = SimpleNamespace(dim=8, max_context_length=64, theta=5e5, scaling="none")


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        *((Encoder(16, 4, 1), name, 0.5) for name in ("dropout", "attention_dropout")),
        *((Encoder(16, 4, 1), name, 2) for name in ("dim", "heads", "depth")),
        *((MultiHeadAttention(16, 4), name, 2) for name in ("dim", "heads", "kv_heads")),
        (MultiHeadAttention(16, 4), "head_dim", 2),
        *((RotaryPositionalEmbeddings(8), name, 16) for name in ("base", "dim", "max_seq_len")),
        (CosSinRoPE(CONFIG), "config", SimpleNamespace(**vars(CONFIG) | {"theta": 1e4})),
    ],
)
def test_what_was_handed_on_is_settled(module, name, value):
    setattr(module, name, getattr(module, name))
    with pytest.raises(AttributeError, match=f"{name}.*Build another {type(module).__name__}"):
        setattr(module, name, value)


def test_an_order_of_norms_that_there_is_not():
    block, x = Block(16, 4), torch.randn(1, 3, 16)
    block.norm = "pre"
    other = Block(16, 4, norm="pre")
    other.load_state_dict(block.state_dict())
    assert torch.equal(block(x), other(x))
    with pytest.raises(ValueError, match="norm is 'Pre'; it must be 'pre' or 'post'"):
        block.norm = "Pre"


@pytest.mark.parametrize("positional", [
    Positional(scores=T5Bias(4)), Positional(scores=ALiBi(4)), Positional(queries_keys=Rotary(4)),
])  # fmt: skip
def test_dropout_of_one_layer_is_that_of_its_backend(positional):
    """Some backends drop no weights, and were chosen by what the encoder was built with."""
    encoder = Encoder(16, 4, 2, positional=positional, is_causal=True).train()
    x = torch.randn(1, 600, 16)
    assert torch.equal(encoder(x), encoder(x))
    encoder.blocks[1].attention.dropout = 0.5
    assert not torch.equal(encoder(x), encoder(x))
    assert torch.equal(encoder.eval()(x), encoder(x))


@pytest.mark.parametrize(
    ("module", "name"),
    [
        *((Encoder(16, 4, 1), name) for name in ("scale", "window", "kv_heads", "norm", "eps")),
        *((Block(16, 4), name) for name in ("scale", "window", "heads", "activation")),
        (MultiHeadAttention(16, 4), "bias"),
    ],
)
def test_what_the_parts_alone_keep_is_set_there(module, name):
    assert name in inspect.signature(type(module)).parameters
    with pytest.raises(AttributeError, match=f"handed {name} to its parts"):
        setattr(module, name, 2)


@pytest.mark.parametrize("p", [float("nan"), -0.5, 1.5, "a"])
def test_a_dropout_that_shards_do_for_it_is_a_probability(p):
    layer, x = torch.nn.Dropout(0.5), torch.ones(1, 4, 8)
    layer.p = p
    with pytest.raises(ValueError, match=f"dropout is {p!r}; it must be a probability"):
        dropped(layer, x, HiddenDropout(torch.arange(4), torch.tensor(7)))


def test_windows_are_checked_whenever_they_come():
    encoder, x = Encoder(16, 4, 2).eval(), torch.randn(1, 5, 16)
    encoder.windows = 2
    other = Encoder(16, 4, 2, window=2).eval()
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(encoder(x), other(x))
    for wrong in ((2, 0), (2,), "22"):
        with pytest.raises(ValueError, match="window"):
            encoder.windows = wrong


def test_who_sees_whom_is_checked_whenever_it_comes():
    encoder, x = Encoder(16, 4, 2).eval(), torch.randn(1, 5, 16)
    encoder.is_causal = True
    torch.testing.assert_close(encoder(x)[:, :3], encoder(x[:, :3]))
    with pytest.raises(ValueError, match="is_causal is 'no'; it must be True or False"):
        encoder.is_causal = "no"


def test_a_later_layer_adds_nothing_to_tokens_whenever_it_comes():
    turned = Positional(queries_keys=Rotary(4))
    encoder, x = Encoder(16, 4, 2, positional=[turned, Positional()]), torch.randn(1, 5, 16)
    encoder(x)
    encoder.positional[1] = Positional(tokens=Sinusoidal(16))
    for call in (encoder, encoder.stages):
        with pytest.raises(ValueError, match="Layer 1 has encodings of tokens"):
            call(x)
    encoder.positional[1] = Positional(positions=PoSE(longest=64))
    with pytest.raises(ValueError, match="Layer 1 changes positions"):
        encoder(x)


def test_encodings_that_are_exchanged_are_asked_as_those_that_are_built():
    """What the constructor refuses was taken, and its numbers were those of nothing."""
    x = torch.randn(1, 5, 16)
    encoder = Encoder(16, 2, 1, positional=Positional(queries_keys=Rotary(8)))
    encoder(x)
    encoder.positional = Positional(scores=RemappedRotary(2, Rotary(8), SelfExtend(2, 3)))
    with pytest.raises(ValueError, match="queries and keys"):
        encoder(x)
    encoder.positional = Positional(queries_keys=Rotary(8))
    encoder(x)
    encoder.positional.scores.append(Rotary(8))
    with pytest.raises(TypeError, match="queries_keys="):
        encoder(x)
    del encoder.positional.scores[0]
    encoder.positional.scores.append(ALiBi(3))
    with pytest.raises(ValueError, match="heads"):
        encoder(x)
    encoder.positional.scores[0] = ALiBi(2)
    assert encoder(x).shape == x.shape


def test_blocks_that_are_cut_off_are_refused():
    """The others had the encodings and windows of those before them."""
    encoder = Encoder(16, 2, 3, positional=[Positional(scores=ALiBi(2))] * 3, window=[1, 2, 3])
    del encoder.blocks[0]
    with pytest.raises(ValueError, match=r"There are 2 blocks, .* depth 3"):
        encoder(torch.randn(1, 5, 16))


@pytest.mark.parametrize("size", [None, 8])
def test_no_tokens_come_to_a_cache(size):
    encoder = Encoder(16, 2, 1, positional=Positional(scores=ALiBi(2)), is_causal=True)
    cache = KeyValueCache(size=size)
    with pytest.raises(ValueError, match="There are no tokens to keep"):
        encoder(torch.randn(1, 0, 16), cache=cache)
    encoder(torch.randn(1, 3, 16), cache=cache)
    assert cache.length == 3
