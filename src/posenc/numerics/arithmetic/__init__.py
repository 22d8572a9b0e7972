"""The arithmetic of public implementations: one class each, with its source and version.

Two implementations of one formula differ in their bits by where they round: frequencies by a power
or an exponential, scaling of positions or of frequencies, tables in float32 or in the dtype of the
model, products rounded each or only their sum. A profile says all of that of one implementation,
and does it.
"""

from types import MappingProxyType

from posenc.numerics.arithmetic.exact import Exact
from posenc.numerics.arithmetic.flash_attention import FlashAttention
from posenc.numerics.arithmetic.llama_cpp import LlamaCpp
from posenc.numerics.arithmetic.megatron import Megatron
from posenc.numerics.arithmetic.mlx import MLX
from posenc.numerics.arithmetic.profile import Profile
from posenc.numerics.arithmetic.torchtitan import Torchtitan
from posenc.numerics.arithmetic.torchtune import Torchtune
from posenc.numerics.arithmetic.transformers import Transformers
from posenc.numerics.arithmetic.vllm import VLLM, SGLang, VLLMNative

_KINDS = (Transformers, VLLM, VLLMNative, SGLang, Megatron, Torchtitan, Torchtune, FlashAttention,
          LlamaCpp, MLX, Exact)  # fmt: skip

PROFILES: MappingProxyType[str, Profile] = MappingProxyType({kind.name: kind() for kind in _KINDS})
"""Every profile, by its name."""

__all__ = ["PROFILES", "Profile"]
