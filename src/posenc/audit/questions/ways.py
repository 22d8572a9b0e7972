"""The same tokens given in other ways, asked alike in every place."""

from collections.abc import Callable, Iterable

from torch import Tensor, nn

from posenc.audit.questions.asking import Answer, fault
from posenc.audit.report import NotAskedError

Way = tuple[str, float, Callable[[], tuple[Tensor, Tensor]]]
"""What it is called, what rounding costs there, and a call: what came, and what should have."""

REFUSALS = (NotAskedError, RuntimeError, TypeError, ValueError, IndexError)
"""What a way is refused with, aloud, which is no silent difference."""


def alike(ways: Iterable[Way], scale: float, said: str, reproduction: str) -> Answer:
    """Whether every way gives what it should, up to its rounding of numbers up to ``scale``."""
    asked = []
    for name, rounding, call in ways:
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
    return "; ".join(asked)


def is_random(thing: nn.Module) -> bool:
    """Whether training differs by chance."""
    return any("dropout" in type(each).__name__.lower() for each in thing.modules())
