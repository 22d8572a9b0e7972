"""What is said of layers, held against tiny models: which of them rotate, and what they see."""

import pytest
import torch
from transformers import AutoConfig, AutoModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

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


MIXED = ["full_attention", "sliding_attention"] * 2
FIELDS = (
    {}, {"use_sliding_window": True}, {"use_sliding_window": True, "max_window_layers": 2},
    {"use_sliding_window": False}, {"max_window_layers": 2}, {"layer_types": MIXED},
    {"layer_types": FULL * 2}, {"use_sliding_window": True, "layer_types": MIXED},
)  # fmt: skip
ALIKE = ("full_attention", "sliding_attention", None)
SLIDING = (
    "arcee doge ernie4_5 gemma gemma2 glm glm4 granite helium llama minimax minimax_m2 ministral "
    "mistral mixtral nemotron olmo olmo2 olmo3 phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe "
    "seed_oss smollm3 stablelm starcoder2 vaultgemma olmoe granitemoe glm4_moe hunyuan_v1_dense "
    "hunyuan_v1_moe hy_v3 solar_open"
)


@pytest.mark.parametrize("model_type", SLIDING.split())
def test_windows_are_what_masks_let_the_last_query_see(run, model_type):
    ran = 0
    for fields in FIELDS:
        file = {"model_type": model_type, **TINY, "sliding_window": 3, **fields}
        try:
            layers = positional_setup(file)["text"].layers
            seen = run(file)
        except (ValueError, TypeError, KeyError):  # refused in words, or by the model itself
            continue
        model = [None if mask is None else int((mask[0, 0, -1] > -1e30).sum()) for _, mask in seen]
        model = [None if count == LENGTH else count for count in model]
        assert [each.window for each in layers if each.layer_type in ALIKE] == model, fields
        ran += 1
    assert ran


def test_positions_in_cells_of_tables_are_told():
    assert "every cell" in positional_setup({"model_type": "tapas"})["text"].notes[0]
