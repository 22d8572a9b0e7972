"""The same tokens given in other ways."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.questions.asking import Answer, fault
from posenc.audit.report import NotAskedError

Way = tuple[str, float, Callable[[], tuple[Tensor, Tensor]]]
"""What it is called, what rounding costs there, and a call: what came, and what should have."""

REFUSALS = (NotAskedError, RuntimeError, TypeError, ValueError, IndexError)
"""What a way is refused with, aloud, which is no silent difference."""

CHANCE = "in training, where it differs by chance"
"""A way that cannot be asked, and is told to be left out."""


def alike(ways: Iterable[Way], scale: float) -> Answer:
    """Whether every way gives what it should, up to its rounding of numbers up to ``scale``."""
    asked, left = [], ""
    for name, rounding, call in ways:
        if name == CHANCE:
            left = f"; not {CHANCE}"
            continue
        try:
            made, expected = call()
        except REFUSALS:
            continue
        asked.append(name)
        off = (made.double() - expected.double()).abs().max().item()
        if not off < rounding * scale:
            said = f"{name}, the same at the same positions comes out up to {off:.3g} otherwise"
            return fault("depends-on-how-it-is-given", said, off)
    if not asked:
        raise NotAskedError("it took them in no other way")
    return "; ".join(asked) + left


def training(thing: Any) -> Any:
    """The thing in training mode, with dropout set to 0."""
    for part in thing.train().modules() if isinstance(thing, nn.Module) else ():
        is_dropout = "drop" in type(part).__name__.lower()
        for name, value in list(vars(part).items()):
            drops = "drop" in name.lower() or (name == "p" and is_dropout)
            if drops and isinstance(value, float) and 0 < value < 1:
                setattr(part, name, 0.0)
    return thing


def by_chance(call: Callable[[], Tensor]) -> bool:
    """Whether two calls differ by more than what random numbers there are."""
    made = []
    for number in range(2):
        torch.manual_seed(number)
        try:
            made.append(call())
        except REFUSALS:
            return False  # which is told where it is asked
    return not torch.equal(*made)
