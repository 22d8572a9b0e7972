"""State dicts that tell by which arguments their numbers are read."""

from collections.abc import Iterator
from math import isclose
from numbers import Integral, Real
from typing import Any, ClassVar

from torch import nn

from posenc.frequencies import Schedule

ALIKE = 1e-5
"""How far apart numbers may be, by their size, that are the same but for rounding."""


class ReadByArguments(nn.Module):
    """A module whose state dict takes along the arguments by which its parameters are read.

    They stand beside torch's own version number, in ``_metadata``, and a module that was built with
    others refuses it. Names and numbers of the state dict are those that they would be without.
    Those of a part that has no parameters stand with the whole, as ``rotary.pairing``, and so does
    its class, as ``bias``.

    Attributes:
        meaning: Names of arguments by which parameters are read, and which no shape tells.

    Example:
        >>> from posenc.transformer import Block
        >>> Block(4, 2, norm="pre").load_state_dict(Block(4, 2).state_dict())
        Traceback (most recent call last):
        ...
        RuntimeError: Error(s) in loading state_dict for Block:
            The parameters of Block were saved with norm='post', and this one has norm='pre': the \
same numbers would mean something else. Build it with norm='post'; where the change is meant, load \
dict(state_dict), which says nothing of that.
    """

    meaning: ClassVar[frozenset[str]] = frozenset()

    def _read_by(self) -> dict[str, Any]:
        return _settled(self) if _learns(self) else {}

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        metadata = getattr(destination, "_metadata", {}).get(prefix[:-1])
        if metadata is not None and (read_by := self._read_by()):
            metadata["read_by"] = read_by

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        error_msgs += self._contradictions(prefix, local_metadata.get("read_by", {}))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _contradictions(self, prefix: str, saved: dict[str, Any]) -> list[str]:
        """What a state dict says of its parameters that is not so here."""
        here = self._read_by()
        other = [name for name in here if name in saved and not _alike(saved[name], here[name])]
        if not other:
            return []
        theirs = ", ".join(f"{name}={_told(saved[name])}" for name in other)
        ours = ", ".join(f"{name}={_told(here[name])}" for name in other)
        at = f" ({prefix[:-1]})" if prefix else ""
        return [
            f"The parameters of {type(self).__name__}{at} were saved with {theirs}, and this one "
            f"has {ours}: the same numbers would mean something else. Build it with {theirs}; "
            f"where the change is meant, load dict(state_dict), which says nothing of that."
        ]


def _written(value: Any) -> Any:
    """An argument in plain numbers and words; a form of a grid by its name."""
    if isinstance(value, Schedule):
        numbers = [*value.wavelengths(), value.attention_factor]
        return {"schedule": repr(value), "numbers": numbers}
    if isinstance(value, Integral):
        return value if isinstance(value, bool) else int(value)
    return float(value) if isinstance(value, Real) else getattr(value, "name", value)


def _is_plain(value: Any) -> bool:
    """Whether ``torch.load`` takes it from any file, as it does not all that a class may hold."""
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str) or _is_schedule(value)


def _alike(one: Any, other: Any) -> bool:
    """Whether two arguments are the same; schedules are by their numbers, however they are told."""
    if _is_real(one) and _is_real(other):
        return isclose(one, other, rel_tol=ALIKE)
    if not (_is_schedule(one) and _is_schedule(other)):
        return one == other
    ours, theirs = one["numbers"], other["numbers"]
    return len(ours) == len(theirs) and all(
        isclose(a, b, rel_tol=ALIKE) for a, b in zip(ours, theirs, strict=True)
    )


def _told(value: Any) -> str:
    return value["schedule"] if _is_schedule(value) else repr(value)


def _is_schedule(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"schedule", "numbers"}


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _settled(module: ReadByArguments) -> dict[str, Any]:
    """The arguments of a module, and of its parts that have no parameters to say theirs beside."""
    held = {name: vars(module)[name] for name in sorted(module.meaning) if name in vars(module)}
    written = {name: _written(value) for name, value in held.items()}
    told = {name: value for name, value in written.items() if _is_plain(value)}
    for at, part in _held_by(module):
        if isinstance(part, ReadByArguments) and not _learns(part):
            told[at] = type(part).__name__
            told |= {f"{at}.{name}": value for name, value in _settled(part).items()}
    return told


def _held_by(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """What a module holds, by name; what a list of it holds, too."""
    for at, part in module.named_children():
        if isinstance(part, nn.ModuleList):
            yield from ((f"{at}.{number}", each) for number, each in part.named_children())
        else:
            yield at, part


def _learns(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None
