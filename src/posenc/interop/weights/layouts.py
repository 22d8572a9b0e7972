"""How the families of transformers keep the projections whose channels are rotated.

A name is that of a module within attention. Whether a type is laid out so is measured; the types
for which that was done are in ``converted.txt``.
"""

from collections.abc import Mapping

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.configurations import Configuration
from posenc.interop.weights.orders import RowOrder

HEADS = ("q_proj", "k_proj", "q_b_proj")
"""Heads side by side: of queries or keys, or of queries from a latent vector."""

QUERIES = ("q_proj", "q_b_proj")
"""Those of queries, which hold as many heads as the configuration says."""

LATENT = ("kv_a_proj_with_mqa",)
"""One row of latents, and behind them the one rotated key that all heads share."""

FUSED = ("qkv_proj", "query_key_value", "Wqkv")
"""Queries, keys and values in one projection."""

PROJECTIONS = frozenset({*HEADS, *LATENT, *FUSED})
"""All of these."""

NORMS = ("q_norm", "k_norm", "q_layernorm", "k_layernorm", "query_layernorm", "key_layernorm")
"""Norms of queries and keys, over a head or over all of them."""

ATTENTION = (
    r"self_attn\.\d",  # LongCat has two in a layer
    "self_attn",
    "attn",
    "attention",
    "self_attention",
    "temporal_block",
)
"""What attention is called in a layer."""

LAYERS = ("layers", "h", "blocks")
"""What the list of layers is called."""

GATED = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_moe"})
"""Families whose ``q_proj`` gives each head its query, and a gate as wide behind it."""

PARTS_OF_CODEGEN = 4
"""CodeGen's projection was made for so many devices, each with its queries, values and keys."""


def order_of(module: str, layer: Rotary, config: Configuration) -> RowOrder | None:
    """The rows of a module; None for modules that no rotated channel goes through.

    Raises:
        ValueError: The configuration lacks a number of heads.

    Example:
        >>> llama = Configuration({}, "llama").with_defaults()
        >>> order_of("q_proj", Rotary(128), llama)
        RowOrder(width=128, start=0, rotated=128, pattern=(True,), elementwise=False)
        >>> order_of("v_proj", Rotary(128), llama) is None
        True
    """
    width, rotated = layer.head_dim, layer.rotated_dim
    start = width - rotated if layer.rotated == "suffix" else 0
    if module in HEADS:
        gate = module == "q_proj" and config.family in GATED
        return RowOrder(2 * width if gate else width, start, rotated)
    if module in LATENT:
        latent = config.whole("kv_lora_rank")
        return RowOrder(latent + rotated, latent, rotated)
    if module in NORMS:
        return RowOrder(width, start, rotated, elementwise=True)
    if module in FUSED:
        return RowOrder(width, start, rotated, fused_pattern(config))
    return None


def fused_pattern(config: Configuration) -> tuple[bool, ...]:
    """Which heads of a fused projection are queries or keys, over one group of them.

    Example:
        >>> falcon = {"num_attention_heads": 3, "multi_query": True}
        >>> fused_pattern(Configuration(falcon, "falcon"))
        (True, True, True, True, False)
    """
    heads = config.whole("heads")
    if config.family == "falcon":
        return _falcon(config, heads)
    if config.family == "codegen":
        each = heads // PARTS_OF_CODEGEN
        return (*(True,) * each, *(False,) * each, *(True,) * each)
    if config.family in ("gpt_neox", "gpt_neox_japanese", "persimmon"):
        return (True, True, False)
    kv_heads = config.get("num_key_value_heads") or heads
    return (*(True,) * (heads + kv_heads), *(False,) * kv_heads)


def _falcon(config: Configuration, heads: int) -> tuple[bool, ...]:
    if config.get("new_decoder_architecture"):
        return (*(True,) * (heads // (config.get("num_kv_heads") or heads) + 1), False)
    if config.get("multi_query"):
        return (*(True,) * (heads + 1), False)
    return (True, True, False)


FOREIGN: Mapping[str, str] = {
    "conv_qk": "its queries and keys go through a convolution over channels",
}
"""What stands in attention where the orders of this file would be wrong, and why."""
