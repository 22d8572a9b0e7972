"""What a model does with positions, in the terms of other programs; one file a target.

A target raises a ``ValueError`` for a model that it can express only in part.
"""

from posenc.interop.exports.arrays import Arrays, arrays, write_npz, write_safetensors
from posenc.interop.exports.gguf import GGUFKeys, gguf_keys
from posenc.interop.exports.megatron import megatron_arguments
from posenc.interop.exports.onnx import onnx_program
from posenc.interop.exports.vllm import vllm_overrides

__all__ = [
    "Arrays", "GGUFKeys", "arrays", "gguf_keys", "megatron_arguments", "onnx_program",
    "vllm_overrides", "write_npz", "write_safetensors",
]  # fmt: skip
