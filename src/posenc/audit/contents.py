"""Queries and keys to compare with: random ones, or those of a file of weights."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.audit.report import CannotCheckError

QUERY_HEADS = 4


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
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            if {"q", "k"} <= {*file.keys()}:
                q, k = (file.get_tensor(n).float().flatten(0, -3)[:, :length] for n in "qk")
                told = f"tensors q and k of {path.name}, {q.shape[1]:,} tokens"
            else:
                q, k, told = _projected(file, path, layer, length, head_dim, seed)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise CannotCheckError(f"{path}: {error}") from None
    if q.shape[-1] != head_dim or len(q) % len(k):
        heads = f"{len(q)} query heads and {len(k)} key heads of {q.shape[-1]} channels"
        raise CannotCheckError(f"{path} has {heads}; groups of heads of {head_dim} are compared")
    return *_some_heads(q, k, kv_heads), told


def _projected(
    file: Any, path: Path, layer: int, length: int, head_dim: int, seed: int
) -> tuple[Tensor, Tensor, str]:
    """What the projections of a layer make of standard normal hidden states."""
    names, numbers = sorted(file.keys()), ([], [str(layer)])  # one layer alone has no number
    of_layer = [n for n in names if [part for part in n.split(".") if part.isdigit()] in numbers]
    query = next((n for n in of_layer if n.endswith("q_proj.weight")), None)
    if query is None:
        raise CannotCheckError(
            f"{path} has neither q and k nor projections of layer {layer}, as q_proj.weight and "
            f"k_proj.weight; it has {', '.join(names[:6])}"
        )
    made = []
    for name in (query, query.replace("q_proj", "k_proj")):
        weight, bias = file.get_tensor(name).float(), f"{name.removesuffix('weight')}bias"
        generator = torch.Generator().manual_seed(seed)
        rows = torch.randn(length, weight.shape[-1], generator=generator) @ weight.T
        rows = rows + file.get_tensor(bias).float() if bias in names else rows
        made.append(rows.unflatten(-1, (-1, head_dim)).transpose(0, 1))
    told = f"{query} and its k_proj of {path.name}, on standard normal hidden states"
    around = query.removesuffix("q_proj.weight")
    norms = [n for n in of_layer if n.startswith(around) and "norm" in n.removeprefix(around)]
    if norms:
        told += f" ({' and '.join(norms)} left out: give tensors q and k to have the norms counted)"
    return made[0], made[1], told


def _some_heads(q: Tensor, k: Tensor, kv_heads: int) -> tuple[Tensor, Tensor]:
    """Four query heads and the key heads that they look at, ``[1, heads, rows, head_dim]``.

    The model's query head h looks at its key head h // group. Key heads that are too few come
    again, with other queries of their groups where there are some.
    """
    group, each = len(q) // len(k), QUERY_HEADS // kv_heads
    again, keys = torch.arange(kv_heads) // len(k), torch.arange(kv_heads) % len(k)
    members = (again[:, None] * each + torch.arange(each)) % group
    return q[None, (keys[:, None] * group + members).flatten()], k[None, keys]
