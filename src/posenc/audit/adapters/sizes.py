"""Widths and lengths that a thing may be built for."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

WIDTH_NAMES = (
    "org_channels", "head_dim", "head_size", "dim", "d_model", "embed_dim", "embedding_dim", "d",
    "rotary_dim", "hidden_size", "channels",
)  # fmt: skip
USUAL_WIDTHS = (64, 32, 16, 128)

LENGTH_NAMES = (
    "max_seq_len_cached", "max_position_embeddings", "max_seq_len", "max_len", "max_length",
    "max_position", "block_size", "context_length", "num_positions",
)  # fmt: skip


def _parts(thing: Any) -> list[Any]:
    return list(thing.modules()) if isinstance(thing, nn.Module) else [thing]


def _tensors(thing: Any) -> list[Tensor]:
    own = (*thing.parameters(), *thing.buffers()) if isinstance(thing, nn.Module) else ()
    return [t for t in own if t.ndim]


def widths_of(thing: Any) -> list[int]:
    """Widths that a thing may be built for, by its attributes and tensors, then the usual ones."""
    found = [getattr(part, name, None) for part in _parts(thing) for name in WIDTH_NAMES]
    for t in _tensors(thing):
        width = t.shape[-1]
        found += [2 * width, width] if t.ndim == 1 else [width, 2 * width]
        if t.ndim > 2 and width == 2:  # cos and sin in pairs
            found.append(2 * t.shape[-2])
    found = [w for w in found if isinstance(w, int) and 1 < w <= 8192]
    return list(dict.fromkeys((*found, *USUAL_WIDTHS)))


def lengths_of(thing: Any) -> list[int]:
    """Lengths that a thing may be built for: what it says, and the rows of its tensors."""
    said: list[Any] = []
    tensors = _tensors(thing)
    for part in _parts(thing):
        said += [getattr(part, name, None) for name in LENGTH_NAMES]
        said.append(getattr(getattr(part, "config", None), "max_position_embeddings", None))
        if isinstance(part, nn.Module):
            tensors += [v for v in vars(part).values() if isinstance(v, Tensor)]
    rows = sorted((n for t in tensors for n in t.shape[:-1] if n >= 4), reverse=True)
    return list(dict.fromkeys((*(n for n in said if type(n) is int and n > 1), *rows)))


def most_taken(takes: Callable[[int], bool], bound: int) -> int:
    """The largest number up to ``bound`` that is taken, where smaller ones are; 0 if none is."""
    low, high = 0, bound
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if takes(middle) else (low, middle - 1)
    return low


def has_zeros(thing: Any) -> bool:
    """Whether it has a parameter of zeros, as tables are before they are trained."""
    return isinstance(thing, nn.Module) and any(not p.any() for p in thing.parameters())


def varies(values: Tensor, axis: int) -> float:
    """The largest change of ``values`` along an axis."""
    values = values.double()
    return (values - values.narrow(axis, 0, 1)).abs().max().item() if values.numel() else 0.0
