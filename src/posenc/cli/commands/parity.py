"""``posenc parity``: where do the bits of two rotary implementations part, and does it matter?"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.options import File, SomeWhole, by_place, named


@dataclass(frozen=True)
class Parity:
    """A trainer and a server may compute one formula in different orders and dtypes. --config or
    --encoding says which; --layout and --call are of own code, as in check.

    A side is a profile: transformers, vllm, vllm-native, sglang, megatron, torchtitan, torchtune,
    flash-attention, llama.cpp, mlx, exact. Or it is your own code, MODULE:NAME or FILE.py:NAME, or
    model:PATH, what transformers builds of a config.json.

    --write takes .safetensors or .pt. Tables: cos_sin_cache of vLLM and SGLang, cos_sin of
    transformers, complex of torchtitan and Llama 4, halves of flash-attention, pairs of torchtune.

    Exit status: 0 equal bits, 1 they differ, 2 could not be compared.
    """

    a: Annotated[str, by_place, named("A"), Doc("One side.")]
    b: Annotated[str, by_place, named("B"), Doc("The other.")]
    config: Annotated[Optional[Path], named("CONFIG.json"), Doc("What both compute.")] = None
    layer_type: Annotated[Optional[str], named("T"), Doc("Of which layers, as full_attention.")] = (
        None
    )
    encoding: Annotated[
        Optional[str], named("EXPRESSION"), Doc('What both compute, as "Rotary(128)".')
    ] = None
    dtype: Annotated[
        Literal["bfloat16", "float16", "float32"], Doc("The dtype of queries and keys.")
    ] = "bfloat16"
    length: Annotated[SomeWhole, Doc("Number of positions (default: 8192).")] = None
    weights: Annotated[
        File, Doc("A .safetensors with tensors q and k, or q_proj.weight and k_proj.weight.")
    ] = None
    layer: Annotated[options.Whole, Doc("Of which layer the projections are.")] = 0
    arguments: Annotated[str, named("JSON"), Doc("Keyword arguments of own code.")] = "{}"
    layout: Annotated[Optional[str], named("AXES"), Doc("Order of axes, as bhsd.")] = None
    call: Annotated[Optional[str], named("PYTHON"), Doc("How to call own code.")] = None
    write: Annotated[File, Doc("Write the exact table, for both sides to load.")] = None
    table: Annotated[
        Literal["cos_sin_cache", "cos_sin", "complex", "halves", "pairs"], Doc("Its form.")
    ] = "cos_sin_cache"
    seed: options.Seed = 0
    format: options.TextOrJson = "text"

    def run(self) -> int:
        """Compares, prints, and says by the status whether bits differ."""
        from posenc.cli.shown.parity import compare

        return compare(self)
