"""What a model does with positions, for programs that know nothing of this library.

Each target states what it can say, and refuses a model of which it could say only a part.
"""

from posenc.interop.exports.arrays import Arrays, arrays, write_npz, write_safetensors
from posenc.interop.exports.gguf import GGUFKeys, gguf_keys
from posenc.interop.exports.megatron import megatron_arguments
from posenc.interop.exports.onnx import onnx_program
from posenc.interop.exports.vllm import vllm_overrides

__all__ = [
    "Arrays",
    "GGUFKeys",
    "arrays",
    "gguf_keys",
    "megatron_arguments",
    "onnx_program",
    "vllm_overrides",
    "write_npz",
    "write_safetensors",
]
