"""What stands in the zoo: a module, how to ask it, and what is true of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from inspect import signature
from typing import Any


@dataclass(frozen=True)
class Specimen:
    """One module, the names of all that is wrong or lossy with it, and a part of what it is."""

    name: str
    thing: Callable[..., Any]
    faults: frozenset[str] = frozenset()
    says: str = ""
    options: dict[str, Any] = field(default_factory=dict)  # of the check

    def __str__(self) -> str:
        return self.name


def right(thing: Callable[..., Any], says: str, *lossy: str, **options: Any) -> Specimen:
    """A module with no fault, but perhaps a loss that it really has."""
    return Specimen(thing.__name__, thing, frozenset(lossy), says, options)


def wrong(thing: Callable[..., Any], name: str, *faults: str, **options: Any) -> Specimen:
    """A module with these faults and no others."""
    return Specimen(name, thing, frozenset(faults), "", options)


def slip(base: type, name: str, /, *faults: str, **given: Any) -> Specimen:
    """``base`` with these faults, by other attributes and methods."""
    return wrong(changed(base, name, **given), name, *faults)


def changed(base: type, name: str, /, **given: Any) -> type:
    """``base`` with other attributes and methods; these are given that of the base to call."""
    space = {key: over(base, key, each) if callable(each) else each for key, each in given.items()}
    title = "".join(word[:1].upper() + word[1:] for word in name.replace(",", "").split())
    return type(title, (base,), {**space, "__module__": __name__})


def over(base: type, key: str, method: Any) -> Any:
    """A method that is given that of the base."""

    usual = getattr(base, key)

    @wraps(usual)
    def replaced(self: Any, *given: Any, **named: Any) -> Any:
        bound = signature(usual).bind(self, *given, **named)
        return method(self, lambda *a: usual(self, *a), *bound.args[1:])

    return replaced
