"""A model in evaluation for a while, and each of its parts in its own mode again."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


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
