"""A call that the user writes out: ``subject(q, k, position_ids=p)``."""

import ast
import builtins
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import added, bias, layouts, rotary
from posenc.audit.adapters.calls import Call, witnessed
from posenc.audit.adapters.sizes import widths_of
from posenc.audit.report import CallFailedError, CannotCheckError, NearlyError
from posenc.audit.signatures import Parameter
from posenc.audit.subjects import Subject

NAMES = {
    name: name for name in ("x", "q", "k", "positions", "offset", "q_len", "k_len", "scores",
                            "length", "dim", "heads")
} | {"p": "positions"}  # fmt: skip
"""The names that a call may use, and their roles."""

ORDERS = {"rotary": layouts.LAYOUTS, "added": tuple(layouts.OF_EMBEDDINGS)[:3]}
FORMS = {"rotary": rotary.of_call, "added": added.of_call, "bias": bias.of_call}


def called(
    subject: Subject, text: str, layout: str | None, dim: int | None, kind: str | None
) -> Any:
    """The view of a call that is written out."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise CannotCheckError(f"the call {text!r} is no expression: {error.msg}") from None
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    code = compile(tree, "<call>", "eval")
    known = {"subject", "torch", *NAMES, *subject.namespace, *dir(builtins)}
    if strange := sorted(used - known):
        raise CannotCheckError(
            f"the call {text!r} uses {', '.join(strange)}; it may use subject, torch, "
            f"{', '.join(NAMES)} and what stands beside the subject"
        )

    def written(thing: Any, values: Mapping[str, Any]) -> Any:
        named = {name: values[role] for name, role in NAMES.items() if role in values}
        scope = {**subject.namespace, "torch": torch, "subject": thing, **named}
        given = {name: value for name, value in named.items() if name in used}
        return witnessed(lambda: eval(code, scope), given)  # the user's own words

    if kind not in FORMS:
        of_scores = used & {"q_len", "k_len", "scores"}
        kind = "rotary" if used & {"q", "k"} else "bias" if of_scores else "added"
    if kind != "bias" and not layouts.orders(layout, ORDERS[kind]):
        raise CannotCheckError(
            f"layout is {layout!r}; what is {kind} takes one of {', '.join(ORDERS[kind])} here"
        )
    roles = tuple(Parameter(name, NAMES[name], True) for name in sorted(used & set(NAMES)))
    call = Call(text, lambda thing: thing, roles, written=written)
    try:
        view = FORMS[kind](subject, call, layout, dim)
    except NearlyError:
        raise
    except CannotCheckError:
        raise CannotCheckError(_complaint(subject, call, dim)) from None
    view.given = {"call": text, "kind": kind, **({"dim": dim} if dim else {})}
    return view


def _complaint(subject: Subject, call: Call, dim: int | None) -> str:
    d = dim or widths_of(subject.fresh())[0]
    values = dict.fromkeys(("q", "k", "x"), torch.zeros(2, 4, 6, d)) | {
        "positions": torch.arange(6), "offset": 0, "q_len": 6, "k_len": 6, "length": 6, "dim": d,
        "heads": 8, "scores": torch.zeros(1, 8, 6, 6),
    }  # fmt: skip
    try:
        made = call(subject.fresh(), values)
    except CallFailedError as error:
        return f"the call {call.text!r} fails: {error}. Say dim and layout, if they are others"
    shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
    says = "" if call.roles else ". Say kind, as --as bias of one for all tokens of a window"
    return f"the call {call.text!r} gives {shape}, which is none of the known results{says}"
