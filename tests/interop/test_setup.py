"""The positional set-up of whole models: parts, layers, spellings, and values that do not fit."""

import json
import subprocess
import sys

import pytest
import torch
from transformers import AutoConfig, AutoModel

from posenc.interop.fields import known
from posenc.interop.huggingface import (
    positional_setup,
    rotaries_from_config,
)

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 4}


def only(setup, name="text"):
    """What the layers of one part do, each kind once."""
    held = [layer.positional for layer in setup[name].layers]
    return list({repr(each): each for each in held}.values())


def test_a_base_a_layer_and_none_where_it_is_zero():
    bases = [10_000.0, 0, 500_000.0, 0]
    config = {"model_type": "granite_swa", **SMALL, "layer_rope_theta": bases}
    found = rotaries_from_config(config)
    assert [each and each.frequencies.base for each in found] == [1e4, None, 5e5, None]


@pytest.mark.parametrize(
    ("config", "rotated"),
    [
        ({"model_type": "recurrent_gemma", "block_types": ["recurrent", "recurrent", "attention"],
          **SMALL, "num_hidden_layers": 7}, [2, 5]),
        ({"model_type": "mllama_text_model", "cross_attention_layers": [1], **SMALL}, [0, 2, 3]),
        ({"model_type": "minimax", "attn_type_list": [0, 0, 0, 1], **SMALL}, [3]),
        ({"model_type": "zamba2", "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
          "use_mem_rope": True, **SMALL}, [1, 3]),
        ({"model_type": "muse_spark_text", "rope_parameters": {"rope_theta": 5e5}, **SMALL},
         [0, 1, 2]),
    ],
)  # fmt: skip
def test_fields_that_list_layers_are_read(config, rotated):
    found = rotaries_from_config(config)
    assert [i for i, each in enumerate(found) if each is not None] == rotated


@pytest.mark.parametrize(
    ("spelled", "meant"), [("RefinedWebModel", "falcon"), ("RefinedWeb", "falcon"), ("new", "gte")]
)
def test_other_spellings_are_known(spelled, meant):
    one, other = (positional_setup({"model_type": each, **SMALL}) for each in (spelled, meant))
    assert repr(only(one)) == repr(only(other))


def test_buckets_of_distance_are_those_of_deberta_v2_alone():
    file = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8,
            "max_relative_positions": -1, "max_position_embeddings": 64,
            "position_biased_input": False, **SMALL}  # fmt: skip
    told = {}
    for kind in ("deberta", "deberta-v2"):
        sizes = {"intermediate_size": 8, "vocab_size": 9}
        model = AutoModel.from_config(AutoConfig.for_model(kind, **file, **sizes))
        part = positional_setup({"model_type": kind, **file})["text"]
        bias = part.layers[0].positional.scores[0]
        assert 2 * bias.buckets == len(model.encoder.rel_embeddings.weight)
        told[kind] = (bias.buckets, bias.max_distance)
    assert told == {"deberta": (64, 64), "deberta-v2": (8, 64)}


DIFFUSERS = {
    "Flux": "AxialRotary(128, base=10000.0, form='flux')",
    "Flux2": "AxialRotary(128, base=2000.0, form='flux2')",
    "Wan 3D": "AxialRotary(128, base=10000.0, form='wan')",
    "HunyuanVideo 3D": "AxialRotary(128, base=256.0, form='hunyuan_video')",
    "QwenImage": "AxialRotary(128, base=10000.0, form='qwen_image')",
    "CogVideoX 3D": "AxialRotary(64, base=10000.0, form='cogvideox')",
    "LTXVideo 3D": "LTXRotary(64, heads=32, sizes=(125/2, 64, 64), base=10000.0)",
    "LTX2Video 3D":
        "LTXRotary(128, heads=32, sizes=(20, 2048, 2048), base=10000.0, pairing='half')",
    "MiniMaxH3 3D": "AxialRotary(128, base=10000.0, form='minimax_h3')",
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFUSERS)
def test_files_of_diffusers_are_the_recipes(name):
    """The recipes are held against the attention of diffusers; these are the same."""
    stem, _, three = name.partition(" ")
    kind = f"{stem}Transformer{three or '2D'}Model"
    file = {"_class_name": kind, "use_rotary_positional_embeddings": True, "rope_type": "split"}
    (part,) = positional_setup(file)
    assert repr(part.layers[0].positional.queries_keys[0]) == DIFFUSERS[name]


def test_the_attention_of_mpt_has_a_scale_of_its_own():
    (part,) = positional_setup({"model_type": "mpt", "attn_config": {"softmax_scale": 0.25}})
    assert (part.layers[0].softmax_scale, part.notes) == (0.25, ())
    (part,) = positional_setup({"model_type": "mpt", "attn_config": {"alibi_bias_max": 16}})
    assert part.layers[0].softmax_scale == 128**-0.5
    assert "alibi_bias_max" in part.notes[0]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "qwen2_vl_text", **SMALL, "rope_parameters": {
            "rope_type": "default", "mrope_section": [9, 9, 9]}}, "sections"),
        ({"model_type": "ours"}, "is not known"),
        ({"_class_name": "UNet2DModel"}, "_class_name is 'UNet2DModel'"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused_and_named(config, said):
    with pytest.raises(ValueError, match=said):
        positional_setup(config)


def test_a_scale_that_a_class_does_not_read_is_not_told():
    """Llama's code multiplies scores with the root of its heads' width, whatever stands there."""
    for model_type, width in (("llama", 16), ("gemma2", 100), ("ours", 100)):
        config = {"model_type": model_type, **SMALL, "head_dim": 16, "query_pre_attn_scalar": 100}
        (part,) = positional_setup({**config, "rope_theta": 1e4})
        assert part.layers[0].softmax_scale == width**-0.5


@pytest.mark.slow("a process of its own")
def test_files_are_read_without_transformers(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gemma3"}))
    program = (
        "import sys; from posenc.interop.huggingface import positional_setup, rotary_from_config; "
        f"positional_setup({str(path)!r}); rotary_from_config({{'model_type': 'llama'}}); "
        "sys.exit('transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow("imports the code of every model")
def test_what_classes_say_is_what_the_package_says():
    import transformers
    from tests.oracle_models.classes import said

    if transformers.__version__ != "5.23.0":
        pytest.skip("the list is of the release that the tests are run with")
    for name, theirs in json.loads(json.dumps(said())).items():
        facts = dict(known(name))
        assert theirs.pop("defaults").items() <= facts["defaults"].items(), name
        assert theirs.items() <= facts.items(), name


@pytest.mark.parametrize(
    ("fields", "reach"), [({}, 64), ({"sliding_window": 3}, 3), ({"local_attention": 20}, 10)]
)
def test_sliding_layers_of_modernbert_are_told_as_the_model_hides_keys(fields, reach):
    sizes = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2,
             "intermediate_size": 32, "vocab_size": 50, "pad_token_id": 0,
             "max_position_embeddings": 512,
             "layer_types": ["full_attention", "sliding_attention"]}  # fmt: skip
    told = {
        "modernbert": (reach + 1, [-reach, reach]),
        "modernbert-decoder": (reach, [1 - reach, 0]),
    }
    for name, (window, ends) in told.items():
        (part,) = positional_setup({"model_type": name, **sizes, **fields}).parts
        assert [layer.window for layer in part.layers] == [None, window]
        config = AutoConfig.for_model(name, **sizes, **fields, attn_implementation="eager")
        model = AutoModel.from_config(config).eval()
        with torch.no_grad():
            weights = model(torch.arange(200)[None] % 50, output_attentions=True).attentions[1]
        seen = weights[0, :, 100].amax(0).nonzero().flatten() - 100
        assert [int(seen.min()), int(seen.max())] == ends


@pytest.mark.parametrize("model_type", ["llava", "aria", "qwen3_vl", "siglip"])
def test_fields_beside_parts_are_told_where_the_class_does_not_look_for_them(model_type):
    beside = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
              "max_position_embeddings": 77, "rope_theta": 12345.0}  # fmt: skip
    assert AutoConfig.for_model(model_type, **beside).text_config.max_position_embeddings != 77
    text = positional_setup({"model_type": model_type, **beside}).parts[0]
    assert len(text.layers) == 2
    assert text.certainty == "assumed"
    assert "does not look for" in text.notes[-1]


def test_what_a_class_leaves_out_beyond_the_trained_length_is_not_called_verified():
    """PhiMoE's code has one list of factors for all lengths, and two in its configuration."""
    rope = {"rope_type": "longrope", "short_mscale": 1.1, "long_mscale": 1.2,
            "original_max_position_embeddings": 64, "short_factor": [1.0] * 8,
            "long_factor": [4.0] * 8}  # fmt: skip
    file = {"model_type": "phimoe", **SMALL, "max_position_embeddings": 256, "rope_scaling": rope}
    assert positional_setup(file, length=64)["text"].certainty == "verified"
    long = positional_setup(file, length=65)["text"]
    assert long.certainty == "read"
    assert "short_factor" in long.notes[-1]
