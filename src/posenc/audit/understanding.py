"""How a subject is called: as the user writes it out, or by the first adapter that fits."""

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from posenc.audit.adapters import added, bias, grid, rotary
from posenc.audit.adapters.calls import ROTATING, Call
from posenc.audit.report import AddsNothingError, CannotCheckError, NearlyError
from posenc.audit.signatures import Parameter
from posenc.audit.subjects import Subject

ACCEPTED = """it fits no form that is known here. Accepted are
  added:  f(x), f(x, positions), f(x, offset), f(positions), f(length, dim)
  rotary: f(x), f(q, k), f(q, k, positions or offset), f(q, k, cos, sin), f(q, k, freqs_cis);
          what gives cosines and sines
  bias:   f(q_len, k_len), f(length), f(scores), f(mask, heads), f(heads); f() and one that
          takes the sides of a window with kind="bias" and call="subject((8, 8))"
Say kind (--as), layout (--layout), dim (--dim), or call="subject(q, k, position_ids=p)". Of
attention or a whole layer, check the part inside."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "bias": bias.bias_of,
    "added": added.added_of,
    "rotary": rotary.rotary_of,
    "added, by guess": partial(added.added_of, guess=True),
    "added, of one length": partial(added.added_of, fixed=True),
}

KINDS = {"table": ("added", "rotary")}  # kinds that are one of several
KNOWN = ("added", "rotary", "bias", *KINDS)  # what a user may say that a subject is

# The names that a call may use, and their roles.
ROLES = ("x", "q", "k", "positions", "offset", "q_len", "k_len", "scores", "length", "dim", "heads")
NAMES = {"p": "positions"} | {role: role for role in ROLES}


def understood(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None
) -> Any:
    """How a subject is called."""
    if call is not None:
        return _called(subject, call, layout, dim, kind)
    rotates = any(callable(getattr(subject.fresh(), method, None)) for method in ROTATING)
    wanted = kind or ("rotary" if rotates else "")
    names = [n for n in ADAPTERS if n.startswith(KINDS.get(wanted, wanted))]
    if layout is not None or dim is not None:  # a bias has none
        names.sort(key=lambda name: name == "bias")
    nearly: NearlyError | None = None
    for name in names:
        try:
            view = ADAPTERS[name](subject, layout, dim)
        except AddsNothingError:
            raise
        except NearlyError as reason:
            nearly = nearly or reason
        except CannotCheckError:
            continue
        else:
            if view.by_guess and kind is None and next(grid.readings(subject, layout, dim), None):
                break  # to be asked on its grid
            if not (view.by_guess and nearly):  # what is taken for positions was something else
                return view
    if nearly is not None:
        raise CannotCheckError(f"it fits no form that is known here: {nearly}.")
    raise CannotCheckError(ACCEPTED if kind is None else f"as {kind} {ACCEPTED}")


def _called(
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

    if kind not in ("rotary", "added", "bias"):
        of_scores = used & {"q_len", "k_len", "scores"}
        kind = "rotary" if used & {"q", "k"} else "bias" if of_scores else "added"
    roles = tuple(Parameter(name, NAMES[name], True) for name in sorted(used & set(NAMES)))
    call = Call(text, find, roles, written=True)
    try:
        view = ADAPTERS[kind](subject, layout, dim, call)
    except (AddsNothingError, NearlyError):
        raise
    except CannotCheckError as reason:
        window = "" if roles else "; as --as bias of one for all tokens of a window"
        told = f"the call {text!r} gives no known result: {reason}. Say dim, layout or kind{window}"
        raise CannotCheckError(told) from None
    view.given = {"call": text, "kind": kind, **({"dim": dim} if dim else {})}
    return view
