"""What stands where a model has its rotary module or table, with cos and sin of exact phases."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.guards import demand, graph_looks, may_look
from posenc.interop.oracle.encodings import Encoding, points_of
from posenc.interop.oracle.modules import FORMS, Angles
from posenc.transformer.tables import Tables

ALL = "all"
"""The name of the encoding of all layers, where they are alike."""


class ExactAngles(nn.Module):
    """cos and sin of exact phases, in the form that was measured.

    It owns no tensors, so casts, checkpoints and the meta device leave it as it is. Rows are kept
    in ``tables``, outside of the state dict, and gathered by position.

    Attributes:
        rotaries: One encoding for all layers (under ``"all"``), or one a layer type.
        form: The arrangement in which the model takes cosines and sines, of ``FORMS``.
        dtype: Of what is returned; None for that of the hidden state.
        tables: The kept rows.
        replaced: The module that stood here before.
        reach: By layer type, the position from which on the model would rotate otherwise.
    """

    def __init__(
        self,
        rotaries: Mapping[str, Encoding],
        form: str,
        replaced: nn.Module,
        config: Any,
        dtype: torch.dtype | None = None,
        reach: Mapping[str, int] | None = None,
    ):
        super().__init__()
        self.rotaries = nn.ModuleDict(rotaries)
        self.form, self.dtype, self.config, self.reach = form, dtype, config, reach or {}
        self.tables = Tables()
        # Not a submodule: its buffers must not be cast or saved with ours.
        object.__setattr__(self, "replaced", replaced)

    @torch.no_grad()
    def forward(
        self,
        x: Tensor,
        position_ids: Int64[Tensor, "*axes rows seq"],
        layer_type: str | None = None,
    ) -> Angles:
        """cos and sin at ``[rows, seq]`` or ``[axes, rows, seq]``, rounded once to the dtype."""
        kind = ALL if ALL in self.rotaries else str(layer_type)
        rotary = self.rotaries[kind]
        if kind in self.reach:
            _check_reach(position_ids, self.reach[kind])
        points = points_of(rotary, position_ids)
        table = self.tables.rows(rotary, points, dtype=self.dtype or x.dtype)  # type: ignore[arg-type]
        return FORMS[self.form](*table.unbind(-2))

    def _save_to_state_dict(self, *given: Any, **named: Any) -> None:
        # ESM saves its frequencies; a checkpoint of a patched model has all keys of the model.
        self.replaced._save_to_state_dict(*given, **named)  # type: ignore[attr-defined]

    def _load_from_state_dict(self, *given: Any, **named: Any) -> None:
        self.replaced._load_from_state_dict(*given, **named)  # type: ignore[attr-defined]

    def extra_repr(self) -> str:
        """The form."""
        return f"form={self.form!r}"


def _check_reach(position_ids: Tensor, reach: int) -> None:
    said = (
        f"The angles of this patched model hold for {reach} positions: its rope type has other "
        f"frequencies for longer sequences. Patch it with length=…."
    )
    if graph_looks(position_ids):
        demand((position_ids < reach).all(), said)
    elif may_look(position_ids) and (position_ids >= reach).any():
        raise ValueError(said)
