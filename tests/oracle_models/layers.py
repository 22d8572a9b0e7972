"""What each layer of a small model does with positions, measured on the model itself."""

import re
from dataclasses import dataclass, replace
from math import pi
from typing import Any, Literal

import torch
from tests.oracle_models.masks import Reach, reach_of, seen_in
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from posenc.interop import oracle
from posenc.interop.oracle import built, inputs_of, shrunk, watching

NAME = "posenc_oracle"
"""The attention implementation whose masks say how far they reach."""

PRODUCTS = {"matmul", "bmm", "__matmul__", "__rmatmul__", "einsum", "baddbmm"}


@dataclass(frozen=True)
class Layer:
    """What one layer of attention does."""

    path: str  # of the module
    rotation: "Rotation | None" = None  # of its queries; None where nothing rotates them
    head_dim: int | None = None  # width of a query; None where that was not seen
    scale: float | None = None  # what products are multiplied with; None where that was not seen
    reach: Reach | None = None  # the keys that a query sees; None where that was not seen

    @property
    def index(self) -> int | None:
        """The number of the layer; None of what is in no layer, and of indexers."""
        found = re.search(r"\.(\d+)(\.|$)", f".{self.path}")
        return int(found[1]) if found and "indexer" not in self.path else None


@dataclass(frozen=True)
class Rotation(oracle.Rotation):
    """What is done to a head, and how fast."""

    frequencies: Tensor  # ``[pairs]`` in float64: radians a position; below 0 they turn backwards
    axes: tuple[int, ...] | None  # of positions, that pairs follow; None where there is one axis

    @classmethod
    def of(cls, seen: oracle.Rotation, positions: Tensor) -> "Rotation":
        """How fast the pairs turn by positions ``[seq]``, or ``[axes, seq]``."""
        rows = positions[None] if positions.ndim == 1 else positions
        by_axis = torch.stack([_frequencies(seen.angles, row, rows) for row in rows])
        axes = by_axis.abs().argmax(0)
        several = tuple(axes.tolist()) if len(rows) > 1 else None
        return cls(**vars(seen), frequencies=by_axis.gather(0, axes[None])[0], axes=several)

    @property
    def pairing(self) -> Literal["half", "interleaved"] | None:
        """How channels are paired; None where they are in neither of the usual ways."""
        apart = {b - a for a, b in self.pairs}
        if apart == {1} and all(a % 2 == self.pairs[0][0] % 2 for a, _ in self.pairs):
            return "interleaved"
        return "half" if len(apart) == 1 else None


def _frequencies(angles: Tensor, row: Tensor, rows: Tensor) -> Tensor:
    """How fast each pair follows one axis, by positions at which the others are 0."""
    alone = [i for i in range(len(row)) if row[i] > 0 and rows[:, i].sum() == row[i]]
    alone.sort(key=lambda i: int(row[i]))
    found = angles[alone[0]] / row[alone[0]]
    for i in alone[1:]:
        near = found.abs() * row[i] < pi / 2
        found = torch.where(near, angles[i] / row[i], found)
    return found


def layers_of(model: nn.Module) -> list[Layer]:
    """What each layer of a small model does, seen in one pass over a few tokens.

    Positions have three axes where its code has ``mrope_section``.
    """
    given, positions = inputs_of(model)
    if "position_ids" in given and any(hasattr(x, "mrope_section") for x in model.modules()):
        # One axis after the other, the others at 0.
        by_axis = nn.functional.pad(torch.block_diag(*[positions[1:]] * 3), (1, 0))
        given, positions = inputs_of(model, positions=by_axis)
    with torch.no_grad(), watching(model, positions) as record, _Watch(record.path) as watch:
        model(**given)
    found = {layer.index: layer for layer in reversed(watch.attended)}  # the first of each
    for call in record.rotated:
        layer = found.setdefault(Layer(call.path).index, Layer(call.path))
        if layer.index is not None and layer.rotation is None:
            seen = call.rotation(positions)
            found[layer.index] = replace(layer, rotation=seen and Rotation.of(seen, positions))
    return [found[index] for index in sorted(each for each in found if each is not None)]


def asked(config: Any) -> nn.Module:
    """A model of a configuration with few heads, whose attention says its scale and its mask."""
    return model_of(type(config).from_dict({**config.to_dict(), **shrunk(config)}))


def model_of(config: Any) -> nn.Module:
    """A model whose attention says its scale and its mask, where its class takes that."""
    try:
        return built(config, register())
    except ValueError:  # its class takes no other attention than its own
        return built(config)


class _Watch(TorchFunctionMode):
    """Notes attention: by torch's own function, or a softmax and the product it came from."""

    def __init__(self, path: list[str]):
        super().__init__()
        self.path, self.products = path, []
        self.attended: list[Layer] = []  # the layers' attention, in order

    def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None):
        out = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name in PRODUCTS and isinstance(out, Tensor) and out.ndim >= 3:
            left = next((x for x in args if isinstance(x, Tensor)), out)
            width = left.shape[-1] if name != "baddbmm" else None
            self.products = [*self.products[-3:], (out.detach().clone(), width)]
        elif name == "softmax" and args and isinstance(args[0], Tensor):
            self._note_softmax(args[0].detach())
        elif name == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value", "attn_mask"), args)) | (kwargs or {})  # noqa: B905
            width, mask = named["query"].shape[-1], named.get("attn_mask")
            reach = Reach(after=0 if named.get("is_causal") else None)
            if mask is not None:
                reach = getattr(mask, "reach", None) or seen_in(mask)
            self.note(width, named.get("scale") or width**-0.5, reach)
        return out

    def note(self, head_dim: int | None, scale: float | None, reach: Reach | None) -> None:
        """Note the attention of the module that runs, the first of several."""
        if all(each.path != self.path[-1] for each in self.attended):
            self.attended.append(Layer(self.path[-1], None, head_dim, scale, reach))

    def _note_softmax(self, scores: Tensor) -> None:
        for product, width in reversed(self.products):
            if product.numel() == scores.numel() and product.shape[-1] == scores.shape[-1]:
                scale = _scale(product.reshape(scores.shape), scores) if width else None
                return self.note(width, scale, seen_in(scores))


def _scale(product: Tensor, scores: Tensor) -> float | None:
    """What products were multiplied with, where nothing else was added."""
    seen = (scores > -1e4) & (product.abs() > 1e-2 * product.abs().max())
    ratios = (scores / product)[seen].double()
    if not len(ratios) or ratios.max() - ratios.min() > 1e-2 * ratios.abs().max():
        return None
    return float(ratios.median())


def register() -> str:
    """Make plain attention, whose masks say how far they reach, known; gives its name."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, _drawn)
    return NAME


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Plain attention by torch's function, which is told the scale and the mask."""
    groups = query.shape[1] // key.shape[1]
    if is_causal is None:
        is_causal = bool(getattr(module, "is_causal", True))
    out = nn.functional.scaled_dot_product_attention(
        query,
        key.repeat_interleave(groups, 1),
        value.repeat_interleave(groups, 1),
        attn_mask=attention_mask,
        is_causal=is_causal and attention_mask is None,
        scale=scaling,
    )
    return out.transpose(1, 2).contiguous(), None


def _drawn(**given: Any) -> Tensor:
    """A mask of numbers, with the reach of the function that it is drawn by."""
    from transformers.masking_utils import causal_mask_function, eager_mask

    given["allow_is_bidirectional_skip"] = False
    mask: Any = eager_mask(**given)
    mask.reach = reach_of(given.get("mask_function", causal_mask_function))
    return mask
