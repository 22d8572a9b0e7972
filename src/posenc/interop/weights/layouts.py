"""Which rows of the projections of transformers are rotated channels, by the names of modules.

Whether a type is laid out so is measured; the types for which that was done are in
``converted.txt``.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.fields import Configuration
from posenc.numerics.pairing import Pairing, permutation

# Heads side by side: of queries (from a latent vector or not), and of keys.
QUERIES = ("q_proj", "q_b_proj")
KEYS = ("k_proj",)
# One row of latents, and behind them the one rotated key that all heads share.
LATENT = ("kv_a_proj_with_mqa",)
# Queries, keys and values in one projection.
FUSED = ("qkv_proj", "query_key_value", "Wqkv")
# Norms of queries and keys, over a head or over all of them.
NORMS = ("q_norm", "k_norm", "q_layernorm", "k_layernorm", "query_layernorm", "key_layernorm")
# What attention is called in a layer (LongCat has two), and the list of layers.
ATTENTION = r"self_attn\.\d|self_attn|attn|attention|self_attention|temporal_block"
LAYERS = "layers|h|blocks"
# Families whose ``q_proj`` gives each head its query, and a gate as wide behind it.
GATED = frozenset({"qwen3_next", "qwen3_5", "qwen3_5_moe"})
# Families whose fused projection has the queries of one key, that key and its value, over and over.
GROUPED = frozenset({"falcon", "gpt_neox", "gpt_neox_japanese", "persimmon"})
# CodeGen's projection was made for so many devices, each with its queries, values and keys.
PARTS_OF_CODEGEN = 4


@dataclass(frozen=True)
class RowOrder:
    """The rows of one projection, bias or norm: heads side by side, some of them rotated."""

    width: int  # rows of a head
    start: int  # where its rotated rows begin: at 0, or so that they are the last
    rotated: int  # how many they are
    # for each head of a group, whether it is rotated; groups repeat, and values do not rotate
    pattern: tuple[bool, ...] = (True,)
    elementwise: bool = False  # whether every number is a row, as in a norm of ``[heads, width]``

    def rows(self, shape: tuple[int, ...]) -> int:
        """The number of rows of a tensor of this shape, which must be whole groups of heads."""
        count = torch.Size(shape).numel() if self.elementwise else shape[0] if shape else 0
        if count == 0 or count % (self.width * len(self.pattern)):
            raise ValueError(f"{count} rows, no whole groups of {len(self.pattern)} × {self.width}")
        return count

    def index(self, rows: int, to: Pairing) -> Int64[Tensor, "rows"]:
        """For each row in the pairing ``to``, the row that it was in the other one."""
        heads = torch.arange(rows).view(-1, len(self.pattern), self.width)
        place = "suffix" if self.start else "prefix"
        moved = heads[..., permutation(self.rotated, to, head_dim=self.width, rotated=place)]
        return torch.where(torch.tensor(self.pattern)[:, None], moved, heads).flatten()

    def converted(self, x: Shaped[Tensor, "..."], to: Pairing) -> Shaped[Tensor, "..."]:
        """``x`` with its rows in the pairing ``to``."""
        index = self.index(self.rows(tuple(x.shape)), to).to(x.device)
        return x.flatten()[index].view(x.shape) if self.elementwise else x[index]


def order_of(module: str, layer: Rotary, config: Configuration) -> RowOrder | None:
    """The rows of a module; None for modules that no rotated channel goes through."""
    width, rotated = layer.head_dim, layer.rotated_dim
    start = width - rotated if layer.rotated == "suffix" else 0
    if module in QUERIES + KEYS:
        gate = module == "q_proj" and config.family in GATED
        return RowOrder(2 * width if gate else width, start, rotated)
    if module in LATENT:
        latent = config.whole("kv_lora_rank")
        return RowOrder(latent + rotated, latent, rotated)
    if module in NORMS:
        return RowOrder(width, start, rotated, elementwise=True)
    return RowOrder(width, start, rotated, _fused(config)) if module in FUSED else None


def _fused(config: Configuration) -> tuple[bool, ...]:
    """Which heads of a fused projection are queries or keys, over one group of them."""
    heads, get = config.whole("heads"), config.get
    if config.family == "codegen":
        each = heads // PARTS_OF_CODEGEN
        return (True,) * each + (False,) * each + (True,) * each
    kv_heads = get("num_key_value_heads") or heads
    if config.family == "falcon":
        kv_heads = get("num_kv_heads") or heads
        if not get("new_decoder_architecture"):
            kv_heads = 1 if get("multi_query") else heads
    queries, keys = (heads // kv_heads, 1) if config.family in GROUPED else (heads, kv_heads)
    return (True,) * (queries + keys) + (False,) * keys
