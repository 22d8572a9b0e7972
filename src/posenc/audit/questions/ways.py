"""The same tokens given in other ways, asked alike in every place."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.questions.asking import Answer, fault
from posenc.audit.report import Fault, NotAskedError

Way = tuple[str, float, Callable[[], tuple[Tensor, Tensor]]]
"""What it is called, what rounding costs there, and a call: what came, and what should have."""

REFUSALS = (NotAskedError, RuntimeError, TypeError, ValueError, IndexError)
"""What a way is refused with, aloud, which is no silent difference."""


CHANCE = "in training, where it differs by chance"
"""A way that cannot be asked, and is told to be left out."""


def alike(ways: Iterable[Way], scale: float, said: str, reproduction: str) -> Answer:
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
            return fault(
                "depends-on-how-it-is-given",
                "wrong",
                f"{name}, {said} up to {off:.3g} otherwise",
                off,
                f"{reproduction}\n# {name}: against the same rows given plainly",
            )
    if not asked:
        raise NotAskedError("it took them in no other way")
    return "; ".join(asked) + left


def training(thing: Any) -> Any:
    """The thing in training, with every probability of dropping at 0, by names that say so."""
    if not isinstance(thing, nn.Module):
        return thing
    thing.train()
    for part in thing.modules():
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


TABLE_BEFORE = "a function that gives a table may be called before autocast begins"
"""Why it is not asked within."""


def autocast() -> torch.autocast:
    """Within, products of matrices are rounded to bfloat16, whatever they are of."""
    return torch.autocast("cpu", torch.bfloat16)


def autocast_fault(what: str, off: float, x: str) -> Fault:
    """Angles, or what is made of them, that autocast rounds; ``x`` is a line that makes content."""
    return fault(
        "autocast-breaks-it",
        "lossy",
        f"inside torch.autocast to bfloat16 on a CPU, {what}: angles by a product of matrices "
        "are rounded with the layers around",
        off,
        f"import torch\n{x}\nwith torch.autocast('cpu', torch.bfloat16):\n    made = subject(x)",
    )
