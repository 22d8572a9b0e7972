"""Exact rows for attention that keeps its own table of sines and cosines, and has no module."""

from collections.abc import Mapping
from threading import Lock, get_ident
from typing import Any

import torch
from torch import Tensor, nn

from posenc.interop.patching.angles import ALL, Changes, Rotation
from posenc.interop.patching.forms import ROWS
from posenc.transformer.tables import Tables


class SharedRows:
    """Rows of sines and cosines for all layers of a model.

    Where all positions are near, the table holds the rows of positions 0, 1, 2, …; otherwise it
    holds one row a token. So there is no longest position.

    Attributes:
        rotary: The encoding.
        tables: The kept rows.
    """

    def __init__(self, rotary: Rotation):
        self.rotary, self.tables = rotary, Tables()
        self._joined: tuple[Tensor, Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_joined": None}

    @torch.no_grad()
    def rows(self, positions: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """A table of rows, and which of them each token takes."""
        kept = self.tables.kept_rows(self.rotary, positions, dtype=dtype)
        if kept is None:
            table = self.rotary.table(positions.flatten(), dtype=dtype)
            places = torch.arange(positions.numel(), device=positions.device)
            return joined(table), places.view_as(positions)
        held = self._joined  # looked at once: another thread may put its own there
        if held is None or held[0] is not kept:
            held = self._joined = kept, joined(kept)
        return held[1], positions


class ExactRows:
    """A hook before attention: gives it rows of exact sines and cosines for its positions.

    Attention reads them from itself, so one thread at a time runs through it: another would find
    the rows of other tokens there.

    Attributes:
        shared: The rows.
        before: The table that attention had.
        changes: What was changed besides: objects, their fields, and what they held.
        turn: Who runs through attention.
    """

    def __init__(self, shared: SharedRows, before: Tensor):
        self.shared, self.before = shared, before
        self.changes: Changes = []
        self.turn = Turn()

    @property
    def rotaries(self) -> Mapping[str, Rotation]:
        """The encoding, by type of layers."""
        return {ALL: self.shared.rotary}

    def __call__(self, attention: nn.Module, inputs: tuple, named: dict[str, Any]) -> tuple:
        """Called before attention, with what it is called with.

        Raises:
            TypeError: Positions are not given by name.
        """
        positions = named.get("position_ids")
        if positions is None:
            raise TypeError(
                f"{type(attention).__name__} was called without position_ids by name, and the "
                f"patch needs them. Call the model as a whole, or undo it with unpatch(model)."
            )
        hidden = named["hidden_states"] if "hidden_states" in named else inputs[0]
        table, places = self.shared.rows(positions, hidden.dtype)
        if not torch.compiler.is_compiling():  # a graph hands its own rows on
            self.turn.take()
        attention.embed_positions = table
        return inputs, {**named, "position_ids": places}


class Turn:
    """A lock that the thread which holds it may take again: an interrupt may have left it so."""

    def __init__(self):
        self._lock, self._owner = Lock(), 0

    def __reduce__(self) -> tuple[type, tuple]:
        return Turn, ()  # a copy is held by nobody

    def take(self) -> None:
        """Wait until no other thread holds it."""
        if self._owner != get_ident():
            self._lock.acquire()
            self._owner = get_ident()

    def give(self, *_: Any) -> None:
        """Let others take it; also as a hook behind attention."""
        if not torch.compiler.is_compiling() and self._owner == get_ident():
            self._owner = 0
            self._lock.release()


def joined(table: Tensor) -> Tensor:
    """Rows of sines and cosines, ``[rows, width]``."""
    cos, sin = table.unbind(-2)
    return ROWS.write(cos, sin)  # type: ignore[return-value]
