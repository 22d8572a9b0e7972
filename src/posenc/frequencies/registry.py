"""Every rope type of Hugging Face, by its name."""

from types import MappingProxyType

from posenc.frequencies import llama3, longrope, ntk, powers, scaled, yarn
from posenc.frequencies.huggingface import RopeType

ROPE_TYPES: MappingProxyType[str, RopeType] = MappingProxyType(
    {
        rope_type.name: rope_type
        for rope_type in (
            powers.ROPE_TYPE,
            scaled.LINEAR_ROPE_TYPE,
            ntk.DYNAMIC_ROPE_TYPE,
            ntk.ROPE_TYPE,
            yarn.ROPE_TYPE,
            llama3.ROPE_TYPE,
            longrope.ROPE_TYPE,
            scaled.PROPORTIONAL_ROPE_TYPE,
        )
    }
)
