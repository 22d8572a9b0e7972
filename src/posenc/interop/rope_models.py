"""What only the code of a model says of its rotary encoding, and no configuration does.

Every line was read in the sources of transformers; the tests hold each against its model. A name
is a model type without ``_text``.
"""

from collections.abc import Sequence

from posenc.interop.configurations import Configuration
from posenc.numerics.pairing import Pairing, checked_pairing


def named(models: str) -> frozenset[str]:
    """The names in a row of words."""
    return frozenset(models.split())


INTERLEAVED = named(
    "axk1 axk2 bailing_hybrid blt blt_global_transformer blt_local_decoder blt_local_encoder "
    "blt_patcher codegen cohere cohere2 cohere2_moe deepseek_v2 deepseek_v3 deepseek_v32 ernie4_5 "
    "ernie4_5_moe glm glm4 glm4_moe_lite glm4v glm_moe_dsa glm_ocr gptj helium kimi_k2 llama4 "
    "longcat_flash mistral4 mistral_large4 moonshine moonshine_streaming openai_privacy_filter "
    "pe_audio_encoder pe_audio_video_encoder pe_video_encoder roformer youtu"
)
"""Pairs of channels 2i and 2i + 1; all other models pair i and i + width/2."""

HALF = named(
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
    "glmasr_encoder": 0.5,
    "gpt_neox": 0.25,
    "moonshine": 0.9,
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
        named(
            "afmoe cohere2_moe cwm ernie4_5 glm glm4 helium hy_v3 llama4 minimax_m2 "
            "ministral3 qwen3 qwen3_vl seed_oss solar_open"
        ),
        128,
    )
    | dict.fromkeys(
        named(
            "gemma gemma2 gemma3 gemma3n qwen3_5 qwen3_5_moe qwen3_next t5gemma2 t5gemma2_decoder "
            "vaultgemma"
        ),
        256,
    )
    | {"gpt_oss": 64}
)
"""Width of a head where a file leaves it out, though it is not hidden size over heads."""

FULL_HEADS = dict.fromkeys(
    named("diffusion_gemma embedding_gemma2 gemma4 gemma4_unified"), ("global_head_dim", 512)
)
"""The field of the width of heads in layers of full attention, and the width without it."""

RATIO = named("deepseek_ocr2 unlimited_ocr")
"""Models whose heads are hidden size over heads, whatever ``head_dim`` stands in their files."""

LONGEST = {"gemma3": 131_072, "gemma3n": 32_768}
"""``max_position_embeddings`` of models whose files leave it out."""

LONG = {"zamba2": ("use_long_context", 16_384)}
"""The switch of a model whose class then has this length, whatever stands beside it."""

DEALT = {
    "cohere_compass": (24, 20, 20),
    "cosmos3_edge": (24, 20, 20),
    "qwen3_5": (11, 11, 10),
    "qwen3_5_moe": (11, 11, 10),
    "qwen3_omni_moe": (24, 20, 20),
    "qwen3_omni_moe_talker": (24, 20, 20),
    "qwen3_vl": (24, 20, 20),
    "qwen3_vl_moe": (24, 20, 20),
    "qwen4_exp": (11, 11, 10),
}
"""M-RoPE sections that are dealt out t, h, w, t, h, w, …, and their sizes by default."""

IN_RUNS = {
    "glm4v": (8, 12, 12),
    "glm4v_moe": (8, 12, 12),
    "glm_image": (8, 12, 12),
    "glm_ocr": (8, 12, 12),
    "paddleocr_vl": (16, 24, 24),
    "qwen2_5_omni": (16, 24, 24),
    "qwen2_5_omni_talker": (16, 24, 24),
    "qwen2_5_vl": (16, 24, 24),
    "qwen2_vl": (16, 24, 24),
}
"""M-RoPE sections of which each is one run of pairs, and their sizes by default."""

REFUSED = {
    "chatglm": "its code splits the head into two rotations, and no transformers model reads it",
    "deepseek_v4": "its layers rotate keys, values and outputs, by two sets of frequencies",
    "dots3_note": "its widths differ between layers",
    "ernie4_5_moe_vl": "it reorders its frequencies among height, width and time",
    "ernie4_5_vl_moe": "it reorders its frequencies among height, width and time",
    "grok1": "no transformers model reads it, and its file does not name its rotation",
    "hunyuan_vl": "its xdrope gives the two channels of a pair different axes",
    "kimi_linear": "it has no rotation in spite of its qk_rope_head_dim",
    "nanochat": "it rotates in the other direction",
    "neucodec": "it rotates by the number of the head, and by no position",
    "qwen2_5_omni_dit": "it rotates the first of its heads alone",
    "xcodec2": "it rotates by the number of the head, and by no position",
}
"""Models that would be read wrongly, and why."""

UNROTATED = named("falcon_mamba jamba kimi_linear mamba mamba2 nemotron_h rwkv xlstm zamba")
"""Models without rotation although their files have a field that others rotate by."""

NAMED_BY_FIELD = named("esm granitemoehybrid wav2vec2_bert wav2vec2_conformer")
"""Models that rotate if ``position_embedding_type`` says so; others do not look at it."""

INDEXERS: dict[str, Pairing] = {
    "axk2": "half",
    "deepseek_v32": "half",
    "glm_moe_dsa": "interleaved",
}
"""The pairing of the indexers of sparse attention, which need not be that of attention."""

ROPE_NEEDED = named(
    "apertus beam cwm diffusion_gemma dots3_note_audio_encoder embedding_gemma2 gemma4 "
    "gemma4_unified glmasr_encoder gpt_oss higgs_audio_v2 laguna lfm3 mellum mimo_v2_flash "
    "ministral3 mistral4 mistral_large4 moonshine moonshine_streaming muse_spark "
    "nemotron3_5_transcribe_asr_audio nemotron3_5_transcribe_word_timestamp neomme "
    "openai_privacy_filter ultrabert zaya"
)
"""Models whose class fills a rope dictionary that is left out with values of its own."""

SHARE_SUFFICES = named("glmasr_encoder mimo_v2_flash moonshine")
"""Of these, models of which a file that says the rotated share has said all."""

OWN_VALUES: dict[str, dict[str, float]] = {
    "cosmos3_edge": {"rope_theta": 1e8},
    "mimo_v2_flash": {
        "rope_theta": 5e6,
        "swa_rope_theta": 1e4,
        "partial_rotary_factor": 0.334,
    },
    "step3p5": {"partial_rotary_factor": 1.0},
}
"""What the class of a model has, whatever a file without a rope dictionary says in these fields."""

SHARE_NEEDED = named("mimo_v2_flash neomme")
"""Models whose class has a rotated share for each layer type, where its dictionary has none."""

SHARE_INSIDE = named("diffusion_gemma laguna mellum zaya")
"""Models whose class does not hand a share that stands beside dictionaries by layer type on to
those of the default type."""

THETA_NEEDED = named("step3p5 ultrabert")
"""Models whose class gives a dictionary of a layer type that has no base its own, whatever
``rope_theta`` stands beside it."""

BY_TYPE_ALONE = named("step3p5")
"""Models whose class does not look at a rope dictionary unless there is one for each layer type."""

BY_TYPE = named(
    "beam cohere_compass diffusion_gemma embedding_gemma2 gemma3 gemma3n gemma4 gemma4_unified "
    "laguna lfm3 mellum mimo_v2_flash modernbert modernbert_decoder neomme olmo3 step3p5 t5gemma2 "
    "t5gemma2_decoder ultrabert zaya"
)
"""Models whose class has a rope dictionary for each layer type; others look at one for all."""

TEMPERED = named("ministral3 mistral4")
"""Models whose code reads the temperature of its queries from the rope dictionary, whatever its
type, whenever it runs."""

TEMPERATURE = ("llama_4_scaling_beta", "original_max_position_embeddings")
"""The keys from which it does: the scale, and the period, which is YaRN's trained length, too."""

SCALING_UNREAD = named("cohere2_moe")
"""Models whose class has a ``rope_scaling`` at which its code does not look."""

UPDATED = named(
    "gemma3 gemma3n modernbert modernbert_decoder olmo3 step3p5 t5gemma2 t5gemma2_decoder"
)
"""Models whose class lays ``rope_scaling`` over a dictionary that has a ``rope_type``: the old name
``type`` in it then says nothing."""

TYPES_NEEDED = named(
    "bailing_hybrid beam cwm diffusion_gemma embedding_gemma2 flint gemma4 gemma4_unified gpt_oss "
    "kolibri1 laguna lfm3 mellum ministral muse_glimmer_assistant neomme olmo_hybrid qwen4_exp "
    "t5_gemma_module ultrabert unlimited_ocr zaya"
)
"""Models whose class lays out layer types that are left out, by a rule that is not here."""

STACK_NEEDED = {"hrm": "num_layers_per_stack"}
"""The field of a model whose class, where it is left out, takes the number of layers for that of
one stack, and multiplies it."""

PROPORTIONAL = "proportional"
"""The rope type that rotates a share of a head by leaving the other pairs where they are."""

BY_LENGTH = named("phimoe")
"""Models with one attention factor for short sequences and one for long ones."""

LATENT_UNREAD = named("deepseek_v4")
"""Models whose ``qk_rope_head_dim`` is no width of their heads."""

CHANNELS_READ = named("jetmoe zamba2")
"""Models whose code looks at ``kv_channels``; of models that are not known here, all."""

DIM_READ = named("chatglm codegen gptj minimax_m2")
"""Models whose code looks at ``rotary_dim``; of models that are not known here, all."""

ELSEWHERE = named(
    "linear_attention mamba mamba2 conv recurrent moe mlp short_conv lightning_attention "
    "cross_attention none"
)
"""Layer types without queries and keys to rotate."""

SLIDING_ONLY = named("afmoe cohere2 cohere2_moe exaone4 exaone_moe flint kolibri1")
"""Models whose full-attention layers have no encoding; sliding ones have."""

WINDOWLESS = named("exaone4 exaone_moe kolibri1")
"""Those of them all of whose layers rotate where ``sliding_window`` is null."""

PERIODS = {
    "afmoe": ("global_attn_every_n_layers", 4),
    "cohere2": ("sliding_window_pattern", 4),
    "cohere2_moe": ("sliding_window_pattern", 4),
    "exaone4": ("sliding_window_pattern", 4),
    "exaone_moe": ("sliding_window_pattern", 4),
    "gemma3": ("sliding_window_pattern", 6),
    "gemma3n": ("", 5),
    "modernbert": ("global_attn_every_n_layers", 3),
    "modernbert_decoder": ("global_attn_every_n_layers", 3),
    "olmo3": ("", 4),
    "qwen3_5": ("full_attention_interval", 4),
    "qwen3_5_moe": ("full_attention_interval", 4),
    "qwen3_next": ("full_attention_interval", 4),
    "t5gemma2": ("sliding_window_pattern", 6),
    "t5gemma2_decoder": ("sliding_window_pattern", 6),
}
"""Every so many layers one attends to everything, where a configuration does not list the types:
the field that the class has for it ("": none), and the number where that is left out."""

LINEAR = named("qwen3_5 qwen3_5_moe qwen3_next")
"""Of these, models whose other layers have no softmax attention, and nothing to rotate."""

LISTED = {"full_attn_idxs": "conv", "attn_layer_indices": "linear_attention"}
"""Fields that list the layers with attention, and what the others have."""

THETA_OF_LAYER = named("granite_swa granitemoe_swa")
"""Models whose ``layer_rope_theta`` is the base of each layer; of others only its zeros count."""

SCALED_LAYERS = {"molmo2": "rope_scaling_layers"}
"""The field of a model that lists the layers which its rope dictionary scales; the others have the
base alone."""

LATENT_SOFTMAX = named(
    "axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa hy_v4 "
    "kimi_k2 longcat_flash minicpm3 mistral4 mistral_large4 youtu"
)
"""Models that multiply their softmax scale with m(mscale_all_dim)², as DeepSeek does."""

UNSCALED = named(
    "dia_encoder dia_decoder diffusion_gemma embedding_gemma2 gemma3n gemma4 gemma4_unified"
)
"""Models that do not scale their scores: they normalize queries and keys."""

HALVED = named("zamba2")
"""Models whose heads are two hidden states wide, and scaled as if they were one."""

MULTIPLIED = named(
    "granite granite_docling granite_swa granite4_vision granitemoe granitemoe_swa "
    "granitemoehybrid granitemoeshared hyperclovax"
)
"""Models whose softmax scale stands in ``attention_multiplier``."""


SCALAR_READ = named("gemma2 gemma3 step3p5 t5_gemma_module t5gemma2 t5gemma2_decoder vaultgemma")
"""Models whose code looks at ``query_pre_attn_scalar``; of models that are not known here, all."""


def pairing_of(config: Configuration) -> Pairing:
    """Which channels form a pair: by the code of a model, or as its weights were converted.

    Example:
        >>> pairing_of(Configuration({}, "gptj")), pairing_of(Configuration({}, "llama"))
        ('interleaved', 'half')
    """
    if (converted := config.get("posenc_pairing")) is not None:
        return checked_pairing(converted)
    return pairing_of_code(config)


def pairing_of_code(config: Configuration) -> Pairing:
    """The pairing of a model's own code, whatever was done to its weights."""
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
    if config.family in HALVED:
        return (head_dim / 2) ** -0.5
    given = config.number("attention_multiplier") if config.family in MULTIPLIED else None
    if given is not None:
        return float(given)
    read_scalar = not config.facts or config.family in SCALAR_READ
    scalar = config.number("query_pre_attn_scalar") if read_scalar else None
    if scalar is not None and scalar <= 0:
        raise ValueError(
            f"query_pre_attn_scalar is {scalar}; scores are multiplied with its root, so it must "
            f"be above 0. Correct the file."
        )
    return (scalar or head_dim) ** -0.5 * (factor if config.family in LATENT_SOFTMAX else 1.0)


OWN_NAMES = {
    "bamba": ("rope_theta",),  # its share of a head is 0.5, whatever its file says
    "gpt_neox": ("rotary_pct", "rotary_emb_base"),
    "gpt_neox_japanese": ("rotary_pct", "rotary_emb_base"),
}
"""Models whose fields of the rotated share and of the base have names of their own, and only
those."""


def heeded(config: Configuration, names: Sequence[str]) -> Sequence[str]:
    """Of several names of one field, those that a model's class reads.

    Example:
        >>> heeded(Configuration({}, "gpt_neox"), ("rope_theta", "rotary_emb_base"))
        ('rotary_emb_base',)
        >>> heeded(Configuration({}, "llama"), ("rope_theta", "rotary_emb_base"))
        ('rope_theta',)
    """
    if config.model_type in OWN_NAMES:
        return tuple(name for name in names if name in OWN_NAMES[config.model_type])
    return names[:1] if config.facts else names


def refusal(config: Configuration) -> str | None:
    """Why a model would be read wrongly; None where nothing is against it.

    Example:
        >>> refusal(Configuration({}, "nanochat"))
        'it rotates in the other direction'
    """
    if config.family in REFUSED:
        return REFUSED[config.family]
    if config.family == "roformer" and config.get("rotary_value"):
        return "its rotary_value turns values too"
    if config.family.startswith("wav2vec2_") and config.get("position_embeddings_type") == "rotary":
        return "it turns frames, before queries and keys are projected from them"
    for name in ("rope_theta", "partial_rotary_factors"):
        if isinstance(config.values.get(name), list):
            return f"{name} is a list, whose use its code does not share with other models"
    return None
