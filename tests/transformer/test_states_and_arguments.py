"""State dicts of layers say by which arguments they are read; contradictions are refused."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from posenc import ALiBi, Positional
from posenc.transformer import (
    Block,
    Encoder,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    TokenEmbedding,
)

REFUSED = [
    (MultiHeadAttention, (16,), {"heads": 4}, {"heads": 2}, "head_dim=4, .* has head_dim=8"),
    (MultiHeadAttention, (16, 4), {"scale": 1}, {}, "saved with scale=1, and .* has scale=0.5"),
    (TokenEmbedding, (9, 16), {"scale": "sqrt_dim"}, {}, "scale=4.0, and this one has scale=1.0"),
    (Encoder, (16, 4, 1), {"scale": 1.0}, {}, r"\(blocks.0.attention\) .* with scale=1.0, and"),
    (Block, (16, 4), {}, {"norm": "pre"}, "norm='post', .* has norm='pre'"),
    (LayerNorm, (4,), {"eps": 1e-12}, {}, "eps=1e-12, .* has eps=1e-05"),
    (Encoder, (16, 4, 1), {}, {"eps": 1e-6}, r"\(blocks.0.attention_norm\) .* has eps=1e-06"),
    (FeedForward, (4, 8), {}, {"activation": "gelu"}, "activation='relu', .* activation='gelu'"),
    (
        Encoder,
        (16,),
        {"heads": 4, "depth": 1},
        {"heads": 2, "depth": 1},
        r"attention \(blocks.0.att",
    ),
    (
        Encoder,
        (16, 4, 1),
        {"norm": "pre", "final_norm": False},
        {"norm": "post"},
        r"Block \(blocks\.0\) were saved with norm='pre'",
    ),
]


@pytest.mark.parametrize(("kind", "sizes", "first", "second", "said"), REFUSED)
def test_what_no_shape_tells_is_told(kind, sizes, first, second, said):
    state, other = kind(*sizes, **first).state_dict(), kind(*sizes, **second)
    assert [p.shape for p in state.values()] == [p.shape for p in other.state_dict().values()]
    with pytest.raises(RuntimeError, match="(?i)" + said):
        other.load_state_dict(state)
    other.load_state_dict(dict(state))
    kind(*sizes, **first).load_state_dict(state)


def test_fewer_key_heads_are_told_by_shapes_and_head_dim():
    state = MultiHeadAttention(16, 4, kv_heads=2).state_dict()
    MultiHeadAttention(16, 4, kv_heads=2).load_state_dict(state)
    with pytest.raises(RuntimeError, match=r"size mismatch for keys\.weight"):
        MultiHeadAttention(16, 4).load_state_dict(state)


def test_one_scale_in_other_words_and_states_without_it():
    TokenEmbedding(9, 16, scale=4).load_state_dict(
        TokenEmbedding(9, 16, scale="sqrt_dim").state_dict()
    )
    TokenEmbedding(9, 16).load_state_dict(TokenEmbedding(9, 16, scale=1).state_dict())
    attention = MultiHeadAttention(16, 4)
    attention.load_state_dict(MultiHeadAttention(16, 4, scale=0.5).state_dict())
    older = MultiHeadAttention(16, 4).state_dict()
    older._metadata[""]["read_by"] = {"head_dim": 4}
    MultiHeadAttention(16, 4, scale=1.0).load_state_dict(older)


def test_a_function_of_ones_own_says_nothing():
    for activation in (nn.GELU(), torch.sin):
        state = FeedForward(4, 8, activation).state_dict()
        FeedForward(4, 8).load_state_dict(state)
    FeedForward(4, 8, F.gelu).load_state_dict(FeedForward(4, 8, "gelu").state_dict())


def test_another_encoding_takes_the_weights_as_they_are():
    state = Encoder(16, 4, 1).state_dict()
    Encoder(16, 4, 1, positional=Positional(scores=ALiBi(4))).load_state_dict(state)


@pytest.mark.parametrize("head_dim", [24, 48, 96])
def test_a_scale_that_is_spelled_otherwise_is_the_same(head_dim):
    """1/√d and d^−½ differ in the last bit."""
    theirs = MultiHeadAttention(head_dim, 1).state_dict()
    MultiHeadAttention(head_dim, 1, scale=head_dim**-0.5).load_state_dict(theirs)


@pytest.mark.parametrize("scale", [Fraction(3, 2), np.float32(1.5)])
def test_numbers_of_any_kind_are_told_so_that_files_load(scale, tmp_path):
    torch.save(TokenEmbedding(5, 8, scale=scale).state_dict(), tmp_path / "state.pt")
    TokenEmbedding(5, 8, scale=1.5).load_state_dict(torch.load(tmp_path / "state.pt"))
