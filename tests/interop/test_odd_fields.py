"""Odd values in every field that a reading looks at, and files whose fields contradict each other.

A field either is not looked at, and then the reading is the same without it, or what does not fit
is refused by the name of the field: nothing odd is ever made something of.
"""

import copy
import random
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from posenc.interop.huggingface import (
    positional_setup,
    rotaries_from_config,
    rotary_from_config,
)

YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "truncate": False,
        "attention_factor": 1.5, "beta_fast": 32.0, "beta_slow": 1.0,
        "original_max_position_embeddings": 4096}  # fmt: skip
ALWAYS_ODD = (-1, float("inf"), float("nan"), "a", [1], {"a": 1})
"""Values that no field of those below can have."""

PLAIN = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
FILES: dict[str, dict[str, Any]] = {
    "llama": {**PLAIN, "head_dim": 64, "max_position_embeddings": 8192, "rope_parameters": YARN},
    "gemma3_text": {**PLAIN, "head_dim": 64, "sliding_window": 512, "query_pre_attn_scalar": 64,
                    "rope_theta": 1e6, "rope_local_base_freq": 1e4},
    "llama4_text": {**PLAIN, "head_dim": 64, "attention_chunk_size": 512, "rope_theta": 1e6,
                    "layer_types": ["chunked_attention", "full_attention"] * 2,
                    "num_hidden_layers": 4},
    "gpt_neox": {**PLAIN, "rotary_pct": 0.25, "rotary_emb_base": 1e4},
    "qwen2_vl_text": {**PLAIN, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6,
                                                   "mrope_section": [8, 12, 12]}},
    "deepseek_v3": {**PLAIN, "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "rope_theta": 1e4},
    "gptj": {**PLAIN, "rotary_dim": 32},
    "roberta": {**PLAIN, "max_position_embeddings": 512, "pad_token_id": 1},
    "t5": {"d_model": 256, "num_heads": 4, "num_layers": 2, "relative_attention_num_buckets": 32,
           "relative_attention_max_distance": 128},
    "swin": {"depths": [1, 1], "num_heads": [2, 4], "window_size": 7},
    "vit": {**PLAIN, "image_size": 224, "patch_size": 16},
    "videomae": PLAIN,
    "informer": {"d_model": 64, "context_length": 12, "encoder_layers": 1, "decoder_layers": 1},
}  # fmt: skip
"""Files of many schemes, with every field that their reading looks at."""


def _told(config: dict[str, Any]) -> str:
    parts = []
    for part in positional_setup(config):
        layers = [
            (repr(layer.positional), layer.softmax_scale, layer.window, layer.chunk)
            for layer in part.layers
        ]
        parts.append((part.name, part.trained_length, layers))
    return repr(parts)


def _each_field(file: dict[str, Any]):
    """Each field, and a function that gives the file with another value of it."""
    for name, value in file.items():
        yield name, lambda odd, name=name: {**file, name: odd}
        for key in value if isinstance(value, dict) else ():
            yield key, lambda odd, name=name, key=key: {**file, name: {**file[name], key: odd}}


USUAL = ("llama", "gemma3_text", "deepseek_v3", "swin", "vit")
MARKED = [
    name if name in USUAL else pytest.param(name, marks=pytest.mark.slow("many files"))
    for name in FILES
]


@pytest.mark.parametrize("model_type", MARKED)
def test_what_does_not_fit_is_refused_by_the_name_of_its_field(model_type):
    file = {"model_type": model_type, **FILES[model_type]}
    usual, refused = _told(file), 0
    for field, changed in _each_field(file):
        if field == "model_type":
            continue
        for odd in ALWAYS_ODD:
            if field == "rope_parameters" and odd == {"a": 1}:
                continue  # a dictionary, whose key is refused
            told = _told_or_refused(changed(odd))
            if told != usual:
                assert told.startswith("refused"), f"{field}: {odd!r} was made {told}"
                assert field in told or repr(odd) in told, told
                refused += 1
    assert refused >= len(ALWAYS_ODD)


def _told_or_refused(config: dict[str, Any]) -> str:
    """What a file is read as, in objects; what refuses it, or the words in place of them."""
    try:
        told = _told(config)
    except ValueError as error:
        return f"refused: {error}"
    words = [note for part in positional_setup(config) for note in part.notes]
    return f"refused: {words}" if "no encoding of the library" in str(words) else told


ROPES: tuple[dict[str, Any], ...] = (
    {"rope_type": "default"},
    {"type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096},
    {"rope_type": "yarn", "type": "linear", "factor": 2.0},
)
ROTATED = [
    "phi", "phi3", "qwen2_vl_text", "gemma3_text", "stablelm", "deepseek_v3", "modernbert", "glm4",
    "mistral", "nemotron", "persimmon",
]  # fmt: skip


def _contradicting(choose: random.Random) -> dict[str, Any]:
    """Fields of a rotation, old and new, inside dictionaries and beside them, at random."""
    said: dict[str, Any] = {"num_hidden_layers": 2}
    for name, values in (
        ("max_position_embeddings", (4096, 131072)),
        ("rope_theta", (10000.0, 1e6, None)),
        ("rotary_emb_base", (20000.0,)),
        ("partial_rotary_factor", (0.5, 1.0, 0.75)),
        ("rotary_pct", (0.25, 0.5)),
        ("head_dim", (64, 96)),
    ):
        if choose.random() < 0.4:
            said[name] = choose.choice(values)
    for name in ("rope_parameters", "rope_scaling"):
        if choose.random() < 0.4:
            said[name] = dict(choose.choice(ROPES))
            if choose.random() < 0.4:
                said[name]["rope_theta"] = choose.choice((5e5, 2e4))
    return said


def _rotations(config: object) -> str | None:
    try:
        return str(rotaries_from_config(config))
    except (ValueError, TypeError):
        return None


@pytest.mark.parametrize(
    "model_type",
    [
        "llama", "gpt_neox", "olmo3",
        *(pytest.param(name, marks=pytest.mark.slow("many files")) for name in ROTATED),
    ],
)  # fmt: skip
def test_a_file_is_read_as_transformers_reads_it_or_refused(model_type):
    """Whatever fields contradict each other: the object that transformers makes of a file decides.

    A file that says one thing twice, and differently, may be refused where transformers chooses.
    """
    choose, same = random.Random(model_type), 0
    for _ in range(40):
        said = _contradicting(choose)
        try:
            made = CONFIG_MAPPING[model_type](**copy.deepcopy(said))
        except Exception:  # transformers refuses in many ways
            continue
        file = _rotations({"model_type": model_type, **said})
        decided = _rotations(made)
        assert file is None or decided is None or file == decided, said
        same += file == decided and file is not None
    assert same >= 5


LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4}
YARN_OF = {**YARN, "truncate": True, "mrope_section": [8, 12, 12]}
del YARN_OF["original_max_position_embeddings"]
QWEN = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2,
        "rope_parameters": YARN_OF, "max_position_embeddings": 8192}  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "fields", "strays"),
    [
        ("qwen2_vl", QWEN, ()),
        ("qwen2_vl", {**QWEN, "head_dim": 128}, ("head_dim",)),
        ("qwen2_vl", {**QWEN, "original_max_position_embeddings": 2048},
         ("original_max_position_embeddings",)),
        ("qwen2_5_vl", {**QWEN, "head_dim": 128, "original_max_position_embeddings": 2048},
         ("head_dim", "original_max_position_embeddings")),
        ("paddleocr_vl", {**QWEN, "head_dim": 64, "original_max_position_embeddings": 2048},
         ("original_max_position_embeddings",)),
        ("fuyu", {**PLAIN, "rope_theta": 5e4}, ()),
        ("fuyu", {**PLAIN, "rope_scaling": LINEAR, "head_dim": 32}, ("head_dim",)),
        ("fuyu", {**PLAIN, "rope_parameters": LINEAR, "partial_rotary_factor": 1.0},
         ("rope_parameters", "partial_rotary_factor")),
    ],
)  # fmt: skip
def test_what_a_class_does_not_hand_on_to_its_part_is_left_out_and_named(
    model_type, fields, strays
):
    """Flat files: the object that transformers makes of a file decides."""
    made = CONFIG_MAPPING[model_type].from_dict(copy.deepcopy(fields))
    file = {"model_type": model_type, **fields}
    assert _told(file) == _told(made)
    part = positional_setup(file)["text"]
    assert part.strays == strays
    if strays:
        are = "is" if len(strays) == 1 else "are"
        assert "left out" in part.notes[-1]
        with pytest.warns(UserWarning, match=f"{strays[0]}.* {are} left out"):
            rotary_from_config(file)


@pytest.mark.parametrize(
    "field", [{"alibi": True}, {"qk_rope_head_dim": 16}, {"use_mem_rope": False}]
)
def test_fields_of_other_models_change_no_rotation(field):
    file = {"model_type": "stablelm", **PLAIN}
    assert _told({**file, **field}) == _told(file)


@pytest.mark.parametrize("model_type", ["dia", "t5gemma2"])
def test_fields_beside_the_parts_of_a_model_without_layers_of_its_own_are_none_of_it(model_type):
    """An encoder-decoder takes nothing from there: transformers builds both of its defaults."""
    file = {"model_type": model_type, **PLAIN, "rope_theta": 5e5}
    parts = [(part.name, part.layers) for part in positional_setup({"model_type": model_type})]
    setup = positional_setup(file)
    assert [name for name, _ in parts] == [part.name for part in setup]
    assert repr(parts) == repr([(part.name, part.layers) for part in setup])
    assert setup.parts[0].strays == (*PLAIN, "rope_theta")
    with (
        pytest.warns(UserWarning, match="rope_theta stand beside a missing decoder.* left out"),
        pytest.raises(ValueError, match=r"made of parts"),
    ):
        rotary_from_config(file)


@pytest.mark.parametrize("model_type", ["bridgetower", "flava"])
def test_fields_of_the_whole_are_none_of_a_missing_part(model_type):
    said = {"hidden_size": 1536}
    made = positional_setup(CONFIG_MAPPING[model_type](**said))
    file = positional_setup({"model_type": model_type, **said})
    assert repr(file["text"].layers) == repr(made["text"].layers)
    assert "1536" not in repr(file["text"].layers)
