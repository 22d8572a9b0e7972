"""SGLang: vLLM's cache, but kept in float32 on CUDA whatever the dtype of the model."""

from posenc.numerics.arithmetic.vllm import VLLM


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
