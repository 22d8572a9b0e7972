"""vLLM: one cache of cosines and sines in the model's dtype; its CUDA kernel rotates in float32."""

import torch
from torch import Tensor

from posenc.frequencies import NTK, Geometric, Linear, Llama3, YaRN
from posenc.frequencies.schedule import Schedule
from posenc.numerics.arithmetic.profile import Profile, in_dtype_of_content, in_float32
from posenc.numerics.pairing import Pairing


class VLLM(Profile):
    """``RotaryEmbedding.forward_cuda``. The kernel multiplies 16-bit content exactly in float32, so
    that fused multiplication and addition change nothing; of float32 content they may.

    Its cache, and the rotation in float32 that its modules offer beside the kernel
    (``enable_fp32_compute``), were held to the bit against vllm 0.33.0 on 2026-11-22, on a CPU; the
    kernel was read.
    """

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
    pairings = ("half", "interleaved")
    schedules = (Geometric, Linear, Llama3, YaRN, NTK)
    layout = "cos_sin_cache"

    def frequencies(self, schedule: Schedule) -> Tensor:
        plain = schedule.of if isinstance(schedule, Linear) else schedule
        return plain.float32("float32")

    def angles(self, positions: Tensor, frequencies: Tensor, schedule: Schedule) -> Tensor:
        """Linear scaling divides positions, where transformers divides frequencies."""
        places = positions.float()
        if isinstance(schedule, Linear):
            places = places / float(schedule.factor)
        return places.unsqueeze(-1) * frequencies

    def kept(self, content: torch.dtype) -> torch.dtype:
        return content

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return in_float32(x, cos.to(x.dtype), sin.to(x.dtype), pairing)


class VLLMNative(VLLM):
    """``RotaryEmbedding.forward_native``: what runs under ``custom_ops=["none"]``.

    Held to the bit against vllm 0.33.0 on 2026-11-22, on a CPU.
    """

    name = "vllm-native"
    source = "vllm/model_executor/layers/rotary_embedding/base.py and common.py"
    version = "vllm 0.33.0"
    evidence = "run"
    said = (
        "frequencies, angles and cosines in float32; the cache and every product and sum in the "
        "dtype of content"
    )

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, pairing: Pairing) -> Tensor:
        return in_dtype_of_content(x, cos, sin, pairing)
