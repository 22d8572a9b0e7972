"""One pass of a model over a few tokens, and the functions that rotated heads meanwhile."""

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from posenc.interop.oracle.rotation import Rotation, matrices_of, rotation_of

FUNCTION = re.compile(r"apply.*(rot|rope|pos_emb|position_emb)|^(_?rotate_|rotary)|apply_2d")
"""Names of functions that rotate."""

POSITIONS = (0, 1, 8, 64, 512, 4096, 32768)
"""Near, where every pair tells how fast it is, and far, where slow ones tell it precisely."""

LENGTHS = ("original_max_position_embeddings", "max_position_embeddings", "n_positions")


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
        return None if matrices is None else rotation_of(matrices)


def _first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple | list) else out


@dataclass
class Record:
    """What was seen in one pass."""

    positions: Tensor  # ``[seq]``, or ``[axes, seq]``: where the tokens stood
    rotated: list[Rotated] = field(default_factory=list)  # the calls of functions that rotate
    given: dict[str, tuple] = field(default_factory=dict)  # first arguments and keywords, by path
    path: list[str] = field(default_factory=lambda: [""], repr=False)


def watched(model: nn.Module) -> Record:
    """What a model does in one pass over a few tokens."""
    given, positions = inputs_of(model)
    with torch.no_grad(), watching(model, positions) as record:
        model(**given)
    return record


@contextmanager
def watching(model: nn.Module, positions: Tensor) -> Iterator[Record]:
    """A record that fills while a model runs on tokens at these positions."""
    record = Record(positions)

    def enter(name: str, _: nn.Module, args: tuple, kwargs: dict[str, Any]) -> None:
        record.path.append(name)
        record.given.setdefault(name, (args, kwargs))

    with ExitStack() as undo:
        for name, module in model.named_modules():
            entering = module.register_forward_pre_hook(partial(enter, name), with_kwargs=True)
            leaving = module.register_forward_hook(lambda *_: record.path.pop() and None)
            undo.callback(entering.remove)
            undo.callback(leaving.remove)
        for owner, name, held in _rotating(model):
            undo.callback(setattr, owner, name, held)
            static = isinstance(held, staticmethod)
            noting = _noting(record, name, held.__func__ if static else held)
            setattr(owner, name, staticmethod(noting) if static else noting)
        yield record


def _rotating(model: nn.Module) -> list[tuple[Any, str, Any]]:
    """The functions that rotate, wherever the model's code keeps them: owner, name and function."""
    kinds = {type(each) for each in model.modules()}
    owners = [*{sys.modules[kind.__module__] for kind in kinds}, *kinds]
    return [
        (owner, name, held)
        for owner in owners
        if getattr(owner, "__module__", owner.__name__).startswith("transformers.")
        for name, held in vars(owner).items()
        if isinstance(held, types.FunctionType | staticmethod) and FUNCTION.search(name)
    ]


def inputs_of(
    model: nn.Module, longest: int | None = None, positions: Tensor | None = None
) -> tuple[dict[str, Any], Tensor]:
    """Tokens for a model, and where they stand: as of ``watched``, or where it is given."""
    taken = inspect.signature(model.forward).parameters
    if positions is None:
        bound = min(longest or inf, _trained(model))
        near = [p for p in POSITIONS if p < bound]
        positions = torch.tensor(near) if "position_ids" in taken else torch.arange(len(near))
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
