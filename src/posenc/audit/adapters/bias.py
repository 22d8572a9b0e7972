"""How something is called that gives a bias for scores."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters.bias_view import SEQ, BiasView, Run
from posenc.audit.adapters.calls import Call, calls_of
from posenc.audit.adapters.sizes import has_zeros
from posenc.audit.report import (
    AddsNothingError,
    CallFailedError,
    CannotCheckError,
    NotAskedError,
)
from posenc.audit.signatures import role_of
from posenc.audit.subjects import GUESSES, Subject

FORMS = (
    {"q_len", "k_len"}, {"length"}, {"scores"}, {"mask"}, {"q_positions", "k_positions"},
    {"length", "heads"}, {"q_len", "k_len", "heads"}, {"mask", "heads"}, {"heads"},
)  # fmt: skip
LOOSE_FORMS = ({"q", "k"}, {"x"}, {"positions"}, set())
"""What other things are called with too, so that these are tried last."""

ONE_LENGTH = ({"length"}, {"length", "heads"}, {"mask"})
"""What takes one length, for queries and keys."""


class OtherShapeError(CallFailedError):
    """The thing answered in a shape that is no bias of so many queries and keys."""

    def __init__(self, said: str, made: Tensor) -> None:
        super().__init__(said)
        self.made = made


def bias_of(
    subject: Subject, _layout: str | None, _width: int | None, *, loosely: bool = False
) -> BiasView:
    """How something gives its bias."""
    for call in _calls(subject.fresh(), loosely):
        view = BiasView(subject, runner(subject, call), call.text, call.uses)
        if not measured(view) or (loosely and _takes_ids(view)):
            continue
        if view.takes or 1 < view.heads == heads_of(subject.fresh()):
            return view  # told no size, it may be a table, or a map of as many channels
    raise CannotCheckError("nothing that gives a bias for scores")


def _calls(thing: Any, loosely: bool) -> Iterator[Call]:
    for call in sorted(calls_of(thing), key=lambda each: each.name != "subject"):
        required = call.required - {"dtype"}
        if not required and "length" in call.roles:
            required = frozenset({"length"})
        if required in (LOOSE_FORMS if loosely else FORMS):
            yield call.using(*(role for role in required if role is not None))
        if loosely and len(call.required) == 2:  # two lengths by any names
            roles = iter(("q_len", "k_len"))
            two = (replace(p, role=next(roles)) if p.required else p for p in call.parameters)
            yield replace(call, parameters=tuple(two)).using("q_len", "k_len")


def of_call(subject: Subject, call: Call, _layout: str | None, _width: int | None) -> BiasView:
    """The bias of a call that is written out."""
    view = BiasView(subject, runner(subject, call), call.text, call.required)
    if not measured(view):
        raise CannotCheckError("nothing that gives a bias for scores")
    return view


def runner(subject: Subject, call: Call) -> Run:
    """A call for so many queries and keys."""
    said = call.said - {"dtype"}
    beside = call.using(*(role for role in call.uses if role), "dtype", "offset")
    gives_slopes = said == {"heads"} and call.written is None
    takes_one_length = said in ONE_LENGTH or (
        call.written is not None and not said & {"q_len", "scores"}
    )

    def given(
        thing: Any,
        q_len: int,
        k_len: int,
        dtype: torch.dtype,
        scores: Tensor | None = None,
        at: tuple[Tensor, Tensor] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        heads = heads_of(thing) or GUESSES["heads"]
        if q_len != k_len and takes_one_length:
            raise CallFailedError("it takes one length, for queries and keys")
        before = k_len - q_len
        blank = torch.zeros(1, heads, q_len, k_len, dtype=dtype)
        queries, keys = at or (torch.arange(before, k_len), torch.arange(k_len))
        values = {
            "q_len": q_len, "k_len": k_len, "length": k_len, "heads": heads, "dtype": dtype,
            "scores": blank if scores is None else scores, "x": blank.clone(),
            "mask": torch.ones(1, k_len, dtype=torch.long) if mask is None else mask.clone(),
            "offset": before, "q_positions": queries, "k_positions": keys, "positions": keys,
            "q": torch.zeros(1, heads, q_len, 16, dtype=dtype),
            "k": torch.zeros(1, heads, k_len, 16, dtype=dtype),
        }  # fmt: skip
        made = beside(thing, values)
        if not isinstance(made, Tensor) or not made.is_floating_point():
            raise CallFailedError(f"it gives {type(made).__name__}, no bias")
        if gives_slopes and made.numel() != heads:
            raise CallFailedError(f"it gives the shape {tuple(made.shape)}, no slopes")
        return made

    def run(
        thing: Any,
        q_len: int,
        k_len: int,
        dtype: torch.dtype,
        scores: Tensor | None = None,
        **more: Any,
    ) -> Tensor:
        made = given(thing, q_len, k_len, dtype, scores, **more)
        if more.get("mask") is not None or (scores is not None and len(scores) > 1):
            return made
        if gives_slopes:
            distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
            return -made.flatten().double()[:, None, None] * distance.abs()
        if made.shape == (q_len, q_len, q_len) and q_len == k_len and heads_last(q_len):
            return made.permute(2, 0, 1)
        return _shaped(made, q_len, k_len)

    def heads_last(heads: int) -> bool:
        """Where heads are as many as tokens, a row of one token more tells which axis is theirs."""
        seq = heads + 1
        try:
            return given(subject.fresh(), seq, seq, torch.float32).shape == (seq, seq, heads)
        except CallFailedError:
            return False

    return run


def heads_of(thing: Any) -> int | None:
    """The number of heads that a thing says."""
    said = vars(thing) if hasattr(thing, "__dict__") else {}
    numbers = (n for name, n in said.items() if isinstance(n, int) and role_of(name) == "heads")
    return next(numbers, None)


def _shaped(made: Tensor, q_len: int, k_len: int) -> Tensor:
    """``[heads, q_len or 1, k_len]`` from the shapes in which biases come."""
    if made.ndim < 2 or made.shape[-1] != k_len or made.shape[-2] not in (1, q_len):
        if made.ndim == 3 and made.shape[:2] == (q_len, k_len):
            return made.permute(2, 0, 1)
        raise OtherShapeError(f"for {q_len} × {k_len} it gives {tuple(made.shape)}", made)
    if made.ndim > 4 or (made.ndim == 4 and made.shape[0] != 1):
        raise CallFailedError(f"it gives the shape {tuple(made.shape)}")
    return made.reshape(-1, *made.shape[-2:])


def measured(view: BiasView) -> bool:
    """Whether it is a bias: numbers for each query and key, whatever the content."""
    for seq, alone in ((SEQ, False), *((size, True) for size in _sizes(view))):
        try:
            made = view.bias(seq, seq)
            if not alone:
                view.bias(SEQ + 1, SEQ + 1)
        except NotAskedError:
            continue
        if alone and _is_a_table(view, made):
            continue
        if not made.any() and has_zeros(view.subject.fresh()):
            raise AddsNothingError(
                "its bias is 0, as where a table is still of zeros; give it numbers first"
            )
        view.heads = len(made)
        view.slopes_only = view.takes == {"heads"} and made.dtype == torch.float64
        view.fixed = seq if alone else None
        view.key_only = bool((made == made[:, :1]).all())
        with suppress(NotAskedError):
            view.bias(1, SEQ + 3)
            view.rows = not view.fixed
        return True
    return False


def _is_a_table(view: BiasView, made: Tensor) -> bool:
    """Whether what has the shape of a bias is a table of rows as wide as they are many.

    Of fewer rows it gives fewer, as wide as before; or the number of rows is added to all of it.
    """
    seq = made.shape[-1]
    try:
        view.bias(seq - 1, seq - 1)
    except OtherShapeError as other:
        if other.made.numel() == made.numel():
            return not torch.equal(other.made.reshape(made.shape), made)
        return other.made.shape[-2:] == (seq - 1, seq)
    except NotAskedError:
        pass
    return False


def _takes_ids(view: BiasView) -> bool:
    """Whether equal positions receive unlike numbers, and others than those of a row: as ids do."""
    seq = view.fixed or SEQ
    alike = torch.zeros(seq, dtype=torch.long)
    try:
        made = view.run(view.subject.fresh(), seq, seq, torch.float32, at=(alike, alike))
    except NotAskedError:
        return False
    seen = made.isfinite()
    most, least = made.masked_fill(~seen, -torch.inf), made.masked_fill(~seen, torch.inf)
    unlike = bool((most.amax((1, 2)) > least.amin((1, 2))).any())
    return unlike and not torch.equal(made.nan_to_num(), view.bias(seq, seq).nan_to_num())


def _sizes(view: BiasView) -> Iterator[int]:
    """Numbers of tokens for which a module with windows or a fixed length is built."""
    if not view.takes:
        try:
            yield view.bias(SEQ, SEQ).shape[-1]
        except OtherShapeError as other:
            if other.made.ndim > 1:
                yield other.made.shape[-1]
        except NotAskedError:
            pass
        return
    thing = view.subject.fresh()
    for name, value in vars(thing).items() if hasattr(thing, "__dict__") else ():
        if "window" in name or role_of(name) == "length":
            sides = value if isinstance(value, tuple | list) else (value,)
            if all(isinstance(side, int) for side in sides):
                yield sides[0] * sides[-1] if "window" in name else sides[0]
