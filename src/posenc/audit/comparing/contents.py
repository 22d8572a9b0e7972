"""Queries and keys to compare with: random ones, or those of a file of weights."""

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import CannotCheckError

QUERY_HEADS = 4

CONTENT = ({"q", "query", "queries"}, {"k", "key", "keys"})
PROJECTIONS = ("q_proj.weight", "k_proj.weight"), ("wq.weight", "wk.weight")
LAYER = re.compile(r"(^|\.)\d+\.")
"""The number of a layer within the name of a tensor."""


def random_content(kv_heads: int, length: int, head_dim: int, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal q ``[1, 4, length, head_dim]`` and k of so many heads, in float32."""
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(1, QUERY_HEADS, length, head_dim, generator=generator)
    return q, torch.randn(1, kv_heads, length, head_dim, generator=generator)


def content_of(
    path: Path, kv_heads: int, length: int, head_dim: int, layer: int, seed: int
) -> tuple[Tensor, Tensor, str]:
    """q and k from a safetensors file, and in words what they are.

    Either tensors ``q`` and ``k`` ``[…, seq, head_dim]``, or the projections ``q_proj.weight`` and
    ``k_proj.weight`` of a layer with their biases, applied to standard normal hidden states.
    """
    from safetensors import safe_open

    try:
        file = safe_open(path, "pt")
    except Exception as error:  # of whatever kind that library raises
        raise CannotCheckError(f"{path} is no safetensors file: {error}") from None
    with file as stored:
        names = sorted(stored.keys())
        direct = [next((n for n in names if n in each), None) for each in CONTENT]
        if all(direct):
            q, k = (stored.get_tensor(name).float() for name in direct)
            told = f"tensors q and k of {path.name}, "
        else:
            q, k, told = _projected(path, stored, names, length, head_dim, layer, seed)
    if q.shape[-1] != head_dim or k.shape[-1] != head_dim:
        raise CannotCheckError(f"{path} has heads of {q.shape[-1]} channels, not {head_dim}")
    q, k = (x.reshape(-1, *x.shape[-2:]) for x in (q, k))
    if len(q) % len(k):
        raise CannotCheckError(f"{path} has {len(q)} query heads and {len(k)} key heads")
    rows = min(length, q.shape[1], k.shape[1])
    told += f"{rows:,} tokens" if all(direct) else ""
    return *_some_heads(q[:, :rows], k[:, :rows], kv_heads), told


def _projected(
    path: Path, stored: Any, names: list[str], length: int, head_dim: int, layer: int, seed: int
) -> tuple[Tensor, Tensor, str]:
    """What the projections of a layer make of standard normal hidden states."""
    chosen = _of_layer(names, layer)
    if chosen is None:
        raise CannotCheckError(
            f"{path} has neither q and k nor projections of layer {layer}, as q_proj.weight and "
            f"k_proj.weight; it has {', '.join(names[:6])}"
        )
    made, hidden = [], torch.empty(0)
    for name in chosen:
        weight = stored.get_tensor(name).float()
        bias = f"{name.removesuffix('.weight')}.bias"
        added = stored.get_tensor(bias).float() if bias in names else 0.0
        if not made:
            generator = torch.Generator().manual_seed(seed)
            hidden = torch.randn(length, weight.shape[-1], generator=generator)
        if weight.shape[0] % head_dim:
            raise CannotCheckError(f"{name} has {weight.shape[0]} rows, for heads of {head_dim}")
        made.append((hidden @ weight.T + added).unflatten(-1, (-1, head_dim)).transpose(0, 1))
    told = f"{chosen[0]} and {chosen[1]} of {path.name}, on standard normal hidden states"
    if left := [n for n in names if any(_norms(n, each) for each in chosen)]:
        told += f" ({' and '.join(left)} left out: give tensors q and k to have the norms counted)"
    return made[0], made[1], told


def _of_layer(names: list[str], layer: int) -> tuple[str, str] | None:
    """The two projections of that layer; a file of one layer need not name it."""
    for ends in PROJECTIONS:
        found = [[n for n in names if n.endswith(end)] for end in ends]
        of_layer = [[n for n in each if str(layer) in n.split(".")] for each in found]
        if all(of_layer):
            return of_layer[0][0], of_layer[1][0]
        if all(len(each) == 1 and not LAYER.search(each[0]) for each in found):
            return found[0][0], found[1][0]
    return None


def _norms(name: str, projection: str) -> bool:
    """Whether a weight norms what a projection gives, as q_norm and k_layernorm do."""
    before, _, own = projection.removesuffix(".weight").rpartition(".")
    side = own.replace("w", "")[0]
    return name.startswith(before) and bool(re.search(rf"(^|\.){side}_(layer)?norm\.weight$", name))


def _some_heads(q: Tensor, k: Tensor, kv_heads: int) -> tuple[Tensor, Tensor]:
    """Four query heads and the key heads that they look at, ``[1, heads, rows, head_dim]``.

    The model's query head h looks at its key head h // group. Where it has fewer key heads than
    are taken here, they come again, with other queries of their groups where there are some.
    """
    group, each = len(q) // len(k), QUERY_HEADS // kv_heads
    keys = [j % len(k) for j in range(kv_heads)]
    queries = [
        key * group + (place // len(k) * each + one) % group
        for place, key in enumerate(keys)
        for one in range(each)
    ]
    return q[queries][None].contiguous(), k[keys][None].contiguous()
