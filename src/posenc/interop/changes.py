"""Attributes of modules and configurations, and modes of models, changed for a while."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any, Self

from torch import Tensor, nn


class Absent:
    """Stands for an attribute that an object did not have; a copy of it is itself."""


class Changes:
    """What was set on objects, and what they held before."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, str, Any]] = []

    def note(self, owner: Any, name: str) -> None:
        """Remember an attribute; of a module only what it holds itself, not its class."""
        held = getattr(owner, name, Absent)
        if isinstance(owner, nn.Module):
            own = {**vars(owner), **owner._modules, **owner._buffers}
            held = own.get(name, Absent)
        self.before.append((owner, name, held))

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        self.note(owner, name)
        setattr(owner, name, value)

    def undo(self, to: int = 0) -> None:
        """Put back what objects held, but for the first ``to`` changes."""
        while len(self.before) > to:
            owner, name, held = self.before.pop()
            if isinstance(held, nn.Module | Tensor):  # the model may have moved meanwhile
                tensors = chain(owner.parameters(), owner.buffers())
                held = held.to(next((x.device for x in tensors), None))  # type: ignore[arg-type]
            if held is not Absent:
                setattr(owner, name, held)
            elif hasattr(owner, name):
                delattr(owner, name)


class Undoable(ABC):
    """What can be undone, and undoes itself as a context manager."""

    @abstractmethod
    def undo(self) -> None:
        """Put everything back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.undo()


def undo_kept(model: nn.Module, name: str) -> None:
    """Undo the changes that a model, or parts of it, keep under a name."""
    kept = [vars(module).pop(name) for module in model.modules() if name in vars(module)]
    if not kept:
        raise ValueError("The model is not patched; there is nothing to undo.")
    for changes in kept:
        changes.undo()


@contextmanager
def in_evaluation(module: nn.Module) -> Iterator[None]:
    """All of a module in evaluation; behind it every part is in the mode that it was in.

    A part that is frozen in evaluation, as the batch norms and towers of images of models that are
    tuned in parts, would train after ``module.train()``, and a whole that is held by a new module
    would train because that one does.
    """
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        module.train(modes[module])  # for modules that do something when their mode changes
        for part, mode in modes.items():
            part.training = mode
