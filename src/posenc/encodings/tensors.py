"""Methods of encodings that say so where they are given something other than tensors."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

from torch import Tensor

METHODS = (
    *("encode", "encode_queries", "encode_keys", "encode_both", "encode_values"),
    *("encode_output", "query_features", "key_features", "forward"),
)
"""What encodings are called by."""

TENSORS = frozenset(
    {
        *("x", "q", "k", "v", "scores", "out", "weights", "table"),
        *("hidden", "q_hidden", "k_hidden", "q_features", "k_features"),
    }
)
"""What they are given that is a tensor; positions may be much else."""


def held_to_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that refuses lists and arrays where it takes a tensor.

    Raises:
        TypeError: By that method: something is no tensor.

    Example:
        >>> from posenc import Rotary
        >>> Rotary(4).encode_keys([[0.5] * 4], None)
        Traceback (most recent call last):
        ...
        TypeError: k is a list; Rotary.encode_keys takes a tensor. Pass torch.as_tensor(k).
    """
    parameters = list(signature(method).parameters.values())[1:]
    asked = tuple((i, each.name) for i, each in enumerate(parameters) if each.name in TENSORS)
    optional = frozenset(each.name for each in parameters if each.default is None)
    pairs = method.__name__ == "encode_both"
    if not asked:
        return method

    def check(self: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        for place, name in asked:
            if place < len(given):
                value = given[place]
            elif name in named:
                value = named[name]
            else:  # left out, or missing, which Python tells
                continue
            if value is None and name in optional:
                continue
            if name == "out" and pairs:
                if not _is_pair(value):
                    refuse(self, method.__name__, name, value)
            elif not isinstance(value, Tensor):
                refuse(self, method.__name__, name, value)

    @wraps(method)
    def held(self: Any, *given: Any, **named: Any) -> Any:
        for value in given:  # nearly always tensors all, and soon seen
            if not isinstance(value, Tensor):
                check(self, given, named)
                break
        else:
            for value in named.values():
                if not isinstance(value, Tensor) or pairs:
                    check(self, given, named)
                    break
        return method(self, *given, **named)

    return held


def refuse(encoding: object, method: str, name: str, value: object) -> None:
    """Say what came and what is taken.

    Raises:
        TypeError: Always.
    """
    kind = type(encoding).__name__
    called = kind if method == "forward" else f"{kind}.{method}"
    came = "None" if value is None else f"a {type(value).__name__}"
    if name == "out" and method == "encode_both":
        raise TypeError(f"{name} is {came}; {called} takes two tensors. Pass those of q and of k.")
    own = "what its own table(...) gives" if name == "table" else f"torch.as_tensor({name})"
    raise TypeError(f"{name} is {came}; {called} takes a tensor. Pass {own}.")


def _is_pair(value: object) -> bool:
    each = isinstance(value, tuple | list) and all(isinstance(one, Tensor) for one in value)
    return each and len(value) == 2  # type: ignore[arg-type]
