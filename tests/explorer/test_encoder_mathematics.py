"""The page's encoder against the library's, every stage, with the same weights."""

import json

import pytest
import torch

from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias
from posenc.inspection.words import word_vectors
from posenc.transformer import Encoder, LayerNorm

CLOSE = {"rtol": 0.0, "atol": 1e-12}


def parameters(encoder: Encoder) -> str:
    """The weights of the first block, as the page keeps them."""
    block = encoder.blocks[0]
    parts = {
        "queries": block.attention.queries,
        "keys": block.attention.keys,
        "values": block.attention.values,
        "output": block.attention.output,
        "expand": block.feed_forward.expand,
        "contract": block.feed_forward.contract,
        "attentionNorm": block.attention_norm,
        "feedForwardNorm": block.feed_forward_norm,
    }
    return json.dumps(
        {
            name: {"weight": part.weight.tolist(), "bias": part.bias.tolist()}
            for name, part in parts.items()
        }
    )


@torch.no_grad()
def test_every_stage_of_the_encoder(javascript):
    torch.manual_seed(3)
    positional = Positional(Sinusoidal(16))
    encoder = Encoder(dim=16, heads=2, depth=1, positional=positional, inner=64).double().eval()
    for norm in (encoder.blocks[0].attention_norm, encoder.blocks[0].feed_forward_norm):
        norm.weight.copy_(torch.randn(16))
        norm.bias.copy_(torch.randn(16))
    x = torch.randn(6, 16, dtype=torch.float64)
    expected = encoder.stages(x[None])
    block = expected.blocks[0]
    found = javascript(
        [
            f"encoder.forward(matrices.add({x.tolist()}, order.paperRows(6, 16, 10000)), "
            f"{parameters(encoder)}, 2)"
        ]
    )[0]
    wanted = {
        "queries": block.attention.queries,
        "keys": block.attention.keys,
        "values": block.attention.values,
        "scores": block.attention.scores,
        "weights": block.attention.weights,
        "gathered": block.attention.heads,
        "joined": block.attention.joined,
        "attended": block.attention.output,
        "summed": block.attention_sum,
        "normed": block.attention_norm.scaled,
        "inner": block.feed_forward.inner,
        "activated": block.feed_forward.activated,
        "fed": block.feed_forward.output,
        "summedAgain": block.feed_forward_sum,
        "output": expected.output,
    }
    assert set(found) == set(wanted)
    for name, values in wanted.items():
        given = torch.tensor(found[name], dtype=torch.float64)
        torch.testing.assert_close(
            given, values[0], **CLOSE, msg=lambda m, name=name: f"{name}: {m}"
        )


def positional_of(scheme: str, entries: list) -> Positional:
    """What the library has for a scheme of section 9; learned rows are added beforehand."""
    if scheme == "t5":
        t5 = T5Bias(2)
        t5.load_state_dict({"weight": torch.tensor(entries).T})
        return Positional(scores=t5)
    return {
        "none": Positional(),
        "sinusoidal": Positional(Sinusoidal(16)),
        "learned": Positional(),
        "rotary": Positional(queries_keys=Rotary(8)),
        "alibi": Positional(scores=ALiBi(2)),
    }[scheme]


@torch.no_grad()
@pytest.mark.parametrize("scheme", ["none", "sinusoidal", "learned", "rotary", "alibi", "t5"])
def test_every_scheme_of_the_encoder(javascript, scheme):
    torch.manual_seed(4)
    entries, learned = javascript(
        ["[0, 1].map((h) => seen.t5Entries(h, 32))", "schemes.learnedRows(7, 16)"]
    )
    positional = positional_of(scheme, entries)
    encoder = Encoder(dim=16, heads=2, depth=1, positional=positional, inner=64).double().eval()
    if scheme == "t5":  # the entries are doubles, and were rounded on their way in
        positional.scores[0].weight.copy_(torch.tensor(entries, dtype=torch.float64).T)
    x = torch.randn(7, 16, dtype=torch.float64)
    given = x + torch.tensor(learned, dtype=torch.float64) if scheme == "learned" else x
    expected = encoder.stages(given[None])
    how = "{ count: 7, dim: 16, heads: 2, base: 10000 }"
    found = javascript(
        [
            f"((chosen) => encoder.forward(schemes.withRows({x.tolist()}, chosen).sum, "
            f"{parameters(encoder)}, 2, chosen))(schemes.scheme('{scheme}', {how}))"
        ]
    )[0]
    attention = expected.blocks[0].attention
    for name, wanted in (("weights", attention.weights[0]), ("output", expected.output[0])):
        given = torch.tensor(found[name], dtype=torch.float64)
        torch.testing.assert_close(given, wanted, rtol=0, atol=1e-7 if scheme == "t5" else 1e-12)


@torch.no_grad()
def test_layer_norm_of_the_worked_example(javascript):
    ones = json.dumps({"weight": [1] * 4, "bias": [0] * 4})
    found = javascript([f"matrices.layerNorm([2, 4, 6, 8], {ones})"])[0]
    assert found == pytest.approx([-1.34164, -0.44721, 0.44721, 1.34164], abs=1e-5)
    given = torch.tensor([2.0, 4.0, 6.0, 8.0], dtype=torch.float64)
    expected = LayerNorm(4).double()(given)
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), expected, **CLOSE)


def test_without_an_encoding_order_does_not_reach_the_encoder(javascript):
    model = json.dumps({"dim": 16, "heads": 2, "inner": 64, "seed": 2017})
    words = '["lion", "kills", "tiger"], [2, 1, 0]'
    found = javascript([f"order.orderEffect({words}, 10000, {model})"])[0]
    assert found["without"] < 1e-12
    assert found["with"] > 0.1


def test_a_word_has_the_vector_that_the_commands_give_it(javascript):
    words = ["your", "Cat", "ÇA", "你好", "İ", ""]
    found = javascript([f"{json.dumps(words)}.map((w) => sentences.embedding(w, 14, 14 ** 0.5))"])
    torch.testing.assert_close(
        torch.tensor(found[0], dtype=torch.float64), word_vectors(words, 14), **CLOSE
    )


def test_tokens(javascript):
    found = javascript(
        [
            "sentences.tokens('The dog, it\\'s here .').kept",
            "sentences.tokens('a '.repeat(70)).dropped",
            "sentences.tokens('   ').kept",
            "sentences.tokens('ça va 你好!').kept",
        ]
    )
    assert found[0] == ["The", "dog", ",", "it's", "here", "."]
    assert found[1:] == [6, [], ["ça", "va", "你好", "!"]]
