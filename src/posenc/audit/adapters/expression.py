"""A call that the user writes out: ``subject(q, k, position_ids=p)``."""

import ast
from collections.abc import Callable
from typing import Any

import torch

from posenc.audit.adapters import added, bias, rotary
from posenc.audit.adapters.calls import Call
from posenc.audit.report import AddsNothingError, CannotCheckError, NearlyError
from posenc.audit.signatures import Parameter
from posenc.audit.subjects import Subject

NAMES = {
    name: name for name in ("x", "q", "k", "positions", "offset", "q_len", "k_len", "scores",
                            "length", "dim", "heads")
} | {"p": "positions"}  # fmt: skip
"""The names that a call may use, and their roles."""

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

    def find(thing: Any) -> Callable[..., Any]:
        scope = {**subject.namespace, "torch": torch, "subject": thing}
        return lambda **named: eval(code, {**scope, **named})  # the user's own words

    if kind not in FORMS:
        of_scores = used & {"q_len", "k_len", "scores"}
        kind = "rotary" if used & {"q", "k"} else "bias" if of_scores else "added"
    roles = tuple(Parameter(name, NAMES[name], True) for name in sorted(used & set(NAMES)))
    call = Call(text, find, roles, written=True)
    try:
        view = FORMS[kind](subject, call, layout, dim)
    except (AddsNothingError, NearlyError):
        raise
    except CannotCheckError as reason:
        window = "" if roles else ", as --as bias of one for all tokens of a window"
        raise CannotCheckError(
            f"the call {text!r} gives none of the known results: {reason}. Say dim, layout or "
            f"kind, if they are others{window}"
        ) from None
    view.given = {"call": text, "kind": kind, **({"dim": dim} if dim else {})}
    return view
