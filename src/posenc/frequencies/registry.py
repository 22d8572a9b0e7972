"""Every rope type of Hugging Face, by its name."""

from types import MappingProxyType

from posenc.frequencies import geometric, linear, llama3, longrope, ntk, proportional, yarn
from posenc.frequencies.huggingface import RopeType

ROPE_TYPES: MappingProxyType[str, RopeType] = MappingProxyType(
    {
        rope_type.name: rope_type
        for rope_type in (
            geometric.ROPE_TYPE,
            linear.ROPE_TYPE,
            ntk.DYNAMIC_ROPE_TYPE,
            ntk.ROPE_TYPE,
            yarn.ROPE_TYPE,
            llama3.ROPE_TYPE,
            longrope.ROPE_TYPE,
            proportional.ROPE_TYPE,
        )
    }
)
