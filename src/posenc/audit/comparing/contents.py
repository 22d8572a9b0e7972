"""Queries and keys to compare with: random ones, or those of a file of weights."""

import re
from pathlib import Path

import torch
from torch import Tensor

from posenc.audit.report import CannotCheckError
from posenc.inspection.weights import Stored, header_of

QUERY_HEADS = 4

CONTENT = ({"q", "query", "queries"}, {"k", "key", "keys"})
PROJECTIONS = ("q_proj.weight", "k_proj.weight"), ("wq.weight", "wk.weight")


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
    ``k_proj.weight`` of a layer with their biases, through which standard normal hidden states go.

    Raises:
        CannotCheckError: The file has neither, they do not fit the width of a head, or a layer is
            given of a file that tells none.
    """
    if not path.is_file():
        raise CannotCheckError(f"{path} is no file; give a .safetensors file with the weights")
    try:
        stored = header_of(path)
    except (ValueError, OSError) as error:
        raise CannotCheckError(
            f"{error} Write q and k into one by safetensors.torch.save_file."
        ) from None
    found = _named(stored)
    if found is not None:
        _check_layer(path, layer, "tensors q and k")
        q, k = (_heads(path, x, head_dim) for x in found)
        rows = min(length, q.shape[1], k.shape[1])
        told = f"tensors q and k of {path.name}, {rows:,} tokens"
        return *_some_heads(path, q[:, :rows], k[:, :rows], kv_heads), told
    names = _projections(stored, layer)
    if names is None:
        few = ", ".join([*sorted(stored)[:6], *(["…"] if len(stored) > 6 else [])])
        raise CannotCheckError(
            f"{path} has neither tensors q and k nor q_proj.weight and k_proj.weight of layer "
            f"{layer}; it has {few}"
        )
    if not LAYER.search(names[0]):
        _check_layer(path, layer, f"{names[0]} and {names[1]}")
    weights = [_whole(path, stored[name]) for name in names]
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(length, weights[0].shape[-1], generator=generator)
    q, k = (
        (hidden @ weight.T + _bias(path, stored, name))
        .unflatten(-1, (-1, head_dim))
        .transpose(0, 1)
        if weight.shape[0] % head_dim == 0
        else _misfit(path, name, weight, head_dim)
        for name, weight in zip(names, weights, strict=True)
    )
    told = f"{names[0]} and {names[1]} of {path.name}, on standard normal hidden states"
    if left := [n for name in names for n in _norms(stored, name)]:
        told += f" ({' and '.join(left)} left out: give tensors q and k to have the norms counted)"
    return *_some_heads(path, q, k, kv_heads), told


def _bias(path: Path, stored: dict[str, Stored], name: str) -> Tensor | float:
    """What is added behind a projection, where the file has it."""
    found = stored.get(f"{name.removesuffix('.weight')}.bias")
    return 0.0 if found is None else _whole(path, found)


def _norms(stored: dict[str, Stored], name: str) -> list[str]:
    """Weights beside a projection that norm what it gives, as q_norm and k_layernorm."""
    before, _, own = name.removesuffix(".weight").rpartition(".")
    side = own.replace("w", "")[0]
    return sorted(
        n for n in stored
        if n.startswith(before) and re.search(rf"(^|\.){side}_(layer)?norm\.weight$", n)
    )  # fmt: skip


def _check_layer(path: Path, layer: int, what: str) -> None:
    """Refuse a layer where the file does not say of which layer it is."""
    if layer:
        raise CannotCheckError(
            f"layer is {layer}, and {path} has {what}, which are of no named layer. Leave it out"
        )


def _named(stored: dict[str, Stored]) -> tuple[Stored, Stored] | None:
    found = [[x for name, x in stored.items() if name in names] for names in CONTENT]
    return (found[0][0], found[1][0]) if all(found) else None


def _projections(stored: dict[str, Stored], layer: int) -> tuple[str, str] | None:
    """The names of both, of that layer; those of a file that has one layer need not say which."""
    for ends in PROJECTIONS:
        found = [[n for n in sorted(stored) if n.endswith(end)] for end in ends]
        of_layer = [[n for n in names if str(layer) in n.split(".")] for names in found]
        if all(of_layer):
            return of_layer[0][0], of_layer[1][0]
        if all(len(names) == 1 and not LAYER.search(names[0]) for names in found):
            return found[0][0], found[1][0]
    return None


LAYER = re.compile(r"(^|\.)\d+\.")
"""The number of a layer within the name of a tensor."""


def _whole(path: Path, stored: Stored) -> Tensor:
    rows = 1
    for size in stored.shape[:-1]:
        rows *= size
    values = stored.first_rows(rows)
    if values is None:
        raise CannotCheckError(f"{path} has a tensor of dtype {stored.dtype}; give floating ones")
    return values.float().reshape(stored.shape)


def _heads(path: Path, stored: Stored, head_dim: int) -> Tensor:
    if len(stored.shape) < 2 or stored.shape[-1] != head_dim:
        raise CannotCheckError(
            f"{path} has q or k of shape {list(stored.shape)}; give […, seq, {head_dim}]"
        )
    return _whole(path, stored).reshape(-1, *stored.shape[-2:])


def _misfit(path: Path, name: str, weight: Tensor, head_dim: int) -> Tensor:
    raise CannotCheckError(
        f"{name} of {path} has {weight.shape[0]} rows, no multiple of head_dim {head_dim}"
    )


def _some_heads(path: Path, q: Tensor, k: Tensor, kv_heads: int) -> tuple[Tensor, Tensor]:
    """Four query heads and the key heads that they look at, ``[1, heads, rows, head_dim]``.

    The model's query head h looks at its key head h // group. Where it has fewer key heads than
    are taken here, they come again, with other queries of their groups where there are some.
    """
    if len(q) % len(k):
        raise CannotCheckError(
            f"{path} has {len(q)} query heads and {len(k)} key heads; each key head must serve as "
            f"many query heads"
        )
    group, each = len(q) // len(k), QUERY_HEADS // kv_heads
    keys = [j % len(k) for j in range(kv_heads)]
    queries = [
        key * group + (place // len(k) * each + one) % group
        for place, key in enumerate(keys)
        for one in range(each)
    ]
    return q[queries][None].contiguous(), k[keys][None].contiguous()
