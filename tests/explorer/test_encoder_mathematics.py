"""The page's encoder against the library's, every stage, with the same weights."""

import json

import pytest
import torch

from posenc import ALiBi, Positional, Rotary, Sinusoidal, T5Bias
from posenc.inspection.words import word_vectors
from posenc.transformer import Encoder

CLOSE = {"rtol": 0.0, "atol": 1e-12}


def double(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def parameters(encoder: Encoder) -> str:
    """The weights of the first block, as the page keeps them."""
    block = encoder.blocks[0]
    attention, inside = block.attention, block.feed_forward
    parts = {
        **{name: getattr(attention, name) for name in ("queries", "keys", "values", "output")},
        **{"expand": inside.expand, "contract": inside.contract},
        **{"attentionNorm": block.attention_norm, "feedForwardNorm": block.feed_forward_norm},
    }
    return json.dumps(
        {n: {"weight": p.weight.tolist(), "bias": p.bias.tolist()} for n, p in parts.items()}
    )


@torch.no_grad()
@pytest.mark.parametrize("scheme", ["none", "sinusoidal", "learned", "rotary", "alibi", "t5"])
def test_every_stage_of_the_encoder_by_every_scheme(javascript, scheme):
    torch.manual_seed(4)
    entries, learned = javascript(
        ["[0, 1].map((h) => seen.t5Entries(h, 32))", "schemes.learnedRows(7, 16)"]
    )
    positional = {
        "sinusoidal": Positional(Sinusoidal(16)),
        "rotary": Positional(queries_keys=Rotary(8)),
        "alibi": Positional(scores=ALiBi(2)),
        "t5": Positional(scores=T5Bias(2)),
    }.get(scheme, Positional())
    encoder = Encoder(dim=16, heads=2, depth=1, positional=positional, inner=64).double().eval()
    for norm in (encoder.blocks[0].attention_norm, encoder.blocks[0].feed_forward_norm):
        norm.weight.copy_(torch.randn(16))
        norm.bias.copy_(torch.randn(16))
    if scheme == "t5":
        positional.scores[0].weight.copy_(double(entries).T)
    x = torch.randn(7, 16, dtype=torch.float64)
    expected = encoder.stages((x + double(learned) if scheme == "learned" else x)[None])
    how = "{ count: 7, dim: 16, heads: 2, base: 10000 }"
    found = javascript(
        [
            f"((chosen) => encoder.forward(schemes.withRows({x.tolist()}, chosen).sum, "
            f"{parameters(encoder)}, 2, chosen))(schemes.scheme('{scheme}', {how}))"
        ]
    )[0]
    block = expected.blocks[0]
    attention, inside = block.attention, block.feed_forward
    wanted = {
        "queries": attention.encoded_queries,
        "keys": attention.encoded_keys,
        "values": attention.values,
        "scores": attention.encoded_scores,
        "weights": attention.weights,
        "gathered": attention.heads,
        "joined": attention.joined,
        "attended": attention.output,
        "summed": block.attention_sum,
        "normed": block.attention_norm.scaled,
        "inner": inside.inner,
        "activated": inside.activated,
        "fed": inside.output,
        "summedAgain": block.feed_forward_sum,
        "output": expected.output,
    }
    assert set(wanted) == set(found)
    for name, values in wanted.items():
        torch.testing.assert_close(double(found[name]), values[0], **CLOSE, msg=f"{name} differs")


def test_a_word_has_the_vector_that_the_commands_give_it(javascript):
    words = ["your", "Cat", "ÇA", "你好", "İ", ""]
    found = javascript([f"{json.dumps(words)}.map((w) => sentences.embedding(w, 14, 14 ** 0.5))"])
    torch.testing.assert_close(double(found[0]), word_vectors(words, 14), **CLOSE)


def test_tokens(javascript):
    texts = ["The dog, it's here .", "   ", "ça va 你好!", "a " * 70]
    found = javascript([f"sentences.tokens({json.dumps(text)})" for text in texts])
    kept = [each["kept"] for each in found]
    assert kept[0] == ["The", "dog", ",", "it's", "here", "."]
    assert kept[1:3] == [[], ["ça", "va", "你好", "!"]]
    assert found[3]["dropped"] == 6
