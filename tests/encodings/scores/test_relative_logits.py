"""Relative logits and their temperature, against the model that ships them and by hand."""

import torch
from torch import nn

import posenc
from posenc import LogTemperature, Positional, RelativeLogits

HEADS, DIM, WIDTH = 4, 12, 3


def example(extent: int = 5, **options) -> RelativeLogits:
    torch.manual_seed(0)
    return RelativeLogits(HEADS, DIM, WIDTH, extent, std=1.0, **options).double()


def hidden(seq: int = 9) -> torch.Tensor:
    return torch.randn(2, seq, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def added(logits: RelativeLogits, x: torch.Tensor) -> torch.Tensor:
    nothing = torch.zeros(len(x), HEADS, x.shape[1], x.shape[1], dtype=x.dtype)
    return logits(nothing, q_hidden=x, k_hidden=x)


def test_they_are_those_of_inkling():
    from transformers.models.inkling import modeling_inkling as inkling

    logits, x, here = example(), hidden(), torch.arange(9)
    theirs = inkling.InklingRelativeLogits(WIDTH, 5).double()
    theirs.load_state_dict({"proj": logits.profiles})
    states = nn.functional.linear(x, logits.weight).view(2, 9, HEADS, WIDTH)
    torch.testing.assert_close(added(logits, x), theirs(states, here, here))


def test_they_are_those_of_inkling_2_clipped():
    from transformers.models.inkling2 import modeling_inkling2 as inkling

    logits, x, here = example(clip=1.5), hidden(), torch.arange(9)
    nn.init.uniform_(logits.scale, 0.1, 2.0)
    clip = inkling.Inkling2ScaledL2Clip(HEADS, WIDTH, 1.5)
    clip.load_state_dict({"scale": logits.scale})
    theirs = inkling.Inkling2RelativeLogits(WIDTH, 5).double()
    theirs.load_state_dict({"proj": logits.profiles})
    states = nn.functional.linear(x, logits.weight).view(2, 9, HEADS, WIDTH)
    lengths = (states * logits.scale).norm(dim=-1)
    assert (lengths < 1.5).any()
    assert (lengths > 1.5).any()
    # Theirs clips in float32.
    torch.testing.assert_close(
        added(logits, x), theirs(clip(states), here, here), atol=1e-5, rtol=1e-5
    )


def test_with_the_temperature_attention_is_that_of_inkling():
    """Its code multiplies queries and logits by the temperature, and adds."""
    from transformers.models.inkling import modeling_inkling as inkling

    logits, x = example(), hidden()
    q, k, v = torch.randn(3, 2, HEADS, 9, 8, dtype=torch.float64)
    tau = 1 + 0.3 * torch.log(((torch.arange(9) + 1) / 4).clamp(min=1)).double().view(-1, 1)
    later = torch.full((9, 9), -torch.inf, dtype=torch.float64).triu(1)
    model = nn.Module()
    model.num_key_value_groups = 1
    want, _ = inkling.eager_attention_forward(
        model, q * tau, k, v, later, scaling=1 / 8, position_bias=added(logits, x) * tau
    )
    positional = Positional(scores=(logits, LogTemperature(HEADS, floor=4, alpha=0.3)))
    got = posenc.attention(
        q, k, v, is_causal=True, scale=1 / 8, positional=positional, q_hidden=x, k_hidden=x
    )
    # Theirs takes the softmax in float32.
    torch.testing.assert_close(got, want.transpose(1, 2), atol=1e-6, rtol=1e-5)
