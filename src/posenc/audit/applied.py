"""Which function the attention of a model applies its cosines and sines by."""

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import torch
from torch import nn

from posenc.audit.subjects import Subject


def applies(name: str) -> bool:
    """Whether a function of this name applies cosines and sines.

    Example:
        >>> applies("apply_rotary_pos_emb"), applies("rotate_half")
        (True, False)
    """
    return "apply" in name and ("rot" in name or "rope" in name)


def applied_alone(subject: Subject, applied: str | None) -> Subject:
    """The subject with this function beside it and no other that applies; itself without one."""
    if applied is None:
        return subject
    beside = {n: f for n, f in subject.namespace.items() if n == applied or not applies(n)}
    return replace(subject, namespace=beside)


def applier_of(model: nn.Module, path: str) -> str | None:
    """The function by which the layers around a rotary module apply it; None if that is not seen.

    Args:
        model: A model.
        path: Where its rotary module stands. Layers below the module that holds it use it, but
            not those inside of such a layer, as indexers that choose keys.
    """
    around = model.get_submodule(path.rpartition(".")[0])
    users: dict[str, nn.Module] = {}
    for name, module in around.named_modules():
        inside = any(name.startswith(f"{other}.") for other in users if other)
        if not inside and _named_in(module):
            users[name] = module
    found = {_of_layer(layer) for layer in users.values()}
    return found.pop() if len(found) == 1 else None


def _named_in(layer: nn.Module) -> list[str]:
    """The functions that its forward names, and that apply."""
    forward = inspect.unwrap(type(layer).forward)
    code = getattr(forward, "__code__", None)
    names = code.co_names if code is not None else ()
    return [n for n in names if applies(n) and callable(forward.__globals__.get(n))]


def _of_layer(layer: nn.Module) -> str | None:
    names = _named_in(layer)
    if len(names) == 1:
        return names[0]
    try:
        _run_until_applied(copy.deepcopy(layer).to("meta"), names)
    except _CalledError as called:
        return str(called)
    except Exception:  # of whatever kind a layer has that is called otherwise
        return None
    return None


class _CalledError(Exception):
    """Ends a forward pass where it applies cosines and sines."""


def _run_until_applied(layer: nn.Module, names: list[str]) -> None:
    """Run a layer on the meta device until it calls one of these functions."""
    forward = inspect.unwrap(type(layer).forward)

    def ending(name: str) -> Callable[..., Any]:
        return mock.Mock(side_effect=_CalledError(name))

    first = next(m for m in layer.modules() if isinstance(m, nn.Linear))
    x = torch.zeros(1, 2, first.in_features, dtype=first.weight.dtype, device="meta")
    values: dict[str, Any] = {"hidden_states": x, "position_embeddings": (x, x)}
    parameters = [*inspect.signature(forward).parameters.values()][1:]
    more = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind not in more]
    with mock.patch.dict(forward.__globals__, {n: ending(n) for n in names}):
        forward(layer, **{name: values.get(name) for name in wanted})
