"""T5's biases against transformers, in every form, and the warning about untrained buckets."""

import warnings

import pytest
import torch
from transformers import T5Config
from transformers.models.t5.modeling_t5 import T5Attention

from posenc import Positional, T5Bias, attention


def both(bidirectional: bool = True, heads: int = 4, **options):
    """A layer of transformers and our encoding with its weight."""
    torch.manual_seed(0)
    config = T5Config(d_model=32, d_kv=8, num_heads=heads, is_decoder=not bidirectional, **options)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).eval()
    torch.nn.init.normal_(theirs.relative_attention_bias.weight)
    ours = T5Bias(
        heads,
        config.relative_attention_num_buckets,
        config.relative_attention_max_distance,
        bidirectional,
    )
    ours.load_state_dict({"weight": theirs.relative_attention_bias.weight})
    return theirs, ours


@pytest.mark.parametrize("bidirectional", [True, False])
def test_the_bias_is_that_of_transformers(bidirectional):
    theirs, ours = both(bidirectional)
    wanted = theirs.compute_bias(300, 300, device="cpu")[0]
    assert torch.equal(ours.table(torch.arange(300), torch.arange(300)), wanted)


def test_attention_is_that_of_transformers():
    theirs, ours = both()
    x = torch.randn(2, 20, 32)
    wanted = theirs(x)[0]
    q, k, v = (
        map_(x).unflatten(-1, (4, 8)).transpose(1, 2) for map_ in (theirs.q, theirs.k, theirs.v)
    )
    for backend in ("strided", "dense", "explicit"):
        heads = attention(q, k, v, positional=Positional(scores=ours), scale=1.0, backend=backend)
        got = theirs.o(heads.transpose(1, 2).flatten(-2))
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("bidirectional", "distance"), [(True, 91), (True, -91), (False, 87)])
def test_untrained_buckets_are_warned_of(bidirectional, distance):
    """80 tokens are at most 79 apart; the borders beyond are 91, or 87."""
    short = T5Bias(2, bidirectional=bidirectional, trained_length=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short.profile(torch.tensor([distance - 1 if distance > 0 else distance + 1]))
    with pytest.warns(UserWarning, match="trained_length 80"):
        short.profile(torch.tensor([0, distance]))


def test_gradients_of_many_pairs_are_summed_in_float32():
    """In bfloat16 a sum of some hundred numbers stands still; rounded once it is off by 2⁻⁹."""
    torch.manual_seed(0)
    positions = torch.arange(256)
    bias = T5Bias(2, 8, 16, std=1.0, dtype=torch.bfloat16)
    gradient = torch.rand(2, 256, 256)
    table = bias.table(positions, positions, dtype=torch.float32)
    (got,) = torch.autograd.grad(table, bias.weight, gradient)
    wide = T5Bias(2, 8, 16, dtype=torch.float64)
    table = wide.table(positions, positions, dtype=torch.float64)
    (want,) = torch.autograd.grad(table, wide.weight, gradient.double())
    torch.testing.assert_close(got.double(), want, rtol=2**-8, atol=0)
