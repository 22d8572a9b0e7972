"""What is said of a thing is read, or refused where it would change nothing."""

from collections.abc import Mapping
from typing import Any


def refuse_beside(what: str, given: Mapping[str, Any]) -> None:
    """Refuse all that is given beside something that says it itself.

    Raises:
        ValueError: Any of it is given.

    Example:
        >>> refuse_beside("a model", {"dim": 8, "layout": None})
        Traceback (most recent call last):
        ValueError: dim is given, and nothing reads it: this is a model. Leave it out.
    """
    named = [name for name, value in given.items() if value is not None and value not in ((), {})]
    if named:
        raise ValueError(
            f"{_listed(named)} given, and nothing reads {'it' if len(named) == 1 else 'them'}: "
            f"this is {what}. Leave {'it' if len(named) == 1 else 'them'} out."
        )


def check_read(view: Any, **said: Any) -> None:
    """Refuse a width or an order of axes that the call which was found does not have.

    Raises:
        ValueError: A bias has no width, a bias or a table of one length no order of axes.
    """
    for name, value in said.items():
        if value is not None and getattr(view, name, None) != value:
            raise ValueError(
                f"{name} is {value!r}, and nothing reads it: {view.subject.name} "
                f"{view.understood}. Leave it out; or say kind, if it is something else."
            )


def check_compared(view: Any, config: Any) -> None:
    """Refuse a configuration beside what it says nothing of.

    Raises:
        ValueError: The thing does not rotate along one line.
    """
    if config is not None and view.kind != "rotary":
        raise ValueError(
            f"config is given, and nothing reads it: {view.subject.name} {view.understood}. It is "
            f"compared with what rotates queries and keys. Leave it out."
        )


def _listed(names: list[str]) -> str:
    return f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'}"
