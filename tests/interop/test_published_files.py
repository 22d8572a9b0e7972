"""The fields of files as they are published, with what is known of each model.

What a file leaves out is what its class has by default, so the fields are those of the files, and
the expected words were written from the model's card or paper, not from a reading. Where
transformers has the class, the object that it makes of the same fields has to be read alike.
"""

from collections import Counter
from typing import Any

import pytest
from transformers import CONFIG_MAPPING

from posenc import ALiBi, MultimodalRotary, Rotary
from posenc.interop.huggingface import positional_setup

LLAMA_3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
           "original_max_position_embeddings": 8192}  # fmt: skip
DEEPSEEK = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
YARN = {"type": "yarn", "beta_fast": 32, "beta_slow": 1, "factor": 40, "mscale": 1.0,
        "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}  # fmt: skip
PATCHES_14 = {"depth": 32, "hidden_size": 1280, "num_heads": 16, "patch_size": 14}


def file(model_type: str, width: int, heads: int, layers: int, **fields: Any) -> dict[str, Any]:
    named = {"hidden_size": width, "num_attention_heads": heads, "num_hidden_layers": layers}
    return {"model_type": model_type, **named, **fields}


SIGLIP = file("idefics3", 1152, 16, 27, image_size=384, patch_size=14)
QWEN_VL = file("qwen2_5_vl", 2048, 16, 36, rope_theta=1000000.0, use_sliding_window=False,
               rope_scaling={"type": "mrope", "mrope_section": [16, 24, 24]})  # fmt: skip

FILES: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "Llama-2-7b": (
        file("llama", 4096, 32, 32, rope_scaling=None, max_position_embeddings=4096),
        {"text": ["32 × 128/128 by 1e+04"]}),
    "Llama-3.1-8B": (
        file("llama", 4096, 32, 32, rope_theta=500000.0, rope_scaling=LLAMA_3,
             max_position_embeddings=131072),
        {"text": ["32 × 128/128 by 5e+05"]}),
    "Mistral-7B-v0.1": (
        file("mistral", 4096, 32, 32, rope_theta=10000.0, sliding_window=4096),
        {"text": ["32 × 128/128 by 1e+04 within 4096"]}),
    "Mistral-7B-v0.3": (
        file("mistral", 4096, 32, 32, rope_theta=1000000.0, sliding_window=None),
        {"text": ["32 × 128/128 by 1e+06"]}),
    "Qwen2-7B": (
        file("qwen2", 3584, 28, 28, rope_theta=1000000.0, sliding_window=131072,
             use_sliding_window=False, max_window_layers=28),
        {"text": ["28 × 128/128 by 1e+06"]}),
    "Qwen2.5-VL-3B": (
        QWEN_VL | {"vision_config": PATCHES_14 | {"model_type": "qwen2_5_vl"}},
        {"text": ["36 × 128/128 by 1e+06 of three"], "vision": ["32 × AxialRotary"]}),
    "Qwen3-VL-2B": (
        {"model_type": "qwen3_vl",
         "text_config": file("qwen3_vl_text", 2048, 16, 28, head_dim=128, rope_theta=5000000),
         "vision_config": {"model_type": "qwen3_vl", "depth": 24, "hidden_size": 1024,
                           "num_heads": 16, "patch_size": 16}},
        {"text": ["28 × 128/128 by 5e+06 of three"], "vision": ["24 × AxialRotary"]}),
    "GLM-4.1V": (
        {"model_type": "glm4v",
         "text_config": file("glm4v_text", 4096, 32, 40, partial_rotary_factor=0.5,
                             rope_theta=10000.0,
                             rope_scaling={"rope_type": "default", "mrope_section": [8, 12, 12]}),
         "vision_config": {"model_type": "glm4v", "depth": 24, "hidden_size": 1536,
                           "num_heads": 12, "image_size": 336, "patch_size": 14}},
        {"text": ["40 × 64/128 by 1e+04, 2i with 2i + 1 of three"],
         "vision": ["24 × AxialRotary"]}),
    "SmolVLM": (
        {"model_type": "idefics3", "vision_config": SIGLIP,
         "text_config": file("llama", 2048, 32, 24, rope_theta=273768.0,
                             perceiver_config={"model_type": "vllama3"})},
        {"text": ["24 × 64/64 by 2.7e+05"], "vision": ["27 × LearnedGrid"]}),
    "MiniCPM-V-2.6": (
        file("minicpmv", 3584, 28, 28, rope_theta=1000000.0,
             slice_config={"max_slice_nums": 9, "model_type": "minicpmv"},
             vision_config=SIGLIP | {"model_type": "siglip"}),
        {"text": ["28 × 128/128 by 1e+06"], "vision": ["27 × LearnedGrid"]}),
    "gemma-3-27b": (
        {"model_type": "gemma3",
         "text_config": file("gemma3_text", 5376, 32, 62, head_dim=128, sliding_window=1024,
                             query_pre_attn_scalar=168,
                             rope_scaling={"factor": 8.0, "rope_type": "linear"}),
         "vision_config": SIGLIP | {"model_type": "siglip_vision_model"}},
        {"text": ["52 × 128/128 by 1e+04 within 1024", "10 × 128/128 by 1e+06"],
         "vision": ["27 × LearnedGrid"]}),
    "phi-2": (
        file("phi", 2560, 32, 32, partial_rotary_factor=0.4, rope_theta=10000.0),
        {"text": ["32 × 32/80 by 1e+04"]}),
    "Phi-4-mini": (
        file("phi3", 3072, 24, 32, partial_rotary_factor=0.75, sliding_window=262144,
             max_position_embeddings=131072, original_max_position_embeddings=4096,
             rope_scaling={"type": "longrope", "short_factor": [1.0] * 48,
                           "long_factor": [2.0] * 48}),
        {"text": ["32 × 96/128 by 1e+04 within 262144"]}),
    "DeepSeek-V3": (
        file("deepseek_v3", 7168, 128, 61, rope_theta=10000, rope_scaling=YARN, **DEEPSEEK),
        {"text": ["61 × 64/192 by 1e+04, 2i with 2i + 1"]}),
    "Kimi-K2": (
        file("kimi_k2", 7168, 64, 61, rope_theta=50000.0,
             rope_scaling=YARN | {"beta_fast": 1.0, "beta_slow": 1.0, "factor": 32.0}, **DEEPSEEK),
        {"text": ["61 × 64/192 by 5e+04, 2i with 2i + 1"]}),
    "pythia-1.4b": (
        file("gpt_neox", 2048, 16, 24, rotary_pct=0.25, rotary_emb_base=10000),
        {"text": ["24 × 32/128 by 1e+04"]}),
    "gpt-j-6b": (
        {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048,
         "rotary": True, "rotary_dim": 64},
        {"text": ["28 × 64/256 by 1e+04, 2i with 2i + 1"]}),
    "falcon-40b": (
        file("falcon", 8192, 128, 60, alibi=False, new_decoder_architecture=True, num_kv_heads=8),
        {"text": ["60 × 64/64 by 1e+04"]}),
    "bloom": (
        {"model_type": "bloom", "n_embed": 14336, "n_layer": 70, "num_attention_heads": 112},
        {"text": ["70 × ALiBi of 112"]}),
    "mpt-30b": (
        {"model_type": "mpt", "d_model": 7168, "n_heads": 64, "n_layers": 48,
         "attn_config": {"alibi": True, "alibi_bias_max": 8}},
        {"text": ["48 × ALiBi of 64"]}),
    "Olmo-3-7B": (
        file("olmo3", 4096, 32, 32, rope_theta=500000, sliding_window=4096,
             rope_scaling={"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
                           "original_max_position_embeddings": 8192,
                           "attention_factor": 1.2079441541679836}),
        {"text": ["24 × 128/128 by 5e+05 within 4096", "8 × 128/128 by 5e+05"]}),
    "command-r7b": (
        file("cohere2", 4096, 32, 32, head_dim=128, rope_theta=50000, sliding_window=4096,
             rotary_pct=1.0, position_embedding_type="rope_gptj", sliding_window_pattern=4),
        {"text": ["24 × 128/128 by 5e+04, 2i with 2i + 1 within 4096", "8 × nothing"]}),
    "stablelm-2-1.6b": (
        file("stablelm", 2048, 32, 24, partial_rotary_factor=0.25, rope_theta=10000),
        {"text": ["24 × 16/64 by 1e+04"]}),
    "GLM-4.5": (
        file("glm4_moe", 5120, 96, 92, head_dim=128, partial_rotary_factor=0.5, rope_theta=1000000),
        {"text": ["92 × 64/128 by 1e+06"]}),
    "MiniMax-M2": (
        file("minimax_m2", 3072, 48, 62, head_dim=128, rotary_dim=64, rope_theta=5000000,
             attn_type_list=[1] * 62),
        {"text": ["62 × 64/128 by 5e+06"]}),
    "MiniMax-M3": (
        file("minimax_m3", 6144, 64, 60, head_dim=128, rotary_dim=64, partial_rotary_factor=0.5,
             rope_theta=5000000, sparse_attention_config={"sparse_block_size": 128}),
        {"text": ["60 × 64/128 by 5e+06"]}),
    "MiMo-V2-Flash": (
        file("mimo_v2_flash", 4096, 64, 48, head_dim=192, rope_theta=5000000, swa_rope_theta=10000,
             partial_rotary_factor=0.334, sliding_window=128, sliding_window_size=128),
        {"text": ["9 × 64/192 by 5e+06", "39 × 64/192 by 1e+04 within 129"]}),
    "Nemotron-Nano-9B-v2": (
        file("nemotron_h", 4480, 40, 4, hybrid_override_pattern="M-*-", rope_theta=10000),
        {"text": ["4 × nothing"]}),
    "Zamba-7B": (
        file("zamba", 3712, 16, 76, attention_head_dim=464, rope_theta=10000),
        {"text": ["76 × nothing"]}),
    "granite-4.0-h-tiny": (
        file("granitemoehybrid", 1536, 12, 4, position_embedding_type="nope", rope_theta=10000,
             layer_types=["mamba", "attention"] * 2),
        {"text": ["4 × nothing"]}),
    "SmolLM3-3B": (
        file("smollm3", 2048, 16, 36, rope_theta=5000000.0, no_rope_layers=[1, 1, 1, 0] * 9,
             layer_types=["full_attention"] * 36, use_sliding_window=False, sliding_window=None),
        {"text": ["27 × 128/128 by 5e+06", "9 × nothing"]}),
    "t5-base": (
        {"model_type": "t5", "d_model": 768, "num_heads": 12, "num_layers": 12, "n_positions": 512,
         "relative_attention_num_buckets": 32},
        {"encoder": ["12 × T5Bias"], "decoder": ["12 × T5Bias"],
         "cross-attention": ["12 × nothing"]}),
    "whisper-large-v3": (
        {"model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32,
         "max_source_positions": 1500, "max_target_positions": 448},
        {"encoder": ["32 × Sinusoidal"], "decoder": ["32 × Learned"],
         "cross-attention": ["32 × nothing"]}),
    "swinv2-tiny-patch4-window8-256": (
        {"model_type": "swinv2", "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24],
         "image_size": 256, "patch_size": 4, "window_size": 8,
         "pretrained_window_sizes": [0, 0, 0, 0]},
        {"vision": ["12 × SwinV2Bias"]}),
    "clip-vit-base-patch32": (
        {"model_type": "clip", "text_config": {"model_type": "clip_text_model"},
         "text_config_dict": None, "vision_config": {"model_type": "clip_vision_model"}},
        {"text": ["12 × Learned"], "vision": ["12 × LearnedGrid"]}),
}  # fmt: skip


def _layer(layer: Any) -> str:
    """A layer in a few words: what rotates of a head, by which base, in which pairs, how far."""
    held = [
        each
        for part in (
            layer.positional.tokens,
            layer.positional.queries_keys,
            layer.positional.scores,
        )
        for each in part
    ]
    if not held:
        return "nothing"
    (encoding,) = held
    if isinstance(encoding, ALiBi):
        return f"ALiBi of {encoding.heads}"
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    if not isinstance(rotary, Rotary):
        return type(encoding).__name__
    words = f"{rotary.rotated_dim}/{rotary.head_dim} by {layer.rope.base:.2g}"
    words += ", 2i with 2i + 1" if rotary.pairing == "interleaved" else ""
    words += " of three" if isinstance(encoding, MultimodalRotary) else ""
    return words + (f" within {layer.window}" if layer.window else "")


def _told(config: object) -> dict[str, Counter]:
    return {
        part.name: Counter(map(_layer, part.layers))
        for part in positional_setup(config)  # type: ignore[arg-type]
    }


def _counted(words: list[str]) -> Counter:
    return Counter({rest: int(count) for count, rest in (each.split(" × ") for each in words)})


@pytest.mark.parametrize(("fields", "known"), FILES.values(), ids=FILES)
def test_a_published_file_means_what_is_known_of_its_model(fields, known):
    assert _told(fields) == {name: _counted(words) for name, words in known.items()}
    model_type = fields["model_type"]
    if model_type in CONFIG_MAPPING:
        model = {name: value for name, value in fields.items() if name != "model_type"}
        assert _told(CONFIG_MAPPING[model_type](**model)) == _told(fields)


def test_a_model_whose_own_fields_stand_beside_its_parts_is_read_too():
    """As CSM, Moshi, the first IDEFICS and Phi-4-multimodal are published."""
    csm = file("csm", 2048, 32, 16, head_dim=64, rope_theta=500000,
               rope_scaling=LLAMA_3 | {"factor": 32.0},
               codec_config={"model_type": "mimi"},
               depth_decoder_config=file("csm_depth_decoder_model", 1024, 8, 4, head_dim=128,
                                         rope_theta=500000))  # fmt: skip
    assert _told(csm) == {
        "text": Counter({"64/64 by 5e+05": 16}),
        "codec": Counter({"64/64 by 1e+04": 8}),
        "depth_decoder": Counter({"128/128 by 5e+05": 4}),
    }
    moshi = positional_setup(file("moshi", 4096, 32, 32, head_dim=128, depth_decoder_config={}))
    assert [part.name for part in moshi] == ["text"]
    names = [part.name for part in positional_setup({"model_type": "pe_video_encoder"})]
    assert names == ["vision", "vision.vision"]
