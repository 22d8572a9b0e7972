"""What no configuration says, model by model: pairing, layers without rotation, and defaults."""

import pytest
import torch
from transformers import AutoConfig, AutoModel

from posenc import Rotary
from posenc.interop.configurations import read
from posenc.interop.families import known, names
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config
from posenc.interop.layer_types import layer_types
from posenc.interop.rope_layers import dictionaries, rope_of, rotates
from posenc.interop.rope_models import pairing_is_known
from posenc.interop.rotary_config import read_layers

SIZES = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 8}
HALF = [
    "afmoe", "chameleon", "dbrx", "exaone4", "falcon", "falcon_h1", "gemma", "gemma2", "gpt_neox",
    "gpt_oss", "granite", "hunyuan_v1_dense", "hy_v3", "llama", "minicpm3", "minimax_m2", "mistral",
    "mixtral", "nanochat", "nemotron", "olmo2", "phi3", "qwen2", "qwen2_moe", "qwen3", "qwen3_next",
    "seed_oss", "smollm3", "starcoder2",
]  # fmt: skip
INTERLEAVED = [
    "axk1", "bailing_hybrid", "cohere", "cohere2", "deepseek_v2", "deepseek_v3", "deepseek_v32",
    "ernie4_5", "ernie4_5_moe", "glm", "glm4", "glm4_moe_lite", "glm_moe_dsa", "helium",
    "llama4_text", "longcat_flash", "mistral4", "moonshine_streaming", "youtu",
]  # fmt: skip
APPLIED = ["apply_rotary_pos_emb_interleave", "apply_rotary_pos_emb", "apply_rotary_emb"]


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-1, -2)


def theirs(oracle, config, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Scores of queries and keys that the model's own function has rotated.

    Some functions return channels in another order, of queries and keys alike; no score moves.
    """
    code = oracle.code_of(config)
    apply = next(getattr(code, name) for name in APPLIED if hasattr(code, name))
    turned = oracle.module_of(config)(q, torch.arange(q.shape[-2])[None])
    if not isinstance(turned, torch.Tensor):
        return scores(*apply(q, k, *turned))
    if config.model_type == "deepseek_v2":
        return scores(*apply(q, k, turned))
    q, k = apply(q.transpose(1, 2), k.transpose(1, 2), turned)
    return scores(q.transpose(1, 2), k.transpose(1, 2))


@pytest.mark.parametrize("model", [*HALF, *INTERLEAVED])
def test_pairing_is_that_of_the_models_own_function(oracle, model):
    config = AutoConfig.for_model(model)
    encoding = rotary_from_config(config)
    assert encoding.pairing == ("interleaved" if model in INTERLEAVED else "half")
    assert pairing_is_known(read(config))
    # DeepSeek's functions are given the part of a head that is rotated, the others the whole.
    latent = encoding.rotated == "suffix"
    width = encoding.rotated_dim if latent else encoding.head_dim
    ours = Rotary(encoding.frequencies, head_dim=width, pairing=encoding.pairing)
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(1, 2, 7, width, generator=generator) for _ in range(2))
    torch.testing.assert_close(scores(*ours(q, k)), theirs(oracle, config, q, k), rtol=0, atol=3e-4)


def test_pairing_of_gptj_and_codegen_and_their_narrow_rotation(oracle):
    for model in ("gptj", "codegen"):
        config = AutoConfig.for_model(model, n_embd=64, n_head=4, n_layer=2, rotary_dim=8)
        encoding = rotary_from_config(config)
        code = oracle.code_of(config)
        sin, cos = code.create_sinusoidal_positions(6, 8)[None].chunk(2, dim=-1)
        q = torch.randn(1, 6, 4, 16, generator=torch.Generator().manual_seed(1))
        turned = code.apply_rotary_pos_emb(q[..., :8], sin, cos)
        ours = encoding(q.transpose(1, 2), q.transpose(1, 2))[0].transpose(1, 2)
        torch.testing.assert_close(ours[..., :8], turned, rtol=0, atol=1e-6)
        assert torch.equal(ours[..., 8:], q[..., 8:])


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("smollm3", {}),
        ("smollm3", {"no_rope_layer_interval": 3}),
        ("smollm3", {"no_rope_layers": [1, 0, 0, 1, 1, 1, 1, 0]}),
        ("llama4_text", {"num_local_experts": 2}),
        ("cohere2", {}),
        ("exaone4", {"sliding_window": 16}),
        ("exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 8}),
        ("beam", {"num_experts": 8, "num_experts_per_tok": 4, "moe_intermediate_size": 8,
                  "n_group": 1, "topk_group": 1}),
        ("llama", {}),
    ],
)  # fmt: skip
def test_layers_without_rotation_are_those_of_the_model(oracle, model, fields, monkeypatch):
    config = AutoConfig.for_model(
        model, **SIZES, **fields, num_key_value_heads=2, head_dim=16, intermediate_size=32,
        vocab_size=9, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    built = AutoModel.from_config(config).eval()
    code, current, rotated = oracle.code_of(config), [0], set()
    name = next(name for name in APPLIED if hasattr(code, name))
    applied = getattr(code, name)

    def recorded(*arguments, **named):
        rotated.add(current[0])
        return applied(*arguments, **named)

    for index, layer in enumerate(built.layers):
        layer.register_forward_pre_hook(lambda *_, index=index: current.__setitem__(0, index))
        attention = type(layer.self_attn)
        if hasattr(attention, name):
            monkeypatch.setattr(attention, name, staticmethod(recorded))
    monkeypatch.setattr(code, name, recorded)
    with torch.no_grad():
        built(torch.tensor([[1, 2, 3]]))
    found = rotaries_from_config(config)
    assert {i for i, encoding in enumerate(found) if encoding is not None} == rotated
    assert rotated


SCALES = {
    "llama": {},
    "gemma2": {"query_pre_attn_scalar": 144},
    "granite": {"attention_multiplier": 0.015625},
    "gemma4_text": {},
    "deepseek_v3": {"kv_lora_rank": 8, "q_lora_rank": 8, "first_k_dense_replace": 2},
    "minicpm3": {"kv_lora_rank": 8, "q_lora_rank": 8},
}
YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "mscale": 1.0,
        "mscale_all_dim": 0.8, "original_max_position_embeddings": 4096}  # fmt: skip


@pytest.mark.parametrize("model", SCALES)
def test_softmax_scale_is_that_of_the_models_attention(model):
    rope = {} if model == "gemma4_text" else {"rope_parameters": dict(YARN)}
    sizes = {**SIZES, "num_hidden_layers": 1, "intermediate_size": 32, "vocab_size": 9}
    config = AutoConfig.for_model(
        model, **sizes, **SCALES[model], **rope, pad_token_id=0, bos_token_id=1, eos_token_id=2
    )
    attention = AutoModel.from_config(config).layers[0].self_attn
    (layer,) = read_layers(config)
    assert layer.softmax_scale == pytest.approx(attention.scaling, rel=1e-12)
    assert layer.pairing_is_known


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("afmoe", {"global_attn_every_n_layers": 3}),
        ("bamba", {"attn_layer_indices": [1, 5]}),
        ("cohere2", {"sliding_window_pattern": 3}),
        ("exaone4", {"sliding_window": 64, "sliding_window_pattern": 2}),
        ("gemma3_text", {"sliding_window_pattern": 4}),
        ("lfm2", {"full_attn_idxs": [2, 3, 7]}),
        ("modernbert", {"global_attn_every_n_layers": 4}),
        ("qwen3_next", {"full_attention_interval": 2}),
    ],
)
def test_patterns_of_layers_are_laid_out_as_the_model_does(model, fields):
    """Older files give a pattern, from which the class in transformers makes the list."""
    filled = rotaries_from_config(AutoConfig.for_model(model, num_hidden_layers=9, **fields))
    file = {**AutoConfig.for_model(model).to_dict(), "num_hidden_layers": 9}
    for name in ("layer_types", "sliding_window_pattern", "attn_layer_indices", "full_attn_idxs"):
        file.pop(name, None)
    read_here = rotaries_from_config({**file, **fields})
    assert [repr(layer) for layer in read_here] == [repr(layer) for layer in filled]


DEFAULTED = [n for n in names() if "pairing" in known(n) and {"layers", "theta"} & {*known(n)}]


@pytest.mark.parametrize("model_type", DEFAULTED)
def test_defaults_are_those_of_the_code(model_type):
    """A file without these fields means what the class in transformers means without them."""
    config = AutoConfig.for_model(model_type)
    filled = read(config)
    absent = ("rope_parameters", "head_dim", "layer_types", "partial_rotary_factor", "rotary_dim")
    bare = read({key: value for key, value in filled.values.items() if key not in absent})
    if not rotates(bare) or not bare.field("hidden_size"):
        return
    types = layer_types(filled)
    assert layer_types(bare) == types or "layers" not in known(model_type)
    nested = filled.values.get("rope_parameters") or {}
    for kind in dict.fromkeys(types or []) if "rope_theta" not in nested else [None]:
        told, untold = (
            rope_of(each, kind, dictionaries(each).get(kind) or {}) for each in (filled, bare)
        )
        assert (told.width, told.head_dim, told.base) == (
            untold.width, untold.head_dim, untold.base,
        )  # fmt: skip


def test_alpha_and_lists_under_the_name_of_another_type_are_read_for_models_that_read_them(oracle):
    dynamic = {"rope_type": "dynamic", "factor": 2.0, "alpha": 1000.0, "rope_theta": 1e4}
    config = AutoConfig.for_model("hunyuan_v1_dense", head_dim=64, rope_parameters=dynamic)
    lengths = rotary_from_config(config).frequencies.wavelengths()
    ours = torch.tensor([2 * torch.pi / float(each) for each in lengths])
    torch.testing.assert_close(ours, oracle.module_of(config).inv_freq, rtol=1e-5, atol=0)
    for model in ("llama", "qwen2", "mistral"):
        with pytest.raises(ValueError, match="dynamic"):
            rotary_from_config({"model_type": model, "rope_scaling": dynamic})
    lists = {"type": "yarn", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48}
    assert read_layers({"model_type": "phi3", "rope_scaling": lists})[0].rope.kind == "longrope"
    with pytest.raises(ValueError, match="long_factor"):
        rotary_from_config({"model_type": "phimoe", "rope_scaling": lists})


def test_a_target_below_the_trained_length_extends_nothing(oracle):
    lists = {"rope_type": "longrope", "rope_theta": 1e4, "short_factor": [1.0] * 24,
             "long_factor": [2.0] * 24}  # fmt: skip
    config = AutoConfig.for_model(
        "phi3", hidden_size=96, num_attention_heads=2, max_position_embeddings=2048,
        original_max_position_embeddings=4096, pad_token_id=0, rope_parameters=lists,
    )  # fmt: skip
    assert oracle.module_of(config).attention_scaling == 1
    oracle.agree(rotary_from_config(config), oracle.module_of(config))
