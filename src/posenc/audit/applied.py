"""Which function the attention of a model applies its cosines and sines by."""

import inspect
from dataclasses import replace
from typing import Any

from torch import nn

from posenc.audit.subjects import Subject
from posenc.interop.oracle import asked, watched


def applies(name: str) -> bool:
    """Whether a function of this name applies cosines and sines."""
    return "apply" in name and ("rot" in name or "rope" in name)


def applied_alone(subject: Subject, applied: str | None) -> Subject:
    """The subject with this function beside it and no other that applies; itself without one."""
    if applied is None:
        return subject
    beside = {n: f for n, f in subject.namespace.items() if n == applied or not applies(n)}
    return replace(subject, namespace=beside)


def applier_of(model: nn.Module, path: str, config: Any) -> str | None:
    """The function by which layers apply a rotary module; None if that is not seen."""
    around = model.get_submodule(path.rpartition(".")[0])
    users: dict[str, list[str]] = {}
    for name, module in around.named_modules():
        inside = any(name.startswith(f"{other}.") for other in users if other)
        if not inside and (named := _named_in(module)):
            users[name] = named
    found = {name for names in users.values() for name in names}
    if len(found) > 1:
        try:
            seen = watched(asked(config)).rotated
        except Exception:  # of whatever kind a model has that takes other content
            return None
        found &= {call.name for call in seen if "indexer" not in call.path}
    return found.pop() if len(found) == 1 else None


def _named_in(layer: nn.Module) -> list[str]:
    """The functions that its forward names, and that apply."""
    forward = inspect.unwrap(type(layer).forward)
    code = getattr(forward, "__code__", None)
    names = code.co_names if code is not None else ()
    return [n for n in names if applies(n) and callable(forward.__globals__.get(n))]
