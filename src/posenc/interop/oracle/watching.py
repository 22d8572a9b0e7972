"""One pass of a model over a few tokens, and what its layers did to heads and scores meanwhile."""

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from posenc.interop.oracle.masks import Reach, reach_of, seen_in
from posenc.interop.oracle.rotation import POSITIONS, Rotation, matrices_of, rotation_of

NAME = "posenc_oracle"
"""The attention implementation whose masks say how far they reach."""

FUNCTION = re.compile(r"apply.*(rot|rope|pos_emb|position_emb)|^(_?rotate_|rotary)|apply_2d")
"""Names of functions that rotate."""

LENGTHS = ("original_max_position_embeddings", "max_position_embeddings", "n_positions")

PRODUCTS = {"matmul", "bmm", "__matmul__", "__rmatmul__", "einsum", "baddbmm"}


@dataclass(frozen=True)
class Layer:
    """What one layer of attention does."""

    path: str  # of the module
    rotation: Rotation | None = None  # of its queries; None where nothing rotates them
    head_dim: int | None = None  # width of a query; None where that was not seen
    scale: float | None = None  # what products are multiplied with; None where that was not seen
    reach: Reach | None = None  # the keys that a query sees; None where that was not seen

    @property
    def index(self) -> int | None:
        """The number of the layer; None of what is in no layer, and of indexers."""
        found = re.search(r"\.(\d+)(\.|$)", f".{self.path}")
        return int(found[1]) if found and "indexer" not in self.path else None


@dataclass
class Rotated:
    """A call of a function that rotates heads."""

    path: str  # of the module that called it
    name: str
    function: Callable[..., Any]
    given: inspect.BoundArguments
    contents: tuple[str, ...]  # the arguments that it rotates: queries, and keys beside them

    def turn(self, heads: Tensor) -> Tensor:
        """The same function of other heads, with the same angles."""
        given = {**self.given.arguments, **dict.fromkeys(self.contents, heads)}
        bound = inspect.BoundArguments(self.given.signature, given)  # type: ignore[arg-type]
        return _first(self.function(*bound.args, **bound.kwargs))

    def rotation(self, positions: Tensor) -> Rotation | None:
        """What it does to a head at the positions of the pass; None where that is no rotation."""
        heads = self.given.arguments[self.contents[0]].detach()
        try:
            matrices = matrices_of(self.turn, heads, positions.shape[-1])
        except Exception:  # whatever it raises of other heads than its own
            return None
        return None if matrices is None else rotation_of(matrices, positions)


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple | list) else out


@dataclass
class Record:
    """What was seen in one pass."""

    positions: Tensor  # ``[seq]``, or ``[axes, seq]``: where the tokens stood
    attended: list[Layer] = field(default_factory=list)  # the layers' attention, in order
    rotated: list[Rotated] = field(default_factory=list)  # the calls of functions that rotate
    given: dict[str, tuple] = field(default_factory=dict)  # first arguments and keywords, by path
    path: list[str] = field(default_factory=lambda: [""], repr=False)

    def note(self, head_dim: int | None, scale: float | None, reach: Reach | None) -> None:
        """Note the attention of the module that runs, the first of several."""
        if all(each.path != self.path[-1] for each in self.attended):
            self.attended.append(Layer(self.path[-1], None, head_dim, scale, reach))


def watched(model: nn.Module, axes: int = 0) -> Record:
    """What a model does in one pass; without ``axes`` its positions have one, and need no axis."""
    given, positions = inputs_of(model, axes)
    record = Record(positions)
    with torch.no_grad(), _hooked(model, record), _wrapped(model, record), _Watch(record):
        model(**given)
    return record


def inputs_of(
    model: nn.Module, axes: int = 0, longest: int | None = None, positions: Tensor | None = None
) -> tuple[dict[str, Any], Tensor]:
    """Tokens for a model, and where they stand: as of ``watched``, or where it is given."""
    taken = inspect.signature(model.forward).parameters
    bound = min(longest or inf, _trained(model))
    near = [p for p in POSITIONS if p < bound]
    if positions is None:
        positions = torch.tensor(near) if "position_ids" in taken else torch.arange(len(near))
    if axes and "position_ids" in taken:  # one axis after the other, the others at 0
        positions = nn.functional.pad(torch.block_diag(*[positions[1:]] * axes), (1, 0))
    seq = positions.shape[-1]
    ids = torch.arange(seq)[None] % 7 + 3
    offered = {
        "input_ids": ids,
        "decoder_input_ids": ids,
        "position_ids": positions[None] if positions.ndim == 1 else positions[:, None],
        "attention_mask": torch.ones_like(ids),  # without it, jumps are taken for documents
        "use_cache": False,
    }
    if not {"input_ids", "decoder_input_ids"} & set(taken):
        width = getattr(getattr(model, "config", None), "hidden_size", None)
        if "inputs_embeds" not in taken or width is None:
            raise ValueError(f"{type(model).__name__} takes no tokens.")
        offered["inputs_embeds"] = torch.randn(1, seq, width)
    given = {name: value for name, value in offered.items() if name in taken}
    device = next(model.parameters()).device
    return {n: x.to(device) if isinstance(x, Tensor) else x for n, x in given.items()}, positions


def _trained(model: nn.Module) -> float:
    """The length up to which nothing is stretched, and tables have rows."""
    config: Any = getattr(model, "config", None)
    rope = getattr(config, "rope_parameters", None) or {}
    given = [getattr(config, name, None) for name in LENGTHS] + [rope.get(LENGTHS[0])]
    return min((n for n in given if type(n) is int and n > 1), default=inf)


@contextmanager
def _hooked(model: nn.Module, record: Record) -> Iterator[None]:
    """The path of the module that runs, and what modules are given."""
    handles = []

    def enter(name: str, _: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        record.path.append(name)
        record.given.setdefault(name, (args, kwargs))

    for name, module in model.named_modules():
        entering = partial(enter, name)
        handles.append(module.register_forward_pre_hook(entering, with_kwargs=True))
        handles.append(module.register_forward_hook(lambda *_: record.path.pop() and None))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _wrapped(model: nn.Module, record: Record) -> Iterator[None]:
    """Functions that rotate note their calls, wherever the model's code keeps them."""
    kinds = {type(each) for each in model.modules()}
    owners = [*{sys.modules[kind.__module__] for kind in kinds}, *kinds]
    undo = []
    for owner in owners:
        if not getattr(owner, "__module__", owner.__name__).startswith("transformers."):
            continue
        for name, value in list(vars(owner).items()):
            plain = value.__func__ if isinstance(value, staticmethod) else value
            if isinstance(plain, types.FunctionType) and FUNCTION.search(name):
                undo.append((owner, name, value))
                noting = _noting(record, name, plain)
                setattr(owner, name, staticmethod(noting) if plain is not value else noting)
    try:
        yield
    finally:
        for owner, name, value in undo:
            setattr(owner, name, value)


def _noting(record: Record, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        out = function(*args, **kwargs)
        if not isinstance(first := _first(out), Tensor):
            return out
        given = signature.bind(*args, **kwargs)
        tensors = [(n, x) for n, x in given.arguments.items() if isinstance(x, Tensor)]
        same = [i for i, (_, x) in enumerate(tensors) if x.numel() == first.numel()]
        if same:
            (heads, like), *after = tensors[same[0] :]
            keys = [n for n, x in after if n not in ANGLES and _alike(x, like)]
            made = Rotated(record.path[-1], name, function, given, (heads, *keys))
            record.rotated.append(made)
        return out

    return call


ANGLES = ("cos", "sin", "freqs", "freqs_cis")
"""What functions that rotate call their angles, which may be as wide as heads."""


def _alike(x: Tensor, heads: Tensor) -> bool:
    """Whether these are keys beside queries."""
    return x.ndim == heads.ndim >= 3 and x.shape[-1] == heads.shape[-1] and x.dtype == heads.dtype


class _Watch(TorchFunctionMode):
    """Notes attention: by torch's own function, or a softmax and the product it came from."""

    def __init__(self, record: Record):
        super().__init__()
        self.record, self.products = record, []

    def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None):
        out = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name in PRODUCTS and isinstance(out, Tensor) and out.ndim >= 3:
            left = next((x for x in args if isinstance(x, Tensor)), out)
            width = left.shape[-1] if name != "baddbmm" else None
            self.products = [*self.products[-3:], (out.detach().clone(), width)]
        elif name == "softmax" and args and isinstance(args[0], Tensor):
            self._note(args[0].detach())
        elif name == "scaled_dot_product_attention":
            named = dict(zip(("query", "key", "value", "attn_mask"), args)) | (kwargs or {})  # noqa: B905
            width, mask = named["query"].shape[-1], named.get("attn_mask")
            reach = Reach(after=0 if named.get("is_causal") else None)
            if mask is not None:
                reach = getattr(mask, "reach", None) or seen_in(mask)
            self.record.note(width, named.get("scale") or width**-0.5, reach)
        return out

    def _note(self, scores: Tensor) -> None:
        for product, width in reversed(self.products):
            if product.numel() == scores.numel() and product.shape[-1] == scores.shape[-1]:
                scale = _scale(product.reshape(scores.shape), scores) if width else None
                return self.record.note(width, scale, seen_in(scores))


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
