"""Whole state dicts in the other pairing: which rows of which tensors are permuted, and how.

Whether a type is laid out so is measured; the types for which that was done are in
``converted.txt``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.rotary_config import read_layers_of
from posenc.numerics.pairing import Pairing, checked_pairing, permutation

MARK = "posenc_pairing"
"""The field of a configuration, and the entry of a checkpoint's metadata, that names a pairing
other than that of the model's own code."""

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
# Names of tensors within attention, as transformers writes them.
PLACE = re.compile(
    rf"^(?P<attention>(?P<stack>(?:.*\.)?(?:{LAYERS}))\.(?P<layer>\d+)\."
    rf"(?:{ATTENTION}))\.(?P<module>\w+)(?:\.norms\.\d+)?\.(?P<leaf>.+)$"
)
# Other parts of a model, which are not converted.
ELSEWHERE = re.compile(r"(^|\.)(vision\w*|visual|audio\w*|encoder|decoder|indexer|cross_attn)\.")
# Tensors whose first axis is the channels that a projection gives.
ROWS = re.compile(
    r"^(weight|bias|lora_B(\.\w+)?\.(weight|bias)|lora_magnitude_vector(\.\w+)?(\.weight)?)$"
)
# Tensors beside them that have nothing to do with these.
COLUMNS = re.compile(r"^(lora_A(\.\w+)?\.weight|(input|activation)_scale)$")
# Factors of quantized weights, or of what they give: one in all, one a row, or one a block.
SCALES = re.compile(r"^(weight_scale(_inv)?|output_scale)$")


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


RowOrders = dict[str, RowOrder]
Shapes = Mapping[str, tuple[int, ...]]


def row_orders(config: Any, shapes: Shapes) -> RowOrders:
    """How each tensor that pairs rotated channels is permuted; the others stay as they are.

    These are queries and keys (fused with values or not), their biases and norms, the rotated part
    of latent attention, the second matrices of LoRA, and scales that go by rows. LoRA's matrices
    may come alone.

    A layer that is not found, or found twice, raises a ``ValueError``, and so does a tensor that is
    packed or scaled in an unknown manner.

    Args:
        config: Of the model, as ``positional_setup`` takes it.
        shapes: The shape of each tensor, by its name in transformers.

    Example:
        >>> shapes = {f"model.layers.0.self_attn.{n}_proj.weight": (64, 64) for n in "qkvo"}
        >>> config = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        ...           "num_hidden_layers": 1}
        >>> list(row_orders(config, shapes))
        ['model.layers.0.self_attn.q_proj.weight', 'model.layers.0.self_attn.k_proj.weight']
    """
    known = read(config, warns=True)
    layers = read_layers_of(known)
    found: RowOrders = {}
    stacks, leaves, modules = set(), set(), {number: set() for number in range(len(layers))}
    for name in shapes:
        place = PLACE.match(name)
        if place is None or ELSEWHERE.search(name):
            continue
        number, module, leaf = int(place["layer"]), place["module"], place["leaf"]
        if number >= len(layers):
            raise ValueError(f"{name} is of layer {number} of {len(layers)}, counted from 0.")
        layer = layers[number]
        if layer is None or (order := _order_of(module, layer.rotary, known)) is None:
            continue
        stacks.add(place["stack"])
        leaves.add(leaf.partition(".")[0])
        modules[number].add(module)
        if _follows(order, leaf, name, shapes):
            found[name] = order
    if len(stacks) > 1:
        raise ValueError(f"Layers are found in several places: {', '.join(sorted(stacks))}.")
    if leaves and leaves <= {"lora_A", "lora_B", "lora_magnitude_vector"}:
        return found  # an adapter, without the projections themselves
    for number, names in modules.items():
        # Gemma 3n and 4: the last layers take the keys of earlier ones, and have no projection.
        keys = names & {*KEYS, *LATENT} or known.get("num_kv_shared_layers")
        both = names & {*QUERIES} and keys
        if layers[number] and not both and not names & {*FUSED}:
            raise ValueError(f"Layer {number} rotates, and its queries and keys are not found.")
    return found


def _order_of(module: str, layer: Rotary, config: Configuration) -> RowOrder | None:
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
        each = heads // 4  # made for 4 devices, each with its queries, values and keys
        return (True,) * each + (False,) * each + (True,) * each
    kv_heads = get("num_key_value_heads") or heads
    if config.family == "falcon":
        kv_heads = get("num_kv_heads") or heads
        if not get("new_decoder_architecture"):
            kv_heads = 1 if get("multi_query") else heads
    queries, keys = (heads // kv_heads, 1) if config.family in GROUPED else (heads, kv_heads)
    return (True,) * (queries + keys) + (False,) * keys


def _follows(order: RowOrder, leaf: str, name: str, shapes: Shapes) -> bool:
    """Whether one tensor of a module is permuted with its rows."""
    shape = shapes[name]
    if ROWS.match(leaf):
        return order.rows(shape) > 0
    if COLUMNS.match(leaf):
        return False
    if SCALES.match(leaf):
        rows = shapes.get(f"{name.removesuffix(leaf)}weight", (0,))[0]
        if shape in ((), (1,)):
            return False
        if shape[0] == rows:
            return True
        blocks = torch.arange(rows) // -(-rows // shape[0])
        if rows and torch.equal(blocks[order.index(rows, "half")], blocks):
            return False  # rows that change places share a scale
    raise ValueError(f"{name} of shape {list(shape)} is packed or scaled in an unknown manner.")


def convert_weights(
    state: Mapping[str, Shaped[Tensor, "..."]], config: Any, *, to: Pairing
) -> dict[str, Shaped[Tensor, "..."]]:
    """A state dict with queries and keys in the pairing ``to``, for a rotation of that pairing.

    Rows change places and nothing else. The rotation of transformers keeps the pairing of its code;
    other frameworks want the other one, or ``rotate_as_converted`` runs it there.

    Args:
        state: Tensors by their names in transformers; those that stay are handed on uncopied.
        config: Of the model, with ``posenc_pairing`` where the weights were converted before.
        to: ``"half"`` or ``"interleaved"``.

    Example:
        >>> config = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
        ...           "num_hidden_layers": 1, "head_dim": 4}
        >>> state = {f"layers.0.self_attn.{n}_proj.weight": torch.arange(8.) for n in "qkv"}
        >>> convert_weights(state, config, to="interleaved")["layers.0.self_attn.q_proj.weight"]
        tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    check_convertible(config, to)
    orders = row_orders(config, {name: tuple(x.shape) for name, x in state.items()})
    changed = {name: order.converted(state[name], to) for name, order in orders.items()}
    return {**state, **changed}


def check_convertible(config: Any, to: Pairing) -> None:
    """Refuse weights that have the pairing already, and types whose layout was not measured."""
    checked_pairing(to)
    known = read(config)
    if known.model_type not in measured_types():
        raise ValueError(
            f"How {known.model_type!r} lays out its projections was not measured. Load the model "
            f"and pass it to convert_pairing, which measures."
        )
    if stored_pairing(known) == to:
        raise ValueError(f"By their configuration, the weights have the pairing {to!r} already.")


def stored_pairing(config: Configuration) -> Pairing:
    """The pairing of a model's weights, by its code or by what was done to them."""
    return next(each.rotary.pairing for each in read_layers_of(config) if each)


@cache
def measured_types() -> frozenset[str]:
    """The model types whose layout was measured: ``python -m tests.oracle_models.converting``."""
    text = files("posenc.interop.weights").joinpath("converted.txt").read_text(encoding="utf-8")
    return frozenset(text.split())
