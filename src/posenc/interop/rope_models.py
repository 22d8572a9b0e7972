"""What only the code of a model says of its rotary encoding, and no configuration does.

Every line was read in the sources of transformers; the tests hold each against its model. A name
is a model type without ``_text``.
"""

from posenc.interop.configurations import Configuration
from posenc.numerics.pairing import Pairing


def _named(models: str) -> frozenset[str]:
    return frozenset(models.split())


INTERLEAVED = _named(
    "axk1 axk2 bailing_hybrid blt blt_global_transformer blt_local_decoder blt_local_encoder "
    "blt_patcher codegen cohere cohere2 cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 ernie4_5 "
    "ernie4_5_moe glm glm4 glm4_moe_lite glm4v glm_moe_dsa glm_ocr gptj helium kimi_k2 llama4 "
    "longcat_flash mistral4 mistral_large4 moonshine moonshine_streaming openai_privacy_filter "
    "pe_audio_encoder pe_audio_video_encoder pe_video_encoder youtu"
)
"""Pairs of channels 2i and 2i + 1; all other models pair i and i + width/2."""

HALF = _named(
    "afmoe apertus arcee aria bamba beam bitnet chameleon cosmos3_edge csm cwm dbrx diffllama "
    "diffusion_gemma doge dots1 embedding_gemma2 emu3 esmc eurobert evolla exaone4 exaone_moe "
    "falcon falcon_h1 flex_olmo flint gemma gemma2 gemma3 gemma3n gemma4 glm4_moe glm4v_moe "
    "glm_image gpt_neox gpt_neox_japanese gpt_oss granite granitemoe granitemoehybrid "
    "granitemoeshared gte hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4 hyperclovax idefics "
    "internlm2 jais2 jetmoe jina_embeddings_v3 laguna lfm2 lfm2_moe lfm3 llama mellum "
    "mimo_v2_flash minicpm3 minimax minimax_m2 ministral ministral3 mistral mixtral mllama "
    "modernbert modernbert_decoder molmo2 moshi nemotron neomme nomic_bert olmo olmo2 olmo3 "
    "olmo_hybrid olmoe persimmon phi phi3 phi4_multimodal phimoe qwen2 qwen2_5_omni qwen2_5_vl "
    "qwen2_moe qwen2_vl qwen3 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl "
    "qwen3_vl_moe qwen4_exp recurrent_gemma seed_oss smollm3 solar_open stablelm starcoder2 "
    "t5gemma2 t5gemma2_decoder vaultgemma zaya"
)
"""Pairs of channels i and i + width/2, as the code says; unknown models are taken to be such."""

BASES = {
    "apertus": 12e6,
    "bitnet": 500_000.0,
    "cohere": 500_000.0,
    "csm": 500_000.0,
    "cwm": 1e6,
    "emu3": 1e6,
    "ernie4_5": 500_000.0,
    "ernie4_5_moe": 500_000.0,
    "evolla": 500_000.0,
    "flex_olmo": 500_000.0,
    "gemma3": 1e6,
    "gemma3n": 1e6,
    "gpt_oss": 150_000.0,
    "helium": 100_000.0,
    "hy_v3": 11_158_840.0,
    "lfm2": 1e6,
    "lfm2_moe": 1e6,
    "llama4": 500_000.0,
    "longcat_flash": 1e7,
    "minimax": 1e6,
    "minimax_m2": 5e6,
    "ministral3": 1e6,
    "mixtral": 1e6,
    "mllama": 500_000.0,
    "modernbert": 160_000.0,
    "modernbert_decoder": 160_000.0,
    "nomic_bert": 1000.0,
    "olmo3": 500_000.0,
    "phimoe": 1e6,
    "qwen2_5_omni": 1e6,
    "qwen2_5_vl": 1e6,
    "qwen2_vl": 1e6,
    "qwen3_omni_moe": 1e6,
    "qwen3_vl": 500_000.0,
    "qwen3_vl_moe": 500_000.0,
    "smollm3": 2e6,
    "solar_open": 1e6,
    "t5gemma2": 1e6,
    "t5gemma2_decoder": 1e6,
}
"""The base where a configuration has none; all others have 10000."""

PARTIAL = {
    "bamba": 0.5,
    "glm": 0.5,
    "glm4": 0.5,
    "glm4_moe": 0.5,
    "glm4v_moe": 0.5,
    "gpt_neox": 0.25,
    "nemotron": 0.5,
    "persimmon": 0.5,
    "phi": 0.5,
    "qwen3_5": 0.25,
    "qwen3_5_moe": 0.25,
    "qwen3_next": 0.25,
    "recurrent_gemma": 0.5,
    "stablelm": 0.25,
}
"""The share of a head that is rotated, where a configuration does not say; all others: all."""

HEADS = (
    dict.fromkeys(
        _named(
            "afmoe cohere2_moe cwm ernie4_5 glm glm4 helium hy_v3 llama4 minimax_m2 "
            "ministral3 qwen3 qwen3_vl seed_oss solar_open"
        ),
        128,
    )
    | dict.fromkeys(
        _named(
            "gemma gemma2 gemma3 gemma3n qwen3_5 qwen3_5_moe qwen3_next t5gemma2 t5gemma2_decoder "
            "vaultgemma"
        ),
        256,
    )
    | {"gpt_oss": 64}
)
"""Width of a head where a file leaves it out, though it is not hidden size over heads."""

LONGEST = {"gemma3": 131_072, "gemma3n": 32_768}
"""``max_position_embeddings`` of models whose files leave it out."""

DEALT = {
    "cosmos3_edge": (24, 20, 20),
    "qwen3_5": (11, 11, 10),
    "qwen3_5_moe": (11, 11, 10),
    "qwen3_omni_moe": (24, 20, 20),
    "qwen3_vl": (24, 20, 20),
    "qwen3_vl_moe": (24, 20, 20),
}
"""M-RoPE sections that are dealt out t, h, w, t, h, w, …, and their sizes by default."""

REFUSED = {
    "chatglm": "its code splits the head into two rotations, and no transformers model reads it",
    "deepseek_v4": "its layers rotate keys, values and outputs, by two sets of frequencies",
    "dots3_note": "its widths differ between layers",
    "ernie4_5_vl_moe": "it reorders its frequencies among height, width and time",
    "hunyuan_vl": "its xdrope takes four axes",
    "kimi_linear": "it has no rotation in spite of its qk_rope_head_dim",
    "nanochat": "it rotates in the other direction",
    "step3p5": "its bases and widths differ from layer to layer",
}
"""Models that would be read wrongly, and why."""

IMAGES = _named("dinov3_vit efficientloftr eomt_dinov3 pixtral")
"""Models of images, beside those whose type ends in vision."""

ELSEWHERE = _named(
    "linear_attention mamba mamba2 conv recurrent moe mlp short_conv lightning_attention"
)
"""Layer types without queries and keys to rotate."""

SLIDING_ONLY = _named("afmoe cohere2 cohere2_moe exaone4 exaone_moe flint kolibri1")
"""Models whose full-attention layers have no encoding, beside sliding ones that have."""

PERIODS = {
    "afmoe": 4,
    "cohere2": 4,
    "cohere2_moe": 4,
    "exaone4": 4,
    "exaone_moe": 4,
    "gemma3": 6,
    "gemma3n": 5,
    "modernbert": 3,
    "modernbert_decoder": 3,
    "olmo3": 4,
    "qwen3_5": 4,
    "qwen3_5_moe": 4,
    "qwen3_next": 4,
    "t5gemma2": 6,
    "t5gemma2_decoder": 6,
}
"""Every so many layers one attends to everything, where a configuration does not list the types."""

LINEAR = _named("qwen3_5 qwen3_5_moe qwen3_next")
"""Of these, models whose other layers have no softmax attention, and nothing to rotate."""

LISTED = {"full_attn_idxs": "conv", "attn_layer_indices": "linear_attention"}
"""Fields that list the layers with attention, and what the others have."""

LATENT_SOFTMAX = _named(
    "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 "
    "kimi_k2 longcat_flash minicpm3 mistral4 mistral_large4 youtu"
)
"""Models that multiply their softmax scale with m(mscale_all_dim)², as DeepSeek does."""

UNSCALED = _named("diffusion_gemma embedding_gemma2 gemma3n gemma4 gemma4_unified")
"""Models that do not scale their scores: they normalize queries and keys."""

MULTIPLIED = _named(
    "granite granite_docling granite_swa granite4_vision granitemoe granitemoe_swa "
    "granitemoehybrid granitemoeshared hyperclovax"
)
"""Models whose softmax scale stands in ``attention_multiplier``."""


def pairing_of(config: Configuration) -> Pairing:
    """Which channels form a pair.

    Example:
        >>> pairing_of(Configuration({}, "gptj")), pairing_of(Configuration({}, "llama"))
        ('interleaved', 'half')
    """
    if config.get("rope_interleave") is not None:  # DeepSeek-V3 and its kin have a switch
        return "interleaved" if config.get("rope_interleave") else "half"
    return "interleaved" if config.family in INTERLEAVED else "half"


def pairing_is_known(config: Configuration) -> bool:
    """Whether the pairing was read in the code of the model, and is not merely the usual one."""
    switch = config.get("rope_interleave") is not None
    return switch or config.family in INTERLEAVED | HALF


def softmax_scale(config: Configuration, head_dim: int, factor: float) -> float:
    """What attention multiplies its scores with.

    Args:
        config: Of the model.
        head_dim: Width of a head of queries.
        factor: ``softmax_factor`` of the schedule, of which only some models take notice.

    Example:
        >>> softmax_scale(Configuration({"query_pre_attn_scalar": 144}, "gemma2"), 128, 1.0)
        0.08333333333333333
    """
    if config.family in UNSCALED:
        return 1.0
    if (given := config.get("attention_multiplier")) is not None and config.family in MULTIPLIED:
        return float(given)
    scalar = config.get("query_pre_attn_scalar")
    return (scalar or head_dim) ** -0.5 * (factor if config.family in LATENT_SOFTMAX else 1.0)


def layer_types(config: Configuration) -> list[str] | None:
    """The type of each layer; None where all are alike.

    Example:
        >>> layer_types(Configuration({"num_hidden_layers": 6}, "gemma3"))[-2:]
        ['sliding_attention', 'full_attention']
    """
    if (listed := config.get("layer_types")) is not None:
        return list(listed)
    for name, elsewhere in LISTED.items():
        if (full := config.get(name)) is not None:
            layers = range(config.whole("layers"))
            return ["full_attention" if index in full else elsewhere for index in layers]
    if (period := _period(config)) is None:
        return None
    if isinstance(period, str):  # "LLLG": local, local, local, global
        local = [period[i % len(period)] == "L" for i in range(config.whole("layers"))]
    elif config.family in ("modernbert", "modernbert_decoder"):  # counted from the first layer
        local = [i % period != 0 for i in range(config.whole("layers"))]
    else:
        local = [(i + 1) % period != 0 for i in range(config.whole("layers"))]
    other = "linear_attention" if config.family in LINEAR else "sliding_attention"
    return [other if is_local else "full_attention" for is_local in local]


def _period(config: Configuration) -> int | str | None:
    """Every so many layers one attends to everything; or a pattern as ``"LLLG"``."""
    windowless = "sliding_window" in config.values and config.get("sliding_window") is None
    if config.family not in PERIODS or (windowless and config.family.startswith("exaone")):
        return None
    names = ("sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers")
    return config.get(*names, "full_attention_interval") or PERIODS[config.family]


def unrotated(config: Configuration, types: list[str] | None, count: int) -> list[bool]:
    """For each layer, whether it has no rotary encoding (NoPE, or no attention).

    Example:
        >>> unrotated(Configuration({}, "smollm3"), None, 4)
        [False, False, False, True]
    """
    none = [kind in ELSEWHERE for kind in types or [""] * count]
    if config.family in ("smollm3", "llama4", "mistral_large4"):
        period = config.get("no_rope_layer_interval") or 4
        flags = config.get("no_rope_layers") or [(i + 1) % period for i in range(count)]
        return [absent or not rotated for absent, rotated in zip(none, flags, strict=True)]
    if config.family in SLIDING_ONLY and types and "sliding_attention" in types:
        return [kind != "sliding_attention" for kind in types]
    return none
