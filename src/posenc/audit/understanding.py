"""How a subject is called: which adapter fits, and which fits better."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from posenc.audit.adapters import added, bias, expression, grid, rotary
from posenc.audit.report import AddsNothingError, CannotCheckError, NearlyError, NotAskedError
from posenc.audit.subjects import Subject

ACCEPTED = """it fits no form that is known here. Accepted are
  added:  f(x), f(x, positions), f(x, offset), f(positions), f(length, dim); x [batch, seq, dim],
          [seq, batch, dim], [seq, dim] or a grid
  rotary: f(x), f(q, k), f(q, k, positions), f(positions, q, k), f(q, k, cos, sin),
          f(q, k, freqs_cis), each with positions by keyword or an offset; a module that gives
          cosines and sines; x [batch, heads, seq, head_dim], [batch, seq, heads, head_dim],
          flattened, …; on a grid with positions [..., 2]
  bias:   f(q_len, k_len), f(length), compute_bias(q_len, k_len), f(scores),
          f(mask, heads, dtype), f(heads), f() of a module that says its number of heads; one that
          takes the sides of a window with kind="bias" and call="subject((8, 8))"
Say which: kind (--as), layout (--layout), dim (--dim), or the call itself:
call="subject(q, k, position_ids=p)". Of attention or a whole layer, check the part inside."""

ROTATING = ("rotate_queries_or_keys", "apply_rotary", "rotate", "rotate_queries_and_keys")
"""Methods that rotate, whatever a call of the thing itself gives."""

ADAPTERS: dict[str, Callable[..., Any]] = {
    "bias": bias.bias_of,
    "added": added.added_of,
    "rotary": rotary.rotary_of,
    "added, of one length": lambda *given: added.added_of(*given, fixed=True),
    "bias, loosely": lambda *given: bias.bias_of(*given, loosely=True),
}

TRIED = {
    "added": ("added", "added, of one length"),
    "rotary": ("rotary",),
    "bias": ("bias", "bias, loosely"),
    "table": ("added", "rotary"),
}
"""Which adapters are tried for a kind."""


def understood(
    subject: Subject, kind: str | None, layout: str | None, call: str | None, dim: int | None
) -> Any:
    """How a subject is called."""
    if call is not None:
        return expression.called(subject, call, layout, dim, kind)
    if kind is not None:
        names = TRIED[kind]
    elif any(callable(getattr(subject.fresh(), method, None)) for method in ROTATING):
        names = TRIED["rotary"]
    else:
        is_laid_out = layout is not None or dim is not None
        names = tuple(sorted(ADAPTERS, key=lambda each: is_laid_out and "bias" in each))
    nearly: NearlyError | None = None
    for name in names:
        try:
            view = ADAPTERS[name](subject, layout, dim)
        except AddsNothingError:
            raise
        except NearlyError as reason:
            nearly = nearly or reason
            continue
        except CannotCheckError:
            continue
        if nearly is not None and getattr(view, "by_guess", False):
            continue  # it was seen that what would be taken for positions is something else
        if kind is None and view.kind == "added":
            return _other_than_added(subject, view, layout, dim) or view
        return view
    if nearly is not None:
        raise CannotCheckError(f"it fits no form that is known here: {nearly}.")
    raise CannotCheckError(ACCEPTED if kind is None else f"as {kind} {ACCEPTED}")


def _other_than_added(subject: Subject, view: Any, layout: str | None, dim: int | None) -> Any:
    """What else it is that looks like a table or a sum, if it is.

    What slices and broadcasts takes positions for content too, and gives what looks like a table.
    Scores [batch, heads, q_len, k_len] by another name look like a map of height and width.
    """
    if view.by_guess:
        try:
            rotates = rotary.rotary_of(subject, layout, dim)
            return rotates if (rotary.measured(rotates) or 0) >= 2 else None
        except CannotCheckError:
            if next(grid.readings(subject, layout, dim), None):
                raise  # it is asked on a grid
    elif view.layout in added.GRIDS and not view.declared:
        with suppress(CannotCheckError, NotAskedError):
            found = bias.bias_of(subject, None, None, loosely=True)
            square = found.square(16)
            steps = (square[:, 1:, 1:] - square[:, :-1, :-1]).nan_to_num(0.0)
            return found if bool(steps.abs().max() < 1e-5) and bool(square.std() > 0) else None
    return None
