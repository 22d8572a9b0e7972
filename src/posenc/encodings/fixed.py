"""Modules that stay what they were built as: arguments are settled, and parameters are reals."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial, wraps
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from posenc.arguments import (
    MOST,
    check_flag,
    check_number,
    check_numbers,
    check_positive_number,
    check_probability,
    check_whole,
    with_checked_flags,
)
from posenc.encodings.read_by import ReadByArguments
from posenc.guards import FLOATING, captured, may_look
from posenc.positions.whole import plain, with_plain_numbers

CALLED = frozenset(
    {
        *("encode", "encode_queries", "encode_keys", "encode_both", "encode_values"),
        *("encode_output", "query_features", "key_features", "forward", "profile", "table"),
    }
)
"""Methods by which an encoding is what it is."""

ASKED: Mapping[str, Callable[..., None]] = MappingProxyType(
    {
        "dropout": check_probability,
        "negative_slope": partial(check_number, 0.0),
        "offset": partial(check_whole, -MOST),
        "slopes": check_numbers,
        "std": partial(check_number, 0.0),
        "threshold": check_positive_number,
    }
)
"""What is asked of these arguments by every class of ours that has them and can do with others."""

CONSTANT = frozenset({"dropout", "negative_slope"})
"""Those of them that functions of torch take, as numbers that do not learn."""


class FixedOnceBuilt(ReadByArguments):
    """A module that computes from some of its arguments when it is built, and not again.

    To set one of these afterwards would change what it says of itself and nothing that it does. So
    it is with an encoding that it was built of, as ``MultimodalRotary`` of a ``Rotary``, and with a
    method that is set on one object. Parameters are floating numbers, and are read by some of the
    arguments: the rows of ``T5Bias`` are other distances where ``max_distance`` is another. A state
    dict takes these arguments along; see ``ReadByArguments``.

    Attributes:
        fixed: Names of arguments that cannot be set.
        fixed_beside_parameters: Names of those that cannot where parameters were made by them.
        settable: What is asked of those that can, by the constructor as by whoever sets them
            afterwards; of those in ``ASKED`` if nothing else is said. A tensor of one element that
            learns may take the place of a number then, but of those in ``CONSTANT``, and a module
            of somebody's own that of any.
        learnable: What is asked of one that learns instead, where numbers are whole and formulas
            take reals. A whole number that is not here does not learn: its steps have no gradient.
        switches: Names of arguments of ours that are true or false, and stay so.

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
    settable: ClassVar[Mapping[str, Callable[..., None]]] = {}
    learnable: ClassVar[Mapping[str, Callable[..., None]]] = {}
    switches: ClassVar[frozenset[str]] = frozenset()

    def __setattr__(self, name: str, value: Any) -> None:
        value = plain(value)
        if name in CALLED:
            self._check_method(name, value)
        if name in self.settable:
            learned = self.learnable.get(name)
            check_set(self, self.settable[name], name, value, learned, learns=name not in CONSTANT)
        elif name in self.switches and isinstance(vars(self).get(name), bool):
            check_flag(**{name: value})
        parted = name in self.fixed_beside_parameters and self.__dict__.get("_parameters")
        of = vars(self).get("_modules", {}).get(name)
        replaced = isinstance(of, FixedOnceBuilt) and of is not value
        changed = (name in self.fixed or parted) and vars(self).get(name, value) is not value
        if changed or replaced:
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
            named = inspect.signature(built).parameters
            in_reals = "dtype" in named
            if cls.__module__.startswith("posenc."):
                cls.switches |= {n for n, each in named.items() if isinstance(each.default, bool)}
                asked = {n: ASKED[n] for n in named if n in ASKED and n not in cls.fixed}
                cls.settable = MappingProxyType({**asked, **cls.settable})
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
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _check_learned(self, name: str) -> None:
        """Hold a number that learns to what is asked of it: steps and state dicts change it, too.

        It is a plain tensor where a ``functional_call`` or a parametrization gives it without a
        gradient.

        Raises:
            ValueError: It is something else by now.
        """
        value = getattr(self, name)
        if isinstance(value, Tensor) and may_look(value) and not captured(value):
            _check_one(self, name, value)
            if value.numel():
                self.learnable.get(name, self.settable[name])(**{name: value.item()})

    def _check_method(self, name: str, value: object) -> None:
        kind = type(self).__name__
        if not callable(value):
            return
        if name != "forward" and hasattr(type(self), name):  # tools that place models set forward
            raise AttributeError(
                f"{name} would be that of one object, and what reads the fields of a {kind}, as "
                f"kernels and caches do, would go on as before. Define it in a class that is "
                f"derived from {kind}."
            )

    def _check_still_real(self, told: str, before: Tensor, now: Tensor) -> None:
        if now.is_complex() and not before.is_complex():
            kind = type(self).__name__
            raise TypeError(
                f"{told} {now.dtype}; {kind} computes with reals, and imaginary parts would be "
                f"lost. Build another {kind}, with parameters in a floating dtype."
            )


def check_set(
    module: nn.Module,
    check: Callable[..., None],
    name: str,
    value: object,
    learned: Callable[..., None] | None = None,
    *,
    learns: bool = True,
) -> None:
    """Hold what is set on a module to what its constructor asks, where it is no module itself.

    A tensor that learns, or a frozen parameter, may take the place of a number, and holds one: what
    it is multiplied with would spread several along axes that are not meant. FSDP sets parts that
    hold none. What ``learned`` asks of it counts before ``check``; unless ``learns``, it is refused
    as any tensor. Rows have one number a head, and do not learn in classes of ours.

    Raises:
        ValueError: It holds several, or not what is asked, or a row has more or fewer than heads,
            or would learn nothing.
    """
    if isinstance(value, nn.Module):
        return
    is_row = check is check_numbers
    if learns and isinstance(value, Tensor) and _may_learn(value) and hasattr(module, name):
        (_check_row if is_row else _check_one)(module, name, value)
        if value.numel() == 0 or not may_look(value):
            return
        value = value.tolist() if is_row else value.item()
        check = learned or check
    check(**{name: value})
    if is_row and hasattr(module, name):
        _check_count(module, name, len(value))  # type: ignore[arg-type]


def _check_one(module: nn.Module, name: str, value: Tensor) -> None:
    if value.numel() > 1:
        raise ValueError(
            f"{name} is a tensor of shape {tuple(value.shape)}; it must be one number, which "
            f"{type(module).__name__} would spread along positions or keys otherwise. Set a "
            f"tensor of one element; heads that differ need an encoding of your own."
        )


def _check_row(module: nn.Module, name: str, value: Tensor) -> None:
    """Refuse one that would learn nothing, where our own class computes with its numbers."""
    if value.numel() and value.ndim == 1:
        _check_count(module, name, value.numel())
    kind = type(module)
    if value.requires_grad and kind.__module__.startswith("posenc."):
        raise ValueError(
            f"{name} would get no gradient: {kind.__name__} computes with the numbers that they "
            f"are. KERPLE learns its slopes; or set {name}.tolist()."
        )


def _check_count(module: nn.Module, name: str, count: int) -> None:
    heads = getattr(module, "heads", count)
    if count != heads:
        raise ValueError(
            f"{name} are {count} numbers; give {heads} of them, one a head. "
            f"{type(module).__name__} would spread or drop others."
        )


def _may_learn(value: Tensor) -> bool:
    return isinstance(value, nn.Parameter) or value.requires_grad


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
