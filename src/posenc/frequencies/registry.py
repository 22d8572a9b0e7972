"""Every rope type of Hugging Face, by its name."""

from types import MappingProxyType

from posenc.frequencies import llama3, longrope, ntk, powers, scaled, yarn
from posenc.frequencies.huggingface import RopeType

_TYPES = (powers.ROPE_TYPE, scaled.LINEAR_ROPE_TYPE, ntk.DYNAMIC_ROPE_TYPE, ntk.ROPE_TYPE,
          yarn.ROPE_TYPE, llama3.ROPE_TYPE, longrope.ROPE_TYPE,
          scaled.PROPORTIONAL_ROPE_TYPE)  # fmt: skip
ROPE_TYPES: MappingProxyType[str, RopeType] = MappingProxyType({each.name: each for each in _TYPES})
