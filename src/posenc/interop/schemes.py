"""What models do with positions that do not rotate: by model type, the scheme and its fields.

Each line was taken from the code of transformers; ``docs/models.md`` says which were held against a
running model.
"""

from collections.abc import Mapping
from dataclasses import dataclass


def _named(models: str) -> tuple[str, ...]:
    return tuple(models.split())


@dataclass(frozen=True)
class LearnedRows:
    """A table of learned vectors, one a position.

    Attributes:
        length: The field that says how many positions, or how many rows.
        first: The row of position 0; ``"pad_token_id"`` for the one after it.
        beyond: Rows that the table has beside those that ``length`` says.
        width: The field of the width.
    """

    length: str = "longest"
    first: int | str = 0
    beyond: int = 0
    width: str = "hidden_size"


@dataclass(frozen=True)
class SineRows:
    """Sines and cosines.

    Attributes:
        convention: Of ``posenc.Sinusoidal``.
        first: The number of the first position; ``"pad_token_id"`` for the one after it,
            ``"context_length"`` for the one after the values that the encoder sees.
        width: The field of the width.
    """

    convention: str
    first: int | str = 0
    width: str = "hidden_size"


PLAIN, TWO_ROWS = LearnedRows(), LearnedRows(first=2, beyond=2)
AFTER_PADDING = LearnedRows(first="pad_token_id")

LEARNED: Mapping[str, LearnedRows] = {
    **dict.fromkeys(
        _named(
            "aimv2_text_model align_text_model bert bert-generation big_bird blip_text_model "
            "chinese_clip_text_model clip_text_model clipseg_text_model deberta-v2 "
            "deberta dpr ernie flaubert flava_text_model fnet git gpt-sw3 gpt2 gpt_bigcode gpt_neo "
            "groupvit_text_model imagegpt instructblip_qformer instructblipvideo_qformer "
            "layoutlm megatron-bert metaclip_2_text_model mobilebert openai-gpt "
            "owlv2_text_model owlvit_text_model roc_bert siglip2_text_model "
            "siglip_text_model splinter squeezebert tapas visual_bert xlm xclip_text_model "
            "distilbert lxmert"
        ),
        PLAIN,
    ),
    **dict.fromkeys(_named("albert convbert electra"), LearnedRows(width="embedding_size")),
    "rembert": LearnedRows(width="input_embedding_size"),
    **dict.fromkeys(
        _named(
            "altclip_text_model bridgetower_text_model camembert clap_text_model data2vec-text "
            "ibert luke markuplm roberta roberta-prelayernorm xlm-roberta xlm-roberta-xl xmod "
            "longformer lilt esm"
        ),
        AFTER_PADDING,
    ),
    **dict.fromkeys(_named("biogpt opt pp_formulanet_text trocr"), TWO_ROWS),
    "mpnet": LearnedRows(first=2),
    "clvp_decoder": PLAIN,
    **dict.fromkeys(
        _named(
            "audioflamingo3_encoder moss_transcribe_diarize_audio qwen2_audio_encoder "
            "voxtral_encoder"
        ),
        LearnedRows("max_source_positions"),
    ),
    **dict.fromkeys(_named("mra nystromformer yoso"), LearnedRows(first=2, beyond=2)),
}
"""Models of one stack whose tokens get a learned vector."""

SINES: Mapping[str, SineRows] = {
    "ctrl": SineRows("concatenated"),
    "canary_decoder": SineRows("concatenated"),
    "kosmos_2_5_text_model": SineRows("tensor2tensor", "pad_token_id"),
    "kosmos_2_text_model": SineRows("tensor2tensor", "pad_token_id"),
    "tipsv2_text_model": SineRows("tensor2tensor"),
    "xglm": SineRows("tensor2tensor", 2),
    "qwen2_5_omni_audio_encoder": SineRows("tensor2tensor", width="d_model"),
    "qwen3_omni_moe_audio_encoder": SineRows("tensor2tensor", width="d_model"),
    "qwen3_asr_encoder": SineRows("tensor2tensor", width="d_model"),
    "videomae": SineRows("paper"),
    "videoprism_text_model": SineRows("concatenated"),
}
"""Models of one stack whose tokens get sines and cosines."""

UNLEARNED: Mapping[str, tuple[str, SineRows]] = {
    "trocr": ("use_learned_position_embeddings", SineRows("tensor2tensor", "pad_token_id")),
}
"""Of models with learned vectors, the field that says false where they have sines instead."""

BOTH: Mapping[str, tuple[LearnedRows | SineRows, LearnedRows | SineRows]] = {
    "bart": (TWO_ROWS, TWO_ROWS),
    "mbart": (TWO_ROWS, TWO_ROWS),
    "mvp": (TWO_ROWS, TWO_ROWS),
    "plbart": (TWO_ROWS, TWO_ROWS),
    "bigbird_pegasus": (PLAIN, PLAIN),
    "blenderbot": (PLAIN, PLAIN),
    "blenderbot-small": (PLAIN, PLAIN),
    "led": (
        LearnedRows("max_encoder_position_embeddings"),
        LearnedRows("max_decoder_position_embeddings"),
    ),
    "m2m_100": (
        SineRows("tensor2tensor", "pad_token_id"),
        SineRows("tensor2tensor", "pad_token_id"),
    ),
    "nllb-moe": (
        SineRows("tensor2tensor", "pad_token_id"),
        SineRows("tensor2tensor", "pad_token_id"),
    ),
    "marian": (SineRows("concatenated"), SineRows("concatenated")),
    "pegasus": (SineRows("concatenated"), SineRows("concatenated")),
    "prophetnet": (AFTER_PADDING, AFTER_PADDING),
    "speech_to_text": (
        SineRows("tensor2tensor", "pad_token_id"),
        SineRows("tensor2tensor", "pad_token_id"),
    ),
    "whisper": (SineRows("tensor2tensor"), LearnedRows("max_target_positions")),
    **dict.fromkeys(
        _named("autoformer informer time_series_transformer"),
        (SineRows("concatenated"), SineRows("concatenated", "context_length")),
    ),
}
"""Models of an encoder and a decoder."""


def counts_from_padding(model_type: str) -> bool:
    """Whether the first position of a model is told by its ``pad_token_id``.

    Example:
        >>> counts_from_padding("roberta"), counts_from_padding("bert")
        (True, False)
    """
    rows = (LEARNED.get(model_type), SINES.get(model_type), *BOTH.get(model_type, ()))
    return any(each is not None and each.first == "pad_token_id" for each in rows)


SPARSE = (
    "where attention_type is block_sparse, as by default, a query of a long sequence sees blocks "
    "of block_size tokens alone: its own, those beside it, the first, the last, and some at random"
)
REACHES = "a query sees keys up to attention_window / 2 positions to either side, and global tokens"

NOTES: Mapping[str, str] = {
    "big_bird": SPARSE,
    "bigbird_pegasus": SPARSE,
    "layoutlm": "learned vectors of the corners and sizes of boxes are added besides",
    "led": REACHES,
    "lilt": "layers of the text; a stream of boxes goes beside them, with learned vectors of their "
    "corners and sizes, and the scores of both are added",
    "longformer": REACHES,
    "luke": "entities have a learned table of their own: the mean over the tokens of each",
    "lxmert": "layers of the text; those of the image see the corners of its boxes, projected",
    "markuplm": "learned vectors of the path to the node of each token are added besides",
    "qwen3_asr_encoder": "positions begin anew in every chunk of the recording",
    "tapas": "positions begin anew in every cell of the table, and stop at the last row of theirs",
    "videomae": "positions count patches, frame by frame and row by row",
    "videoprism_text_model": "a class token after the text has no position",
    "visual_bert": "layers of the text; regions of the image have a learned table of their own",
}
"""What there is to say beside the encoding of the tokens."""

DECODER_NOTES: Mapping[str, str] = {
    "prophetnet": "besides, learned numbers of T5's buckets of distance in the scores, which each "
    "query computes from its hidden state",
}
"""The same of decoders."""

BUCKETS = _named("t5 mt5 umt5 switch_transformers pop2piano")
"""T5 and its kin: buckets of distance, both ways in the encoder, backwards in the decoder."""

SLOPES = _named("bloom mpt")
"""ALiBi; Falcon has it where its file says ``alibi``."""

DEBERTA = _named("deberta deberta-v2")

WINDOWED = _named("swin donut-swin maskformer-swin clap_audio_model")
"""Swin's table of displacements within a window."""

WINDOWED_2 = _named("swinv2 swin2sr")

NONE = _named(
    "falcon_mamba glm5_next_text granitemoehybrid jamba kimi_linear mamba mamba2 nemotron_h rwkv "
    "zamba xlstm zamba2 canine_none "
    "flava_multimodal_model"
)
"""Models whose order comes from the layers alone (state spaces, recurrences, masks), or from what
they are given."""

PATCHES: Mapping[str, int] = {
    **dict.fromkeys(
        _named(
            "aimv2_vision_model cosmos3_edge_vision eomt glm4v_vision glm4v_moe_vision "
            "glm_image_vision granite_docling_vision groupvit_vision_model idefics2_vision "
            "idefics3_vision ijepa janus_vision_model minicpm_ocr_vision minicpmv4_6_vision "
            "minicpmv4_7_vision molmo2_vision ovis2_vision paddleocr_vl_vision "
            "phi4_multimodal_vision siglip_vision_model smolvlm_vision step3p5_vision videomt"
        ),
        0,
    ),
    **dict.fromkeys(
        _named(
            "altclip_vision_model blip_2_vision_model blip_vision_model bridgetower_vision_model "
            "chinese_clip_vision_model clip_vision_model clipseg_vision_model flava_image_model "
            "git_vision_model idefics_vision instructblip_vision_model "
            "instructblipvideo_vision_model internvl_vision kosmos_2_vision_model lw_detr_vit "
            "metaclip_2_vision_model mgp-str owlv2_vision_model owlvit_vision_model "
            "qianfan_ocr_vision rf_detr_dinov2 tipsv2_vision_model unlimited_ocr_vision_encoder "
            "vit vit_mae vit_msn dinov2 dinov2_with_registers dpt xclip_vision_model timesformer"
        ),
        1,
    ),
    "deit": 2,
}
"""Image models with a learned table of their patches, and the rows before it (class tokens)."""

CONVOLVED = (
    "positions come from a grouped convolution over the frames, added to them "
    "(posenc.Convolutional)"
)
CONVOLUTIONAL: Mapping[str, str] = {
    **dict.fromkeys(
        _named("wav2vec2 hubert unispeech unispeech-sat sew data2vec-audio speech-encoder"),
        CONVOLVED,
    ),
    "sew-d": f"{CONVOLVED}, and from DeBERTa's buckets of distance in the scores "
    "(posenc.DeBERTa), unless relative_attention is false",
    "wavlm": f"{CONVOLVED}, and from T5's buckets of distance in the scores: numbers that the "
    "layers share, times a gate that each computes from the query's frame",
}
"""Speech models whose frames are told apart by a grouped convolution over them."""

CONVOLUTIONS = _named(
    "bit convnext convnextv2 dac dinov3_convnext efficientnet encodec "
    "fastspeech2_conformer_hifigan flava_image_codebook focalnet hgnet_v2 mobilenet_v1 "
    "mobilenet_v2 poolformer pp_lcnet pp_lcnet_v3 pp_lcnet_v4 qwen2_5_omni_bigvgan regnet resnet "
    "rt_detr_resnet speecht5_hifigan superpoint textnet univnet uvdoc_backbone "
    "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_decoder "
    "vibevoice_acoustic_tokenizer_encoder align_vision_model"
)
"""Networks of convolutions, and of no attention."""

OF_SAM = _named(
    "deepseek_ocr2_sam_vision_model got_ocr2_vision pp_chart2table_vision pp_formulanet_vision "
    "sam_hq_vision_model sam_vision_model slanext_vision unlimited_ocr_sam_vision_model"
)
"""Image models with SAM's decomposed relative positions, and a table besides."""

BEIT = (
    "by its file: learned tables (use_absolute_position_embeddings), and biases by displacement of "
    "patches (use_relative_position_bias, use_shared_relative_position_bias)"
)
BOXES = (
    "learned vectors of positions and of the corners of boxes, and buckets of distance in the "
    "scores where its file says so"
)
DETR = (
    "sines of the two coordinates of an image (posenc.AxialSinusoidal), or learned ones of rows "
    "and columns, by position_embedding_type; learned vectors of queries"
)
TIMM = "a model of the package timm, whose code is not read here; its file names it (architecture)"
OF_SERIES = "a table of the patches of a series, drawn at random or of sines"

_SAMS = "sam sam_hq sam2 sam2_video sam3_tracker sam3_tracker_video edgetam edgetam_video"
"""Models that are asked by points and boxes."""

PROMPTED: Mapping[str, str] = {
    **{
        f"{name}_prompt_encoder": "random Fourier features of the coordinates of points, of boxes "
        "and of the image (posenc.RandomFourierFeatures)"
        for name in _SAMS.split()
    },
    **{
        f"{name}_mask_decoder": "none of its own: what the prompt encoder makes of coordinates is "
        "added to its queries and keys"
        for name in _SAMS.split()
    },
    **{
        f"{name}_{part}": words
        for name in ("sam3", "sam3_lite_text")
        for part, words in {
            "detr_encoder": "sines of the two coordinates of an image (posenc.AxialSinusoidal)",
            "detr_decoder": "sines of the coordinates of boxes and of an image, and biases by how "
            "far a patch is from the sides of a box",
            "geometry_encoder": "sines of the coordinates of boxes and of an image",
            "mask_decoder": "none of its own: convolutions, and attention to what it is asked by",
        }.items()
    },
}
"""Parts of SAM and its kin, beside their image models."""

_FLOW = "none: sinusoids of the time of a flow, and layers without attention"
UNTYPED: Mapping[tuple[str, str], str] = {
    ("bark", "semantic_config"): "learned vectors of positions",
    ("bark", "coarse_acoustics_config"): "learned vectors of positions",
    ("bark", "fine_acoustics_config"): "learned vectors of positions",
    ("gradium_phonon_tts", "flow_head_config"): _FLOW,
    ("nemotron3_diarization", "head_config"): "none: linear layers",
    ("pocket_tts", "flow_head_config"): _FLOW,
    ("pp_doclayout_v2", "reading_order_config"): BOXES,
}
"""Parts whose files do not name a type that transformers has: by model and field."""

WORDS: Mapping[str, str] = {
    **dict.fromkeys(CONVOLUTIONS, "none: convolutions, whose order is that of their input"),
    **dict.fromkeys(
        OF_SAM,
        "by its file: a learned table of patches (use_abs_pos), and decomposed relative positions "
        "(use_rel_pos)",
    ),
    "seggpt": "a learned table of patches, and decomposed relative positions unless "
    "use_relative_position_embeddings is false",
    "vitdet": "by its file: a learned table of patches (use_absolute_position_embeddings), and "
    "decomposed relative positions (use_relative_position_embeddings)",
    **dict.fromkeys(
        _named("cvt glpn mobilevit mobilevitv2 pvt_v2 segformer swiftformer"),
        "none of its own: convolutions between the layers of attention see the edges of the image",
    ),
    **dict.fromkeys(
        _named("granite_speech5_encoder granite_speech_encoder granite_speech_plus_encoder"),
        "learned vectors of clipped distance, met by queries (Shaw), within blocks",
    ),
    **dict.fromkeys(
        _named("inkling_text inkling2_text"),
        "logits of each token by distance (posenc.RelativeLogits), and a temperature where its "
        "file has log_scaling_n_floor",
    ),
    **dict.fromkeys(
        _named("musicgen_decoder musicgen_melody_decoder"),
        "cosines, then sines, added to the tokens",
    ),
    **PROMPTED,
    **dict.fromkeys(
        _named("chameleon_vqgan emu3_vqgan janus_vqgan"),
        "none: convolutions, and attention between them that no position enters",
    ),
    **dict.fromkeys(
        _named("idefics2_perceiver idefics_perciever molmo2_adapter"),
        "none: learned queries attend to patches, whose order is in them already",
    ),
    **dict.fromkeys(
        _named("kosmos_2_5_vision_model pix2struct_vision_model gemma4_unified_vision"),
        "learned tables of rows and columns (posenc.AxialLearned)",
    ),
    **dict.fromkeys(
        _named("gemma3n_audio gemma4_audio"), "sinusoids of distance, met by queries, within chunks"
    ),
    **dict.fromkeys(_named("timm_backbone timm_wrapper gemma3n_vision"), TIMM),
    **dict.fromkeys(_named("layoutlmv2 layoutxlm"), BOXES),
    **dict.fromkeys(_named("beit data2vec-vision"), BEIT),
    "bros": "learned vectors of positions, and sines of the displacement of boxes in the scores",
    "decision_transformer": "a learned vector of each time step, one for its return, its state and "
    "its action",
    "dinat": "learned biases by displacement within a neighborhood",
    "gemma4_unified_audio": "none: frames are projected one by one, and the text model counts them",
    "fun_asr_nano_encoder": "sines, then cosines, of the frame, counted from one",
    "glm_image_vqmodel": "none: codes are looked up one by one",
    "inkling_audio": "none: learned vectors of codes, summed",
    "inkling_vision": "none: neighboring patches are folded into channels, layer by layer",
    "mllama_vision_model": "a learned table of patches, and one of tiles by the shape of the "
    "image, mixed by a learned gate",
    "moshi_depth": "none: each codebook has weights of its own",
    "muse_spark_audio": "none: causal convolutions",
    "nemotron_asr_streaming_encoder": "sinusoids of distance, as Transformer-XL",
    "patchtsmixer": f"{OF_SERIES}, where its file has use_positional_encoding",
    "patchtst": f"{OF_SERIES}, as positional_encoding_type says",
    "perceiver": "by the class of model: learned vectors of text; Fourier features, or a learned "
    "table, of images and sounds",
    "phi4_multimodal_audio": "learned biases of clipped distance",
    "pixio": "a learned table of patches, after rows of several class tokens",
    "radio": "a learned table of the patches of the largest image, interpolated to others",
    "sam2_hiera_det_model": "a learned table of patches, interpolated to the image, and one of a "
    "window, repeated over it",
    "sam3_lite_text_text_model": "learned vectors of positions, interpolated to the length",
    "sapiens2_head": "none: convolutions",
    "seamless_m4t_v2": "learned vectors of clipped distance in the keys of the speech encoder, "
    "sines and cosines in the text",
    "timesfm": "none of its own, unless its file has use_positional_embedding: then sines and "
    "cosines of the patch",
    "vibevoice_diffusion": "none: sinusoids of the step of diffusion, and layers without attention",
    "videoprism_vision_model": "learned tables of patches and of frames",
    "vitpose_backbone": "a learned table of patches, and one more row, added to each of them",
    "audio-spectrogram-transformer": "a learned table of patches of the spectrogram",
    "clvp_encoder": "rotates a part of queries, keys and values, unless use_rotary_embedding "
    "is false",
    "hiera": "a learned table of patches",
    "hunyuan_vl_vision": "a learned table of patches, interpolated to the image",
    "layoutlmv3": f"{BOXES}; a learned table of patches",
    "levit": "learned biases by displacement of patches",
    "pvt": "a learned table of patches at every stage",
    "siglip2_vision_model": "a learned table of patches, interpolated to the image",
    "vilt": "a learned table of words, and one of patches",
    "vjepa2": "rotations by frame, row and column, as posenc.VJEPA2Rotary has them",
    "yolos": "a learned table of patches, and one more in every layer where its file says so",
    "blip_2_qformer": "none of its queries; learned vectors of text, where it is given text",
    "canine": "learned vectors of the positions of characters",
    "conditional_detr": f"{DETR}, and sines of the points that they look at",
    "cpmant": "buckets of distance between segments, as T5's within one",
    "deformable_detr": f"{DETR}, and of the levels of its features",
    "detr": DETR,
    "fastspeech2_conformer": "sinusoids of distance, as Transformer-XL",
    "florence_vision": "learned tables of rows and columns (posenc.AxialLearned), and sines and "
    "cosines of the frame, after the layers; convolutions within them",
    "fsmt": "sinusoids of its own, after the padding token",
    "funnel": "sinusoids of distance, as Transformer-XL",
    "longt5": "T5's buckets of distance: within blocks in the encoder, and of blocks to global "
    "tokens where encoder_attention_type is transient-global",
    "moonshine_streaming_encoder": "none: its layers see a window of frames",
    "parakeet_encoder": "sinusoids of distance, as Transformer-XL",
    "pegasus_x": "sines and cosines, and a learned vector of each global token",
    "pix2struct": "learned tables of rows and columns (posenc.AxialLearned)",
    "pix2struct_text_model": "T5's buckets of distance",
    "reformer": "learned vectors of two axes, put side by side, or one of each position where "
    "axial_pos_embds is false",
    "seamless_m4t": "sinusoids of distance in the speech encoder, as Transformer-XL, or rotations "
    "of frames where position_embeddings_type is rotary; sines and cosines in the text",
    "speecht5": "sines and cosines, in front of the encoder of speech a convolution besides; "
    "learned vectors of clipped distance, met by queries, in the layers of the encoder",
    "udop": "T5's buckets of distance, and in the encoder those of the two coordinates of the "
    "page, besides learned vectors of the corners of boxes",
    "vits": "learned vectors of clipped distance in keys and values",
    "vivit": "a learned table of tubelets",
    "wav2vec2-bert": "by position_embeddings_type: learned vectors of clipped distance in the keys "
    "(relative_key), or sinusoids of distance, as Transformer-XL (relative)",
    "wav2vec2-conformer": "sinusoids of distance, as Transformer-XL, where its "
    "position_embeddings_type is relative",
    "xlnet": "sinusoids of distance, as Transformer-XL",
    "chatglm": "two rotations of a head, by the position and by the place in a block",
    "grok1": "a rotation whose base its file does not name",
}
"""In words, what no reader here makes of a configuration."""
