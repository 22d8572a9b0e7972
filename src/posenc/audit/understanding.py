"""How a subject is called: which adapter fits, and which fits better."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from posenc.audit.adapters import added, bias, expression, grid, rotary
from posenc.audit.report import AddsNothingError, CannotCheckError, NearlyError
from posenc.audit.subjects import Subject

ACCEPTED = """it fits no form that is known here. Accepted are
  added:  f(x), f(x, positions), f(x, offset), f(positions), f(length, dim); x [batch, seq, dim],
          [seq, batch, dim], [seq, dim] or a grid
  rotary: f(x), f(q, k), f(q, k, positions), f(positions, q, k), f(q, k, cos, sin),
          f(q, k, freqs_cis), each with positions by keyword or an offset; a module that gives
          cosines and sines; x [batch, heads, seq, head_dim], [batch, seq, heads, head_dim],
          flattened, …; on a grid with positions [..., 2]
  bias:   f(q_len, k_len), f(length), compute_bias(q_len, k_len), f(scores),
          f(mask, heads, dtype), f(heads); f() and one that takes the sides of a window with
          kind="bias" and call="subject((8, 8))"
Say which: kind (--as), layout (--layout), dim (--dim), or the call itself:
call="subject(q, k, position_ids=p)". Of attention or a whole layer, check the part inside."""

ROTATING = ("rotate_queries_or_keys", "apply_rotary", "rotate", "rotate_queries_and_keys")
"""Methods that rotate, whatever a call of the thing itself gives."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "bias": bias.bias_of,
    "added": added.added_of,
    "rotary": rotary.rotary_of,
    "added, by guess": partial(added.added_of, guess=True),
    "added, of one length": partial(added.added_of, fixed=True),
}

TRIED = {
    "added": ("added", "added, by guess", "added, of one length"),
    "rotary": ("rotary",),
    "bias": ("bias",),
    "table": ("added", "added, by guess", "rotary"),
}
"""Which adapters are tried for a kind."""


def understood(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None
) -> Any:
    """How a subject is called."""
    if call is not None:
        return expression.called(subject, call, layout, dim, kind)
    names: Iterable[str] = ADAPTERS if kind is None else TRIED[kind]
    if kind is None and any(callable(getattr(subject.fresh(), each, None)) for each in ROTATING):
        names = TRIED["rotary"]
    elif layout is not None or dim is not None:
        names = sorted(names, key=lambda name: name == "bias")
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
            by_guess = getattr(view, "by_guess", False)
            if by_guess and kind is None and next(grid.readings(subject, layout, dim), None):
                break  # to be asked on its grid
            if not (by_guess and nearly):  # what is taken for positions was something else
                return view
    if nearly is not None:
        raise CannotCheckError(f"it fits no form that is known here: {nearly}.")
    raise CannotCheckError(ACCEPTED if kind is None else f"as {kind} {ACCEPTED}")
