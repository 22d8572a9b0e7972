"""What a model does to queries, keys and scores, watched from outside while it runs.

Every token is the same one, so the contents of all positions are alike and what differs between
them is the work of positions alone. Attention runs in its plain form: a product, then a softmax.
"""

import re
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

POSITIONS = (0, 1, 2, 3, 5, 9, 30, 77, 200, 401, 503)
"""Near and far; as many as nothing else in a tiny model is."""

FUNCTION = re.compile(r"apply.*(rot|rope|pos_emb|position_emb)|^(rotate_|_rotate|rotary)|apply_2d")
"""Names of functions that rotate."""

PRODUCTS = {"matmul", "bmm", "__matmul__", "__rmatmul__", "einsum", "baddbmm"}


@dataclass
class Attended:
    """One softmax over scores.

    Attributes:
        path: Of the module in which it ran.
        q: Queries, as attention multiplies them.
        k: Keys, likewise, transposed back.
        scores: What the softmax was given.
    """

    path: str
    q: Tensor | None
    k: Tensor | None
    scores: Tensor
    constant: bool = True
    """Whether what came into the module was alike at all positions."""


@dataclass
class Rotated:
    """One call of a function that rotates: tensors before and after, of one shape."""

    path: str
    name: str
    before: tuple[Tensor, ...]
    after: tuple[Tensor, ...]


@dataclass
class Record:
    """Everything that was seen."""

    attended: list[Attended] = field(default_factory=list)
    rotated: list[Rotated] = field(default_factory=list)
    angles: list[tuple[str, tuple[Tensor, ...]]] = field(default_factory=list)
    looked_up: list[tuple[str, Tensor, Tensor]] = field(default_factory=list)
    path: list[str] = field(default_factory=lambda: [""])
    constant: dict[str, bool] = field(default_factory=dict)


class Watch(TorchFunctionMode):
    """Notes every softmax, with the product that its scores came from."""

    def __init__(self, record: Record):
        super().__init__()
        self.record, self.products = record, []

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        if name in PRODUCTS and isinstance(out, Tensor) and out.ndim >= 3:
            tensors = [a for a in args if isinstance(a, Tensor)]
            if len(tensors) == 1 and isinstance(args[-1], list | tuple):
                tensors = list(args[-1])
            if len(tensors) >= 2:
                self.products = [*self.products[-3:], (name, args, tensors[-2:], out)]
        elif name == "softmax" and args and isinstance(args[0], Tensor):
            self._softmax(args[0])
        elif name == "scaled_dot_product_attention":
            q, k = args[0], args[1]
            scale = (kwargs or {}).get("scale") or q.shape[-1] ** -0.5
            if q.shape[1] == k.shape[1]:
                scores = q @ k.mT * scale
                mask = (kwargs or {}).get("attn_mask")
                if isinstance(mask, Tensor) and mask.dtype != torch.bool:
                    scores = scores + mask
                self._note(q, k, scores)
        elif name == "embedding" and len(args) >= 2 and isinstance(args[0], Tensor):
            self.record.looked_up.append((self.record.path[-1], args[0].detach(), args[1]))
        return out

    def _softmax(self, scores: Tensor) -> None:
        for name, _, (a, b), out in reversed(self.products):
            if out.numel() == scores.numel() and out.shape[-1] == scores.shape[-1]:
                return self._note(a, b if name == "einsum" else b.mT, scores)
        return self._note(None, None, scores)

    def _note(self, q: Tensor | None, k: Tensor | None, scores: Tensor) -> None:
        q, k, scores = (None if x is None else x.detach().clone() for x in (q, k, scores))
        self.record.attended.append(
            Attended(
                self.record.path[-1],
                q,
                k,
                scores,
                self.record.constant.get(self.record.path[-1], True),
            )
        )


@contextmanager
def watched(model: nn.Module) -> Iterator[Record]:
    """A record of what runs inside the block."""
    record, undo = Record(), []
    for name, module in model.named_modules():
        undo.append(module.register_forward_pre_hook(_enter(record, name), with_kwargs=True))
        undo.append(module.register_forward_hook(_leave(record)))
        if re.search(r"rot|rope|pos", type(module).__name__, re.I):
            undo.append(module.register_forward_hook(_angles(record, name)))
    restore = list(_wrapped(model, record))
    try:
        with torch.no_grad(), Watch(record):
            yield record
    finally:
        for handle in undo:
            handle.remove()
        for owner, name, function in restore:
            setattr(owner, name, function)


def _enter(record: Record, name: str):
    def enter(_module: nn.Module, args: tuple, kwargs: dict) -> None:
        record.path.append(name)
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        wide = [x for x in given if x.ndim == 3 and x.is_floating_point()]
        if wide:
            spread = (wide[0] - wide[0][:, :1]).abs().max() / wide[0].abs().max().clamp(min=1e-9)
            record.constant[name] = bool(spread < 1e-4)

    return enter


def _leave(record: Record):
    return lambda *_: record.path.pop() and None


def _angles(record: Record, name: str):
    def note(_module: nn.Module, _inputs: Any, out: Any) -> None:
        found = out if isinstance(out, tuple | list) else (out,)
        record.angles.append((name, tuple(x for x in found if isinstance(x, Tensor))))

    return note


def _wrapped(model: nn.Module, record: Record) -> Iterator[tuple[Any, str, Any]]:
    import sys

    modules = {type(each).__module__ for each in model.modules()}
    for module in sorted(modules):
        if not module.startswith("transformers.models"):
            continue
        owner = sys.modules[module]
        for name, value in list(vars(owner).items()):
            if isinstance(value, types.FunctionType) and FUNCTION.search(name):
                yield owner, name, value
                setattr(owner, name, _recorded(record, name, value))
    for kind in {type(each) for each in model.modules()}:
        if not kind.__module__.startswith("transformers.models"):
            continue
        for name, value in list(vars(kind).items()):
            static = isinstance(value, staticmethod)
            plain = value.__func__ if static else value
            if isinstance(plain, types.FunctionType) and FUNCTION.search(name):
                yield kind, name, value
                wrapped = _recorded(record, name, plain)
                setattr(kind, name, staticmethod(wrapped) if static else wrapped)


def _recorded(record: Record, name: str, function):
    depth = [0]

    def call(*args, **kwargs):
        depth[0] += 1
        try:
            out = function(*args, **kwargs)
        finally:
            depth[0] -= 1
        outs = out if isinstance(out, tuple | list) else (out,)
        outs = [x for x in outs if isinstance(x, Tensor)]
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        before = [given[i] for i in range(min(len(outs), len(given)))]
        if outs and all(a.numel() == b.numel() for a, b in zip(before, outs, strict=False)):
            keep = lambda xs: tuple(x.detach().clone() for x in xs)  # noqa: E731
            record.rotated.append(Rotated(record.path[-1], name, keep(before), keep(outs)))
        return out

    return call
