"""What cannot be done, said in one line."""

import difflib
import os
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

EXTRAS = {
    **dict.fromkeys(("numpy", "rich", "safetensors", "tokenizers", "tyro"), "cli"),
    **dict.fromkeys(("filelock", "jinja2", "msgspec", "scipy"), "lab"),
    "matplotlib": "plots",
}
"""Which extra brings a module that commands need."""


class UserError(Exception):
    """A request that cannot be met, in one line; its notes stand below as they are."""


def one_line(error: BaseException) -> str:
    """The message of ``error`` as a single line."""
    missing = isinstance(error, ImportError) and (error.name or "").partition(".")[0]
    if missing and missing in EXTRAS:
        return f"this needs {missing}: pip install 'posenc[{EXTRAS[missing]}]'"
    if isinstance(error, OSError) and error.strerror:
        name = error.filename and f"{os.fsdecode(error.filename)}: "
        return f"{name or ''}{error.strerror}"
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory for this size; ask for fewer positions, rows or dimensions"
    return " ".join(str(error).split()) or type(error).__name__


def close(word: str, known: Iterable[str]) -> str:
    """What may have been meant by ``word``, or all that is known, as the end of a sentence."""
    known = list(known)
    found = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else f"; expected one of {', '.join(known)}"


def check_heeded(command: Any, **why: object) -> None:
    """Refuses options that were given and change nothing: ``why`` says so, or is empty."""
    usual = {each.name: each.default for each in fields(command)}
    for name, said in why.items():
        if said and getattr(command, name) != usual[name]:
            raise UserError(f"--{name.replace('_', '-')} says nothing {said}; leave it out")


def check_one_of(name: str, index: int, count: int) -> None:
    """Refuses an index that is none of 0 … count − 1."""
    if not 0 <= index < count:
        raise UserError(f"{name} is {index}; it must be one of 0 … {count - 1}")
