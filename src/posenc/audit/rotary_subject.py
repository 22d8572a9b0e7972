"""How to call something that rotates queries and keys, or gives the cosines and sines to do so."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.audit.report import CannotCheckError

POSITION_NAMES = ("positions", "position_ids", "position", "pos", "input_pos", "pos_ids")
OFFSET_NAMES = ("offset", "start_pos", "start", "seq_offset", "past_length", "past_len")
METHODS = ("rotate_queries_or_keys", "apply_rotary", "rotate", "forward", "__call__")
WIDTHS = (64, 32, 128, 16)

Turn = Callable[[Any, Tensor, int], Tensor]


@dataclass(frozen=True)
class RotarySubject:
    """Something that turns ``[batch, heads, seq, head_dim]``.

    Attributes:
        make: Builds a fresh one.
        turn: Turns x with it, the first token standing at a position.
        width: Width of a head.
        moves: Whether the first position can be said.
        heads_first: Whether it takes heads before the sequence.
        how: How it was called.
    """

    make: Callable[[], Any]
    turn: Turn
    width: int
    moves: bool
    heads_first: bool
    how: str

    def turned(self, x: Tensor, start: int = 0, by: Any = None) -> Tensor:
        """x ``[batch, heads, seq, width]`` with its tokens at start, start + 1, …"""
        by = self.make() if by is None else by
        x = x if self.heads_first else x.transpose(1, 2)
        with torch.no_grad():
            made = self.turn(by, x, start)
        return made if self.heads_first else made.transpose(1, 2)

    def matrix(self, start: int, by: Any = None) -> Tensor:
        """What one token at ``start`` is multiplied with, ``[width, width]``, float64."""
        basis = torch.eye(self.width).reshape(self.width, 1, 1, self.width)
        if self.moves:
            return self.turned(basis, start, by)[:, 0, 0].double().mT
        rows = torch.zeros(self.width, 1, start + 1, self.width)
        rows[:, :, -1] = basis[:, :, 0]
        return self.turned(rows, 0, by)[:, 0, -1].double().mT

    @property
    def understood(self) -> str:
        """How it was called."""
        order = "[batch, heads, seq, head_dim]" if self.heads_first else (
            "[batch, seq, heads, head_dim]"
        )  # fmt: skip
        where = "at any first position" if self.moves else "from position 0 on"
        return f"rotates {order} of width {self.width} {where} ({self.how})"


def rotary_subject(make: Callable[[], Any], width: int | None) -> RotarySubject:
    """Find out how ``make()`` rotates.

    Raises:
        CannotCheckError: It does so in no way known here.
    """
    said: list[str] = []
    for some in (width,) if width else _widths(make()):
        for how, turn, moves in _ways(make()):
            x = torch.randn(2, 3, 5, some)
            try:
                with torch.no_grad():
                    made = turn(make(), x, 0)
            except Exception as error:
                said.append(f"{how}, width {some}: {type(error).__name__}: {error}")
                continue
            if (
                not isinstance(made, Tensor)
                or made.shape != x.shape
                or not _is_linear(make, turn, x)
            ):
                continue
            return RotarySubject(make, turn, some, moves, _heads_first(make, turn, some), how)
    raise CannotCheckError("; ".join(dict.fromkeys(said[:2])) or "it turns no queries")


def _widths(thing: Any) -> list[int]:
    found = []
    for part in thing.modules() if isinstance(thing, nn.Module) else [thing]:
        found += [getattr(part, name, None) for name in ("head_dim", "dim", "rotary_dim", "d")]
        if isinstance(part, nn.Module):
            found += [2 * t.shape[-1] for t in part.buffers() if t.ndim == 1]
    return [w for w in dict.fromkeys((*found, *WIDTHS)) if isinstance(w, int) and w > 1]


def _ways(thing: Any) -> list[tuple[str, Turn, bool]]:
    """The ways in which it may be called, those that say positions first."""
    ways: list[tuple[str, Turn, bool]] = []
    for name in METHODS:
        method = getattr(thing, name, None)
        if method is None or (name == "__call__" and isinstance(thing, nn.Module)):
            continue
        named = _parameters(method)
        label = getattr(thing, "__name__", type(thing).__name__)
        label = label if name in ("forward", "__call__") else f"{label}.{name}"
        for parameter in named:
            if parameter in POSITION_NAMES:
                ways.append((f"{label}(x, {parameter}=…)", _with_positions(name, parameter), True))
            if parameter in OFFSET_NAMES:
                ways.append((f"{label}(x, {parameter}=…)", _with_offset(name, parameter), True))
        ways.append((f"{label}(x)", _plainly(name), False))
        ways.append((f"{label}(q, k)", _in_pairs(name), False))
    return ways


def _parameters(method: Any) -> list[str]:
    try:
        return list(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return []


def _with_positions(name: str, parameter: str) -> Turn:
    def turn(thing: Any, x: Tensor, start: int) -> Tensor:
        for seq in (x.shape[2], x.shape[1]):
            positions = torch.arange(start, start + seq)
            for some in (positions, positions[None].expand(len(x), -1)):
                try:
                    return _applied(getattr(thing, name)(x, **{parameter: some}), x)
                except (RuntimeError, ValueError, IndexError, TypeError) as error:
                    problem = error
        raise problem

    return turn


def _with_offset(name: str, parameter: str) -> Turn:
    return lambda thing, x, start: _applied(getattr(thing, name)(x, **{parameter: start}), x)


def _plainly(name: str) -> Turn:
    return lambda thing, x, start: _applied(getattr(thing, name)(x), x)


def _in_pairs(name: str) -> Turn:
    return lambda thing, x, start: _applied(getattr(thing, name)(x, x), x)


def _applied(made: Any, x: Tensor) -> Tensor:
    """The turned queries; cosines and sines are applied to pairs of halves, as Llama does."""
    if isinstance(made, tuple) and len(made) == 2:
        first, second = made
        if first.shape == x.shape:
            return first
        if first.shape[-1] == second.shape[-1] == x.shape[-1] and first.ndim <= 3:
            cos, sin = (t.unsqueeze(-3) if t.ndim == 3 else t for t in (first, second))
            a, b = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-b, a), dim=-1) * sin
    if isinstance(made, Tensor):
        return made
    raise CannotCheckError(f"it gives {type(made).__name__}, which is no rotated query")


def _is_linear(make: Callable[[], Any], turn: Turn, x: Tensor) -> bool:
    with torch.no_grad():
        one, two = turn(make(), x, 0), turn(make(), 2 * x, 0)
    return bool((two - 2 * one).abs().max() < 1e-3 * one.abs().max())


def _heads_first(make: Callable[[], Any], turn: Turn, width: int) -> bool:
    x = torch.ones(2, 3, 5, width)
    with torch.no_grad():
        made = turn(make(), x, 0)
    along_heads = (made - made[:, :1]).abs().max()
    along_third = (made - made[:, :, :1]).abs().max()
    return bool(along_third > 0 or along_heads == 0)
