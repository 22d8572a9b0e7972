"""Models of images, sound and video whose rotary encodings have axes, by model type."""

AXIAL = {
    "cohere_compass_vision": "",
    "dinov3_vit": "",
    "dots3_note_vision_encoder": "qwen2_vl",
    "efficientloftr": "",
    "eomt_dinov3": "",
    "ernie4_5_vl_moe_vision": "qwen2_vl",
    "exaone4_5_vision": "qwen2_vl",
    "gemma4_vision": "gemma4_vision",
    "glm4v_moe_vision": "qwen2_vl",
    "glm4v_vision": "qwen2_vl",
    "glm5_next_vision": "qwen2_vl",
    "glm_image_vision": "",
    "glm_ocr_vision": "qwen2_vl",
    "inkling2_vision": "",
    "kimi_k25_vision": "",
    "lfm3_vl_vision": "",
    "llama4_vision_model": "llama4_vision",
    "minimax_m3_vl_vision": "",
    "mlcd": "",
    "mlcd_vision_model": "",
    "muse_glimmer_vision": "",
    "muse_spark_vision": "",
    "paddleocr_vl_vision": "qwen2_vl",
    "pixtral": "pixtral",
    "qwen2_5_omni_vision_encoder": "qwen2_vl",
    "qwen2_5_vl_vision": "qwen2_vl",
    "qwen2_vl_vision": "qwen2_vl",
    "qwen3_5_moe_vision": "qwen2_vl",
    "qwen3_5_vision": "qwen2_vl",
    "qwen3_omni_moe_vision_encoder": "qwen2_vl",
    "qwen3_vl_moe_vision": "qwen2_vl",
    "qwen3_vl_vision": "qwen2_vl",
    "qwen4_exp_vision": "qwen2_vl",
    "sam3_vit_model": "",
    "sapiens2": "",
    "video_llama_3_vision": "qwen2_vl",
}
"""The form of ``AxialRotary`` that each has; "" where none of the library's was held against it."""

OF_DINOV3 = ("dinov3_vit", "eomt_dinov3")
"""Of these, models with the rotations of DINOv3, which is no axial form."""

TABLES = frozenset(
    {
        "cohere_compass_vision", "glm4v_moe_vision", "glm4v_vision",
        "inkling2_vision", "kimi_k25_vision", "llama4_vision_model", "paddleocr_vl_vision",
        "qwen3_5_moe_vision", "qwen3_5_vision", "qwen3_omni_moe_vision_encoder",
        "qwen3_vl_moe_vision", "qwen3_vl_vision", "qwen4_exp_vision",
    }
)  # fmt: skip
"""Of these, models that have a learned table of patches besides."""
