"""vLLM: one cache of cosines and sines in the model's dtype; its CUDA kernel rotates in float32.

SGLang has vLLM's cache, but keeps it in float32 on CUDA whatever the dtype of the model.
"""

from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.numerics.arithmetic.profile import Profile


class VLLM(Profile):
    """``RotaryEmbedding.forward_cuda``. The kernel multiplies 16-bit content exactly in float32, so
    that fused multiplication and addition change nothing; of float32 content they may."""

    name = "vllm"
    source = (
        "vllm/model_executor/layers/rotary_embedding/base.py and "
        "csrc/libtorch_stable/pos_encoding_kernels.cu"
    )
    version = "vllm 0.33.0, kernel at 1051220"
    evidence = "table"
    said = (
        "frequencies, angles and cosines in float32; the cache in the dtype of content, products "
        "and sums in float32, rounded once"
    )
    schedules = (Geometric, Linear, Llama3, YaRN, NTK)
    layout = "cos_sin_cache"
    linear = "divided"
    keeps = "content"


class VLLMNative(VLLM):
    """``RotaryEmbedding.forward_native``: what runs under ``custom_ops=["none"]``."""

    name = "vllm-native"
    source = "vllm/model_executor/layers/rotary_embedding/base.py and common.py"
    version = "vllm 0.33.0"
    evidence = "run"
    said = (
        "frequencies, angles and cosines in float32; the cache and every product and sum in the "
        "dtype of content"
    )
    rotates = "content"


class SGLang(VLLM):
    """``RotaryEmbedding.forward_cuda`` for heads of 64, 128, 256 or 512 channels; for other widths
    it casts the cache to the dtype of content, as vLLM does.

    Its kernel may fuse multiplication and addition: then a float32 sum moves by half its last bit,
    and of 16-bit results those that lie within that of a tie.
    """

    name = "sglang"
    source = "python/sglang/srt/layers/rotary_embedding/base.py"
    version = "sglang 0.5.23"
    evidence = "table"
    said = (
        "frequencies, angles, cosines and the cache in float32; products and sums in float32, "
        "rounded once"
    )
    keeps = "float32"
