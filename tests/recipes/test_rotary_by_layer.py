"""Recipes whose layers differ: which layer has what, against transformers, and in an encoder."""

import pytest
import torch

from posenc import Positional, Rotary, recipes
from posenc.positions import consecutive
from posenc.transformer import Encoder, KeyValueCache

GEMMA = {"hidden_size": 2560, "num_attention_heads": 8, "head_dim": 256, "rope_theta": 1e6,
         "rope_local_base_freq": 1e4}  # fmt: skip
LINEAR = {"rope_type": "linear", "factor": 8.0}
SCOUT = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 16.0, "low_freq_factor": 1.0,
         "high_freq_factor": 1.0, "original_max_position_embeddings": 8192}  # fmt: skip

BY_TYPE = {
    "Gemma 3 4B": (
        recipes.gemma3(), "gemma3_text",
        GEMMA | {"num_hidden_layers": 34, "rope_scaling": LINEAR},
    ),
    "Gemma 3 1B": (
        recipes.gemma3(depth=26, factor=None), "gemma3_text", GEMMA | {"num_hidden_layers": 26},
    ),
    "ModernBERT base": (recipes.modernbert(), "modernbert", {}),
    "ModernBERT large": (
        recipes.modernbert(depth=28), "modernbert",
        {"num_hidden_layers": 28, "hidden_size": 1024, "num_attention_heads": 16},
    ),
}  # fmt: skip


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", BY_TYPE)
def test_each_layer_turns_as_its_type_does(name, published, only):
    layers, model_type, fields = BY_TYPE[name]
    model = published(model_type, fields)
    types = model.config.layer_types
    assert len(layers) == len(types)
    for layer, layer_type in zip(layers, types, strict=True):
        model.agrees(only(layer), layer_type)
    for layer_type in set(types):
        rotary = only(layers[types.index(layer_type)])
        q, k = random(1, 2, 20, rotary.head_dim), random(1, 2, 20, rotary.head_dim).flip(-1)
        turned_q, turned_k = rotary(q, k)
        want = model.scores("apply_rotary_pos_emb", q, k, layer_type)
        torch.testing.assert_close(turned_q @ turned_k.mT, want, atol=3e-4, rtol=0)


def test_smollm3_rotates_where_the_model_does(published):
    model = published("smollm3", {"rope_theta": 5e6})
    layers = recipes.smollm3()
    assert [len(layer.queries_keys) for layer in layers] == model.config.no_rope_layers
    model.agrees(layers[0].queries_keys[0])


@pytest.mark.parametrize(("factor", "rope"), [(16.0, SCOUT), (None, {"rope_theta": 5e5})])
def test_llama4_rotates_where_and_as_the_model_does(factor, rope, published):
    model = published("llama4_text", {"rope_parameters": dict(rope)})
    layers = recipes.llama4(factor=factor)
    assert [int(isinstance(layer.queries_keys[0], Rotary)) for layer in layers] == (
        model.config.no_rope_layers
    )
    rotary = layers[0].queries_keys[0]
    theirs = model.rotary.inv_freq.double()
    lengths = torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    torch.testing.assert_close(2 * torch.pi / lengths, theirs, rtol=4e-6, atol=0)
    q, k = random(1, 20, 2, 128), random(1, 20, 2, 128).flip(-1)
    wanted = model.code.apply_rotary_emb(q, k, model.rotary(q, consecutive(20)[None]))
    for got, want in zip(rotary(q.transpose(1, 2), k.transpose(1, 2)), wanted, strict=True):
        torch.testing.assert_close(got.transpose(1, 2), want, atol=2e-5, rtol=0)


@pytest.mark.parametrize("build", [recipes.gemma3, recipes.modernbert, recipes.smollm3,
                                   recipes.llama4])  # fmt: skip
def test_an_encoder_takes_them_and_decodes(build):
    layers = build(head_dim=8, depth=7)
    assert len({id(layer) for layer in layers}) == 2
    assert all(isinstance(layer, Positional) for layer in layers)
    encoder = Encoder(16, 2, 7, positional=layers, is_causal=True).double().eval()
    x, cache = random(1, 6, 16).double(), KeyValueCache()
    with torch.no_grad():
        steps = [encoder(x[:, i : i + 1], cache=cache) for i in range(6)]
        torch.testing.assert_close(torch.cat(steps, 1), encoder(x), atol=1e-12, rtol=0)
