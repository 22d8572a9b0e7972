"""SGLang: vLLM's cache, but kept in float32 on CUDA whatever the dtype of the model."""

import torch
from torch import Tensor

from posenc.numerics.arithmetic.profile import in_float32
from posenc.numerics.arithmetic.vllm import VLLM
from posenc.numerics.pairing import Pairing


class SGLang(VLLM):
    """``RotaryEmbedding.forward_cuda`` for heads of 64, 128, 256 or 512 channels; for other widths
    it casts the cache to the dtype of content, as vLLM does."""

    name = "sglang"
    source = "python/sglang/srt/layers/rotary_embedding/base.py"
    version = "sglang 0.5.23"
    said = (
        "frequencies, angles, cosines and the cache in float32; products and sums in float32, "
        "rounded once"
    )

    def kept(self, content: torch.dtype) -> torch.dtype:
        return torch.float32

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return in_float32(x, cos, sin, pairing)
