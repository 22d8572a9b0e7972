"""Modules that stay what they were built as: arguments are settled, and parameters are reals."""

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc._guards import FLOATING
from posenc.encodings.arguments import with_checked_flags
from posenc.positions.whole import plain, with_plain_numbers


class FixedOnceBuilt(nn.Module):
    """A module that computes from some of its arguments when it is built, and not again.

    To set one of these afterwards would change what it says of itself and nothing that it does.
    Parameters are floating numbers, and are read by some of the arguments: the rows of ``T5Bias``
    are other distances where ``max_distance`` is another. A state dict takes these arguments along
    beside torch's own version number, in ``_metadata``, and a module that was built with others
    refuses it. Names and numbers of the state dict are those that they would be without.

    Attributes:
        fixed: Names of arguments that cannot be set.
        fixed_beside_parameters: Names of those that cannot where parameters were made by them.
        meaning: Names of arguments by which parameters are read, and which no shape tells.

    Example:
        >>> from posenc import Rotary
        >>> Rotary(8).pairing = "interleaved"
        Traceback (most recent call last):
        ...
        AttributeError: Rotary computed from pairing when it was built, which setting it to \
'interleaved' would not undo. Build another Rotary.
    """

    fixed: ClassVar[frozenset[str]] = frozenset()
    fixed_beside_parameters: ClassVar[frozenset[str]] = frozenset()
    meaning: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        value = plain(value)
        parted = name in self.fixed_beside_parameters and self.__dict__.get("_parameters")
        if (name in self.fixed or parted) and vars(self).get(name, value) is not value:
            kind = type(self).__name__
            raise AttributeError(
                f"{kind} computed from {name} when it was built, which setting it to {value!r} "
                f"would not undo. Build another {kind}."
            )
        super().__setattr__(name, value)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        built = vars(cls).get("__init__")
        if built is not None:
            in_reals = "dtype" in inspect.signature(built).parameters
            built = with_plain_numbers(with_checked_flags(built))
            cls.__init__ = _in_reals(built) if in_reals else built

    def register_parameter(self, name: str, param: nn.Parameter | None) -> None:
        """torch's own, which takes no complex numbers in the place of reals.

        Raises:
            TypeError: It would be given some, whose imaginary parts went nowhere.
        """
        before = self._parameters.get(name)
        if before is not None and param is not None and param.is_complex():
            self._check_still_real(f"{name} is set to", before, param)
        super().register_parameter(name, param)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "FixedOnceBuilt":
        before = {name: each.detach() for name, each in self.named_parameters()}
        super()._apply(fn, recurse)  # torch's, which casts
        for name, each in self.named_parameters():
            self._check_still_real(f"{name} was cast to", before[name], each)
        return self

    def _read_by(self) -> dict[str, Any]:
        if next(_own_parameters(self), None) is None:
            return {}
        return {name: vars(self)[name] for name in sorted(self.meaning) if name in vars(self)}

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
        for name, each in self.named_parameters():
            try:
                self._check_still_real(
                    f"{name} comes as", each, state_dict.get(prefix + name, each)
                )
            except TypeError as error:
                error_msgs.append(str(error))
        error_msgs += self._contradictions(prefix, local_metadata.get("read_by", {}))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _contradictions(self, prefix: str, saved: dict[str, Any]) -> list[str]:
        """What a state dict says of its parameters that is not so here."""
        here = self._read_by()
        other = [name for name in here if name in saved and saved[name] != here[name]]
        if not other:
            return []
        theirs = ", ".join(f"{name}={saved[name]!r}" for name in other)
        ours = ", ".join(f"{name}={here[name]!r}" for name in other)
        at = f" ({prefix[:-1]})" if prefix else ""
        return [
            f"The parameters of {type(self).__name__}{at} were saved with {theirs}, and this one "
            f"has {ours}: the same numbers would mean something else. Build it with {theirs}; "
            f"where the change is meant, load dict(state_dict), which says nothing of that."
        ]

    def _check_still_real(self, told: str, before: Tensor, now: Tensor) -> None:
        if now.is_complex() and not before.is_complex():
            kind = type(self).__name__
            raise TypeError(
                f"{told} {now.dtype}; {kind} computes with reals, and imaginary parts would be "
                f"lost. Build another {kind}, with parameters in a floating dtype."
            )


def _own_parameters(module: nn.Module) -> Iterator[nn.Parameter]:
    """Those of a module and its parts, but for parts that say themselves how to read theirs."""
    yield from module.parameters(recurse=False)
    for part in module.children():
        if not isinstance(part, FixedOnceBuilt):
            yield from _own_parameters(part)


def check_floating(**dtypes: object) -> None:
    """Refuse dtypes in which parameters would be cut: whole, complex, or of eight bits.

    Raises:
        TypeError: One is none of the four; its name is told.

    Example:
        >>> check_floating(dtype=torch.complex64)
        Traceback (most recent call last):
        ...
        TypeError: dtype is torch.complex64; parameters are float16, bfloat16, float32 or float64. \
Pass one of these, as torch.float32.
    """
    for name, dtype in dtypes.items():
        if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in FLOATING):
            raise TypeError(
                f"{name} is {dtype!r}; parameters are float16, bfloat16, float32 or float64. Pass "
                f"one of these, as torch.float32."
            )


def _in_reals(built: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses to hold its parameters in anything but floating numbers."""

    @wraps(built)
    def __init__(self: nn.Module, *args: Any, **options: Any) -> None:
        check_floating(dtype=options.get("dtype"))
        built(self, *args, **options)

    return __init__
