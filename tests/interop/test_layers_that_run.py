"""What is said of layers, held against tiny models: which of them rotate, and what they see."""

import pytest
import torch
from tests.oracle_models.windows import held
from transformers import AutoConfig, AutoModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from posenc.interop import windows
from posenc.interop.huggingface import positional_setup

TINY = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "intermediate_size": 32, "vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2, "moe_intermediate_size": 16, "num_experts": 4, "num_local_experts": 4,
    "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "n_routed_experts": 4,
    "num_hidden_layers": 4, "num_dense_layers": 1, "max_position_embeddings": 64,
    "first_k_dense_replace": 1,
}  # fmt: skip
LENGTH = 9
MORE = pytest.mark.slow("tiny models of one more type, in some twenty states")


@pytest.fixture
def run(monkeypatch):
    """Keys and masks of each layer that attends, of a model run on tokens that are all alike."""
    seen = []

    def attend(module, query, key, value, attention_mask, **_):
        seen.append((key.detach(), attention_mask))
        repeated = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
        return repeated.transpose(1, 2).contiguous(), None

    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS._global_mapping, "watched", attend)
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, "watched", eager_mask)

    def ran(file):
        seen.clear()
        config = type(AutoConfig.for_model(file["model_type"])).from_dict(dict(file))
        model = AutoModel.from_config(config, attn_implementation="watched").eval()
        with torch.no_grad():
            model(input_ids=torch.full((1, LENGTH), 5), use_cache=False)
        return list(seen)

    return ran


FULL = ["full_attention"] * 2


@pytest.mark.parametrize(
    ("model_type", "fields"),
    [
        *[(name, {"layer_types": FULL}) for name in (
            "afmoe", "cohere2", "cohere2_moe", "exaone4", "exaone_moe", "flint", "kolibri1")],
        ("exaone4", {"layer_types": FULL, "sliding_window": None}),
        ("cohere2_moe", {"prefix_dense_sliding_window_pattern": 2, "layer_types": FULL}),
        ("cohere2_moe", {"num_hidden_layers": 7, "first_k_dense_replace": 2}),
        ("cohere2_moe", {"mlp_layer_types": ["sparse", "dense"], "layer_types": FULL}),
        ("cohere2", {"layer_types": ["sliding_attention", "full_attention"]}),
    ],
)  # fmt: skip
def test_layers_of_full_attention_rotate_where_their_model_does(run, model_type, fields):
    file = {"model_type": model_type, **TINY, "num_hidden_layers": 2, **fields}
    turned = [bool((keys - keys[:, :, :1]).abs().max() > 1e-4) for keys, _ in run(file)]
    held = [each.positional for each in positional_setup(file)["text"].layers]
    read = [bool(each and each.queries_keys) for each in held]
    assert read == turned


@pytest.fixture
def facts(monkeypatch):
    """What was measured, which a run may write into and leaves as it was."""
    listed = dict(windows.measured())
    monkeypatch.setattr(windows, "measured", lambda: listed)
    return windows.measured()


@pytest.mark.slow("a model of each", spares=2)
@pytest.mark.parametrize(
    ("model_type", "counts"),
    [
        ("llama", {"agrees": 11}),
        pytest.param("mistral", {"agrees": 23}, marks=MORE),
        pytest.param("minimax", {"agrees": 13, "not run": 10}, marks=MORE),
        pytest.param("qwen2_moe", {"agrees": 16, "refused": 6, "not run": 1}, marks=MORE),
        ("gpt_neo", {"agrees": 3}),
    ],
)
def test_windows_are_what_models_let_a_query_see(facts, model_type, counts):
    rule = facts[model_type]
    found = held(model_type)
    assert found.counts == counts
    assert tuple(found.rule) == rule
    hidden = "hides all keys"
    assert all(hidden in each for each in found.refused)
    assert not found.differing


@pytest.mark.slow("tiny models of each type that slides, in some twenty states each")
@pytest.mark.parametrize(
    "model_type", [name for name, rule in windows.measured().items() if rule[0] != windows.NOWHERE]
)
def test_windows_of_every_type_that_slides(facts, model_type):
    rule = facts[model_type]
    found = held(model_type)
    assert found.agrees, (found.why, found.differing)
    assert found.counts["agrees"] >= 8
    assert tuple(found.rule) == rule
    assert not found.refused or model_type == "qwen2_moe"


def test_as_many_types_were_measured_as_are_said_to_be():
    rules = [rule[0] for rule in windows.measured().values()]
    assert [rules.count(each) for each in (windows.NOWHERE, windows.SOME, windows.EVERYWHERE)] == [
        190, 40, 13]  # fmt: skip


@pytest.mark.parametrize(
    "fields", [{"use_sliding_window": False}, {"use_sliding_window": True, "sliding_window": None}]
)
def test_layers_that_would_see_nothing_are_refused(fields):
    types = ["full_attention", "sliding_attention"] * 12
    with pytest.raises(ValueError, match="hides all keys"):
        positional_setup({"model_type": "qwen2_moe", "layer_types": types, **fields})


def _text(**fields):
    return positional_setup(fields)["text"]


def test_a_window_both_ways_is_halved_where_its_class_halves_it():
    """EmbeddingGemma's 512 are 256 to either side, and the query's own key."""
    part = _text(model_type="gemma3_text", sliding_window=512, use_bidirectional_attention=True)
    assert part.layers[0].window == 257


def test_windows_that_were_not_measured_are_said_to_be_so():
    said = "sliding_window was not held against a running model"
    assert any(said in note for note in _text(model_type="voxtral_realtime_text").notes)
    assert not any(said in note for note in _text(model_type="mistral", sliding_window=3).notes)
    assert "up to its own" in " ".join(_text(model_type="t5gemma2_text").notes)
    assert {layer.window for layer in _text(model_type="t5gemma2_text").layers} == {None}


def test_reaches_of_models_with_learned_tables_are_told():
    assert [layer.window for layer in _text(model_type="gpt_neo").layers[:2]] == [None, 256]
    with pytest.raises(ValueError, match="attention_types"):
        _text(model_type="gpt_neo", num_layers=3)
    assert "attention_window / 2" in _text(model_type="longformer").notes[0]
    assert "block_sparse" in _text(model_type="big_bird").notes[0]


def test_positions_in_cells_of_tables_are_told():
    assert "every cell" in _text(model_type="tapas").notes[0]
    assert not _text(model_type="tapas", reset_position_index_per_cell=False).notes
