"""Longer contexts by patch, and what their configurations say."""

import copy

import pytest
import torch
from tests.patched_models.building import built as typical
from tests.patched_models.building import loaded
from tests.patched_models.small import IDS, LISTS, YARN, built, logits, near

from posenc import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Llama3, LongRoPE, YaRN
from posenc.interop.huggingface import (
    patch,
    rotary_from_config,
    temperatures_from_config,
)

EXTENSIONS = {
    "yarn": YaRN(Geometric(16), 4.0, 512),
    "linear": Linear(Geometric(16), 2.0),
    "llama3": Llama3(Geometric(16, 5e5), 8.0, trained_length=128),
    "base": Rotary(Geometric(16, 1e6)),
}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_is_told_to_the_configuration(name, tmp_path):
    """Saved and loaded, the model of transformers itself means what we put in."""
    model, extension = built(), EXTENSIONS[name]
    before, said = logits(model), copy.deepcopy(model.config.to_dict())
    patched = patch(model, rotary=extension)
    assert patched.config_follows
    inside = logits(model)
    assert (inside - before).abs().max() > 1e-4
    schedule = extension.frequencies if isinstance(extension, Rotary) else extension
    assert rotary_from_config(model.config).frequencies == schedule
    longest = {"yarn": 2048, "linear": 512, "llama3": 1024, "base": 512}[name]
    assert model.config.max_position_embeddings == longest
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)
    patched.undo()
    saved = {"architectures", "dtype", "transformers_version"}
    again = model.config.to_dict()
    assert all(again[name] == said[name] for name in said.keys() - saved)
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("name", ["extended", "llama3.1", "ministral3"])
def test_a_model_that_is_extended_keeps_its_trained_length(name):
    """Not ``max_position_embeddings``, which was extended with it; null says as little as none."""
    model = built(name)
    own = rotary_from_config(model.config).frequencies
    wanted = YaRN(own.of, 8.0, own.trained_length)
    for null in ({}, {"original_max_position_embeddings": None, "rope_theta": None}):
        with patch(model, rotary={"rope_type": "yarn", "factor": 8.0, **null}) as patched:
            assert patched.config_follows
            assert rotary_from_config(model.config).frequencies == wanted
            assert next(iter(model.model.rotary_emb.rotaries.values())).frequencies == wanted


LINEAR = {"rope_type": "linear", "factor": 8.0}


@pytest.mark.parametrize(
    "given", [LINEAR, {"full_attention": LINEAR}, {"full_attention": Linear(Geometric(16, 1e6), 8)}]
)
def test_of_layers_that_differ_one_dictionary_is_for_those_of_the_class(given):
    """As transformers hands ``rope_scaling`` to the full layers of Gemma 3."""
    model = built("gemma3")
    before, said = logits(model), copy.deepcopy(model.config.rope_parameters)
    with patch(model, rotary=given) as patched:
        assert patched.config_follows
        assert "full_attention: Linear × 8" in repr(patched)
        full = rotary_from_config(model.config, layer_type="full_attention").frequencies
        assert full == Linear(Geometric(16, 1e6), 8.0)
        local = rotary_from_config(model.config, layer_type="sliding_attention")
        assert local.frequencies == Geometric(16, 1e4)
        assert model.config.rope_parameters["sliding_attention"] == said["sliding_attention"]
    assert model.config.rope_parameters == said
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("extension", [LINEAR, YARN, NTK(Geometric(16, 1e4), 4.0)])
def test_the_temperature_of_queries_stays_whatever_extends_the_rotation(extension):
    """Ministral 3 reads it from the rope dictionary whenever it runs."""
    model = built("ministral3")
    temperatures = repr(temperatures_from_config(model.config))
    with patch(model, rotary=extension) as patched:
        assert patched.config_follows
        assert repr(temperatures_from_config(model.config)) == temperatures


def test_a_length_that_is_stated_holds_and_is_written(tmp_path):
    """transformers switches LongRoPE by the longest row it has seen; here the caller says."""
    model = built("phi3-long")
    before = copy.deepcopy(model.config.rope_parameters)
    both = torch.cat([IDS, IDS]) % 32, torch.stack([torch.arange(12), 400 + torch.arange(12)])
    alone = logits(model)
    theirs = logits(model, input_ids=both[0], position_ids=both[1])[:1]
    assert (theirs - alone).abs().max() > 1e-3
    with patch(model), pytest.raises(ValueError, match="256 positions"):
        logits(model, input_ids=both[0], position_ids=both[1])
    with patch(model, length=512) as patched:
        assert patched.config_follows
        ours = logits(model, input_ids=both[0], position_ids=both[1])[:1]
        near(ours, logits(model))
        long = LongRoPE(Geometric(16), **{k[:-7]: v for k, v in LISTS.items()},
                        trained_length=256, factor=2.0).at(512)  # fmt: skip
        assert patched.angles[0].rotaries["all"].frequencies == long
        model.save_pretrained(tmp_path)
        near(logits(loaded(model, tmp_path)), logits(model))
    assert model.config.rope_parameters == before


def test_pairs_that_stand_still_are_not_set_turning():
    model = typical("gemma4_text")
    with pytest.raises(ValueError, match="stands still"):
        patch(model, rotary=YARN)
    wanted = {"full_attention": {"rope_type": "proportional", "factor": 4.0}}
    with patch(model, rotary=wanted) as patched:
        assert 0 in patched.angles[0].rotaries["full_attention"].frequencies.turns()
        assert patched.config_follows


def test_phi3_knows_no_yarn_and_is_saved_with_its_frequencies(tmp_path):
    model = typical("phi3")
    patched = patch(model, rotary=YARN | {"original_max_position_embeddings": 256})
    assert patched.angles[0].rotaries["all"].frequencies.trained_length == 256
    assert patched.config_follows
    assert model.config.rope_parameters["rope_type"] == "longrope"
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside)


def test_the_softmax_scale_follows_where_yarn_changes_it(tmp_path):
    """m(1)² with m(c) = 0.1 c ln 4 + 1 (DeepSeek-V2, section 3.1.4)."""
    model = typical("deepseek_v3")
    scales = [layer.self_attn.scaling for layer in model.model.layers]
    wanted = {"mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 64}
    patched = patch(model, rotary=YARN | wanted)
    for layer, scale in zip(model.model.layers, scales, strict=True):
        assert layer.self_attn.scaling == pytest.approx(scale * 1.1386294361119891**2)
    assert patched.config_follows
    inside = logits(model)
    model.save_pretrained(tmp_path)
    near(logits(loaded(model, tmp_path)), inside, 5e-5)
    patched.undo()
    assert [layer.self_attn.scaling for layer in model.model.layers] == scales


def test_attention_with_a_table_gets_as_many_rows_as_it_needs():
    model = typical("gptj")
    rows = len(model.transformer.h[0].attn.embed_positions)
    with patch(model):
        assert len(model.transformer.h[0].attn.embed_positions) == rows
    with patch(model, rotary=YARN | {"original_max_position_embeddings": rows}):
        assert len(model.transformer.h[0].attn.embed_positions) == 4 * rows
    positions = 2 * rows + torch.arange(IDS.shape[1])[None]
    with patch(model, length=3 * rows):  # attention sees differences alone
        near(logits(model, position_ids=positions), logits(model))


REFUSED = [
    ("llama", {"rope_type": "yarn", "factr": 4.0}, "factr"),
    ("llama", {"rope_type": "yarn"}, "without a factor"),
    ("llama", Geometric(8), "16 of 16"),
    ("ministral3", YARN | {"original_max_position_embeddings": 32}, "temperature"),
]


@pytest.mark.parametrize(("name", "wanted", "noun"), REFUSED)
def test_what_does_not_fit_is_refused_and_the_model_is_left_alone(name, wanted, noun):
    model = built(name)
    module, said = model.model.rotary_emb, copy.deepcopy(model.config.rope_parameters)
    with pytest.raises((ValueError, TypeError), match=noun):
        patch(model, rotary=wanted)
    assert model.model.rotary_emb is module
    assert model.config.rope_parameters == said
