"""A call that the user writes out: ``subject(q, k, position_ids=p)``."""

import ast
import builtins
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.audit.adapters import added, added_layouts, bias, layouts, rotary
from posenc.audit.adapters.calls import as_tensor, widths_of, witnessed
from posenc.audit.adapters.rotary_view import RotaryView
from posenc.audit.report import CallFailedError, CannotCheckError
from posenc.audit.subjects import GUESSES, Subject

NAMES = (
    "x",
    "q",
    "k",
    "p",
    "positions",
    "offset",
    "q_len",
    "k_len",
    "scores",
    "length",
    "dim",
    "heads",
)


def called(
    subject: Subject, text: str, layout: str | None, dim: int | None, kind: str | None
) -> Any:
    """The view of a call that is written out.

    Raises:
        CannotCheckError: It is no expression, uses other names, or does not work.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise CannotCheckError(f"the call {text!r} is no expression: {error.msg}") from None
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    code = compile(tree, "<call>", "eval")
    known = {"subject", "torch", *NAMES}
    if strange := sorted(used - known - set(subject.namespace) - set(dir(builtins))):
        raise CannotCheckError(
            f"the call {text!r} uses {', '.join(strange)}; it may use subject, torch, "
            f"{', '.join(NAMES)} "
            f"and what stands beside the subject"
        )

    def evaluate(thing: Any, values: dict[str, Any]) -> Any:
        scope = {**subject.namespace, "torch": torch, "subject": thing, **values}
        given = {name: value for name, value in values.items() if name in used}
        return as_tensor(witnessed(lambda: eval(code, scope), given))  # the user's own words

    kind = kind if kind in ("added", "rotary", "bias") else _kind(used)
    if kind != "bias" and not layouts.orders(layout, ORDERS[kind]):
        raise CannotCheckError(
            f"layout is {layout!r}; what is {kind} takes one of {', '.join(ORDERS[kind])} here"
        )
    made = FORMS[kind](subject, evaluate, text, used, layout, dim)
    if made is None:
        _complain(subject, evaluate, text, used, dim)
    return made


def _kind(used: set[str]) -> str:
    if used & {"q", "k"}:
        return "rotary"
    return "bias" if used & {"q_len", "k_len", "scores"} else "added"


def _complain(
    subject: Subject, evaluate: Callable[..., Any], text: str, used: set[str], dim: int | None
) -> None:
    d = dim or widths_of(subject.fresh())[0]
    q = torch.zeros(2, 4, 6, d)
    values = dict.fromkeys(("q", "k", "x"), q) | {
        "p": torch.arange(6), "positions": torch.arange(6), "offset": 0, "q_len": 6, "k_len": 6,
        "length": 6, "dim": d, "heads": 8, "scores": torch.zeros(1, 8, 6, 6),
    }  # fmt: skip
    try:
        made = evaluate(subject.fresh(), values)
    except CallFailedError as error:
        raise CannotCheckError(
            f"the call {text!r} fails: {error}. Say dim and layout, if they are others"
        ) from None
    shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
    says_none = not used & set(NAMES)
    raise CannotCheckError(
        f"the call {text!r} gives {shape}, which is none of the known results"
        + (". Say kind, as --as bias of one for all tokens of a window" if says_none else "")
    )


def _rotary(
    subject: Subject,
    evaluate: Callable[..., Any],
    text: str,
    used: set[str],
    layout: str | None,
    dim: int | None,
) -> Any:
    pairs = "k" in used
    moves = (
        ["rows", "line"] if used & {"p", "positions"} else ["offset"] if "offset" in used else [""]
    )
    best = None
    for order in layouts.orders(layout, layouts.LAYOUTS):
        for way in moves:
            for width in (dim,) if dim else widths_of(subject.fresh())[:8]:
                run = _rotary_run(evaluate, order, way, pairs)
                view = RotaryView(
                    subject,
                    run,
                    text,
                    width,
                    order,
                    layout is not None,
                    way,
                    pairs,
                    2 if pairs else 4,
                )
                try:
                    fit = rotary.measured(view)
                    if fit is None and pairs:
                        view.kv_heads = 4
                        fit = rotary.measured(view)
                except CallFailedError:
                    continue
                if fit is not None and (best is None or fit > best[0]):
                    best = fit, view
    return best and best[1]


def _rotary_run(evaluate: Callable[..., Any], order: str, way: str, pairs: bool) -> Any:
    def run(thing: Any, q: Tensor, k: Tensor, positions: Tensor) -> Any:
        shapes = list(layouts.said_positions(positions, order, q.shape[1]))
        if order in layouts.ONE_ROW:
            shapes = [positions[0]]
        if way == "line" and shapes[-1].ndim != 1:
            raise CallFailedError("it takes one position a token, for all rows alike")
        p = shapes[-1] if way == "line" else shapes[0]
        values = {
            "q": layouts.laid_out(q, order), "k": layouts.laid_out(k, order),
            "x": layouts.laid_out(q, order), "p": p, "positions": p, "offset": int(positions[0, 0]),
            "length": int(positions.max()) + 1, "dim": q.shape[-1],
        }  # fmt: skip
        made = evaluate(thing, values)
        if isinstance(made, tuple) and pairs and len(made) >= 2:
            return layouts.taken_back(made[0], order, q), layouts.taken_back(made[1], order, k)
        return layouts.taken_back(made, order, q), None

    return run


def _added(
    subject: Subject,
    evaluate: Callable[..., Any],
    text: str,
    used: set[str],
    layout: str | None,
    dim: int | None,
) -> Any:
    best = None
    for order in layouts.orders(layout, added_layouts.LAYOUTS[:3]) if "x" in used else ("sd",):
        for width in (dim,) if dim else widths_of(subject.fresh())[:8]:

            def run(thing: Any, x: Tensor, positions: Tensor | None, order: str = order) -> Tensor:
                seq = x.shape[1]
                line = torch.arange(seq) if positions is None else positions
                values = {
                    "x": added_layouts.laid_out(x, order, (1, seq)), "p": line, "positions": line,
                    "offset": int(line.flatten()[0]), "length": seq, "dim": x.shape[2],
                }  # fmt: skip
                made = evaluate(thing, values)
                if not isinstance(made, Tensor):
                    raise CallFailedError(f"it gives {type(made).__name__}")
                return added_layouts.taken_back(made, order, seq, x.shape[2])

            moves = (
                "positions" if used & {"p", "positions"} else "offset" if "offset" in used else None
            )
            view = added.Added(subject, run, text, width, order, layout is not None, moves, None)
            try:
                found = added._measured(view)
            except CallFailedError:
                continue
            if found is not None and (best is None or found.fit > best.fit):
                best = found
    return best and best.view


def _bias(
    subject: Subject,
    evaluate: Callable[..., Any],
    text: str,
    used: set[str],
    layout: str | None,
    dim: int | None,
) -> Any:
    def run(
        thing: Any, q_len: int, k_len: int, dtype: torch.dtype, scores: Tensor | None = None
    ) -> Tensor:
        heads = bias.heads_of(thing) or GUESSES["heads"]
        blank = torch.zeros(1, heads, q_len, k_len, dtype=dtype)
        values = {
            "q_len": q_len, "k_len": k_len, "length": k_len, "heads": heads,
            "offset": k_len - q_len,
            "scores": blank if scores is None else scores, "p": torch.arange(k_len),
        }  # fmt: skip
        if not used & {"q_len", "scores"} and q_len != k_len:
            raise CallFailedError("it takes one length, for queries and keys")
        made = evaluate(thing, values)
        if not isinstance(made, Tensor):
            raise CallFailedError(f"it gives {type(made).__name__}, no bias")
        if scores is not None and len(scores) > 1:
            return made
        return bias._shaped(made, q_len, k_len)

    view = bias.BiasView(
        subject, run, text, takes_scores="scores" in used, says_no_size=not used & set(NAMES)
    )
    return view if bias._measured(view) else None


ORDERS = {"rotary": layouts.LAYOUTS, "added": added_layouts.LAYOUTS[:3]}
FORMS: dict[str, Callable[..., Any]] = {"rotary": _rotary, "added": _added, "bias": _bias}
