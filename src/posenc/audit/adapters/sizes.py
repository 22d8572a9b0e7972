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


def _tensors(part: Any, *, kept: bool = False) -> list[Tensor]:
    """Parameters and buffers of one module, and what it keeps else."""
    if not isinstance(part, nn.Module):
        return []
    own = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
    return own + [v for v in vars(part).values() if kept and isinstance(v, Tensor)]


def widths_of(thing: Any) -> list[int]:
    """Widths that a thing may be built for, by its attributes and tensors, then the usual ones."""
    parts = _parts(thing)
    found = [getattr(part, name, None) for part in parts for name in WIDTH_NAMES]
    tensors = [t for part in parts for t in _tensors(part) if t.ndim]
    for t in tensors:
        found += [t.shape[-1], 2 * t.shape[-1]] if t.ndim > 1 else [2 * len(t), len(t)]
        # flattened: cos | sin caches, real views of complex numbers
        found += [t.shape[-2] * 2] if t.ndim > 2 and t.shape[-1] == 2 else []
    found = [w for w in found if isinstance(w, int) and 1 < w <= 8192]
    return list(dict.fromkeys((*found, *USUAL_WIDTHS)))


def lengths_of(thing: Any) -> list[int]:
    """Lengths that a thing may be built for: what it says, and the rows of its tensors."""
    found: list[Any] = []
    rows: list[int] = []
    for part in _parts(thing):
        found += [getattr(part, name, None) for name in LENGTH_NAMES]
        found.append(getattr(getattr(part, "config", None), "max_position_embeddings", None))
        rows += [n for t in _tensors(part, kept=True) for n in t.shape[:-1] if n >= 4]
    said = [n for n in found if isinstance(n, int) and not isinstance(n, bool) and n > 1]
    return list(dict.fromkeys((*said, *sorted(rows, reverse=True))))


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
