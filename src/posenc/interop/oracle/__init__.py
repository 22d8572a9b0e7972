"""What a model of transformers does with positions, measured on the model itself."""

import re
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from posenc.interop.oracle.building import built, classes_of, shrunk, tiny
from posenc.interop.oracle.masks import Reach
from posenc.interop.oracle.rotation import POSITIONS, Rotation, matrices_of, rotation_of
from posenc.interop.oracle.watching import Record, Rotated, register, watched


@dataclass(frozen=True)
class Layer:
    """What one layer of attention does.

    Attributes:
        path: Of the module.
        index: The number of the layer.
        rotation: Of its queries; None where nothing rotates them.
        head_dim: Width of a query; None where that was not seen.
        scale: What products are multiplied with; None where that was not seen.
        reach: The keys that a query sees; None where that was not seen.
    """

    path: str
    index: int
    rotation: Rotation | None = None
    head_dim: int | None = None
    scale: float | None = None
    reach: Reach | None = None


def layers_of(model: nn.Module, axes: int | None = None, longest: int | None = None) -> list[Layer]:
    """What each layer of a small model does, seen in one pass over a few tokens.

    Args:
        model: The model, on the CPU, as of ``built``.
        axes: Of its positions; if not given, three where its code has ``mrope_section``.
        longest: Positions stay below it; if not given, below the trained length.

    Raises:
        ValueError: The model takes no tokens.

    Example:
        >>> from transformers import CohereConfig
        >>> layer, *_ = layers_of(asked(CohereConfig()))
        >>> layer.rotation.pairing, layer.rotation.width, layer.scale, layer.reach
        ('interleaved', 128, 0.08838834764831845, Reach(before=None, after=0, chunk=None))
    """
    if axes is None:
        axes = 3 if any(hasattr(each, "mrope_section") for each in model.modules()) else 0
    record = watched(model, axes, longest or _trained(model))
    found: dict[int, Layer] = {}
    for each in record.attended:
        index = layer_number(each.path)
        if index is not None and "indexer" not in each.path:
            found.setdefault(
                index, Layer(each.path, index, None, each.head_dim, each.scale, each.reach)
            )
    measured: dict[Any, Rotation | None] = {}
    for call in record.rotated:
        index = layer_number(call.path)
        if index is None or "indexer" in call.path:
            continue
        layer = found.setdefault(index, Layer(call.path, index))
        if layer.rotation is None:
            if call.key not in measured:
                measured[call.key] = _rotation(call, record)
            found[index] = replace(layer, rotation=measured[call.key])
    return [found[index] for index in sorted(found)]


def asked(config: Any, depth: int | None = None) -> nn.Module:
    """A small model of a configuration whose attention notes its scale and its mask."""
    small = tiny(config, depth)
    try:
        return built(small, register())
    except ValueError:  # its class takes no other attention than its own
        return built(small)


def _trained(model: nn.Module) -> int | None:
    """The length up to which nothing is stretched, and tables have rows."""
    config: Any = getattr(model, "config", None)
    rope = getattr(config, "rope_parameters", None) or {}
    given = [getattr(config, name, None) for name in LENGTHS] + [rope.get(LENGTHS[0])]
    return min((n for n in given if type(n) is int and n > 1), default=None)


LENGTHS = ("original_max_position_embeddings", "max_position_embeddings", "n_positions")


def layer_number(path: str) -> int | None:
    """The number of the layer in the path of a module."""
    found = re.search(r"\.(\d+)(\.|$)", f".{path}")
    return int(found[1]) if found else None


def _rotation(call: Rotated, record: Record) -> Rotation | None:
    seq = record.positions.shape[-1]
    try:
        matrices = matrices_of(call.turn, call.heads, seq)
    except Exception:  # whatever it raises of other heads than its own
        return None
    return None if matrices is None else rotation_of(matrices, record.positions)


__all__ = [
    "POSITIONS",
    "Layer",
    "Reach",
    "Record",
    "Rotation",
    "asked",
    "built",
    "classes_of",
    "layer_number",
    "layers_of",
    "matrices_of",
    "register",
    "rotation_of",
    "shrunk",
    "tiny",
    "watched",
]
