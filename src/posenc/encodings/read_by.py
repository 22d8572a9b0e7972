"""State dicts that tell by which arguments their numbers are read."""

from collections.abc import Iterator
from math import isclose
from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor, nn

from posenc.frequencies import Schedule

ALIKE = 1e-5
"""How far apart numbers may be, by their size, that are the same but for rounding."""


class ReadByArguments(nn.Module):
    """A module whose state dict takes along the arguments by which its parameters are read.

    They stand beside torch's own version number, in ``_metadata``, and a module that was built with
    others refuses it. Names and numbers of the state dict are those that they would be without.

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
        if next(_own_parameters(self), None) is None:
            return {}
        held = {name: vars(self)[name] for name in sorted(self.meaning) if name in vars(self)}
        return {n: _written(v) for n, v in held.items() if not isinstance(v, Tensor)}

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
    """A number or a schedule as ``torch.load`` takes it from any file; all else as it is."""
    if isinstance(value, Schedule):
        numbers = [*value.wavelengths(), value.attention_factor]
        return {"schedule": repr(value), "numbers": numbers}
    if isinstance(value, Integral):
        return value if isinstance(value, bool) else int(value)
    return float(value) if isinstance(value, Real) else value


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


def _own_parameters(module: nn.Module) -> Iterator[nn.Parameter]:
    """Those of a module and its parts, but for parts that say themselves how to read theirs."""
    yield from module.parameters(recurse=False)
    for part in module.children():
        if not isinstance(part, ReadByArguments):
            yield from _own_parameters(part)
