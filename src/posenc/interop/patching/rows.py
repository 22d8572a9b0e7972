"""Exact rows for attention that keeps its own table of sines and cosines, and has no module."""

from collections.abc import Mapping
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
        if self._joined is None or self._joined[0] is not kept:
            self._joined = kept, joined(kept)
        return self._joined[1], positions


class ExactRows:
    """A hook before attention: gives it rows of exact sines and cosines for its positions.

    Attributes:
        shared: The rows.
        before: The table that attention had.
        changes: What was changed besides: objects, their fields, and what they held.
    """

    def __init__(self, shared: SharedRows, before: Tensor):
        self.shared, self.before = shared, before
        self.changes: Changes = []

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
        attention.embed_positions, places = self.shared.rows(positions, hidden.dtype)
        return inputs, {**named, "position_ids": places}


def joined(table: Tensor) -> Tensor:
    """Rows of sines and cosines, ``[rows, width]``."""
    cos, sin = table.unbind(-2)
    return ROWS.write(cos, sin)  # type: ignore[return-value]
