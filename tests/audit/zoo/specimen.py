"""What stands in the zoo: a module, how to ask it, and what is true of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Specimen:
    """One module.

    Attributes:
        name: Its name in the zoo.
        thing: A class, a function, or what builds the thing.
        faults: The names of all that is wrong or lossy with it, and of nothing else.
        says: A part of the line that says what it is.
        options: Of the check.
    """

    name: str
    thing: Callable[..., Any]
    faults: frozenset[str] = frozenset()
    says: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def right(thing: Callable[..., Any], says: str, *lossy: str, **options: Any) -> Specimen:
    """A module with no fault, but perhaps a loss that it really has."""
    return Specimen(thing.__name__, thing, frozenset(lossy), says, options)


def wrong(thing: Callable[..., Any], name: str, *faults: str, **options: Any) -> Specimen:
    """A module with these faults and no others."""
    return Specimen(name, thing, frozenset(faults), "", options)
