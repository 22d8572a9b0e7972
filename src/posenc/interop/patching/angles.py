"""Stands where a model has its rotary module, and gives cos and sin of exact phases."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.guards import demand, graph_looks, may_look
from posenc.interop.patching.forms import Angles, Form
from posenc.transformer.tables import Tables

Rotation = Rotary | MultimodalRotary

Changes = list[tuple[Any, str, Any]]
"""Objects whose fields were changed, the fields, and what they held."""

ALL = "all"
"""The name of the encoding of all layers, where they are alike."""


class ExactAngles(nn.Module):
    """cos and sin of exact phases, in the form that was measured.

    It owns no tensors: no cast, checkpoint or meta device can damage it. Rows are kept visibly in
    ``tables``, outside of the state dict, and gathered by position.

    Attributes:
        rotaries: One encoding for all layers (under ``"all"``), or one a layer type.
        form: The arrangement in which the model takes cosines and sines.
        dtype: Of what is returned; None for that of the hidden state.
        tables: The kept rows.
        replaced: The module that stood here before; no part of this one.
        changes: What was changed besides: objects, their fields, and what they held.
        reach: By type of layers, the position from which on the model would turn otherwise.
    """

    def __init__(
        self,
        rotaries: Mapping[str, Rotation],
        form: Form,
        replaced: nn.Module,
        config: Any,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.rotaries = nn.ModuleDict(rotaries)
        self.form, self.dtype, self.config = form, dtype, config
        self.tables = Tables()
        # Past nn.Module's bookkeeping: its buffers must not be cast or saved with ours.
        object.__setattr__(self, "replaced", replaced)
        self.changes: Changes = []
        self.reach: dict[str, int] = {}

    @torch.no_grad()
    def forward(
        self,
        x: Tensor,
        position_ids: Int64[Tensor, "*axes rows seq"],
        layer_type: str | None = None,
    ) -> Angles:
        """cos and sin in the form of the model, rounded once to the dtype that it has them in.

        Positions by axis come as ``[axes, rows, seq]``, and one row of them for all axes alike.

        Raises:
            ValueError: Positions reach further than the frequencies of this rope type.
        """
        kind = ALL if ALL in self.rotaries else str(layer_type)
        rotary = self.rotaries[kind]
        if kind in self.reach:
            check_reach(position_ids, self.reach[kind])
        points = points_of(rotary, position_ids)
        table = self.tables.rows(rotary, points, dtype=self.dtype or x.dtype)  # type: ignore[arg-type]
        cos, sin = table.unbind(-2)
        return self.form.write(cos, sin)

    def _save_to_state_dict(self, *given: Any, **named: Any) -> None:
        # ESM saves its frequencies; a checkpoint of a patched model has all keys of the model.
        self.replaced._save_to_state_dict(*given, **named)  # type: ignore[attr-defined]

    def _load_from_state_dict(self, *given: Any, **named: Any) -> None:
        self.replaced._load_from_state_dict(*given, **named)  # type: ignore[attr-defined]

    def extra_repr(self) -> str:
        """The form."""
        return f"form={self.form.name!r}"


def check_reach(position_ids: Tensor, reach: int) -> None:
    """Refuse positions for which the model itself would take other frequencies.

    Raises:
        ValueError: There is one. Inside a graph a RuntimeError.
    """
    if graph_looks(position_ids):
        within = (position_ids < reach).all()
        demand(within, f"position_ids go beyond the {reach} positions of this patched model.")
    if not may_look(position_ids) or not position_ids.numel():
        return
    if (last := int(position_ids.max())) >= reach:
        raise ValueError(
            f"position_ids go up to {last}, and the angles of this patched model hold for {reach} "
            f"positions: its rope type (dynamic, longrope) has other frequencies for longer "
            f"sequences. Say how long they become: unpatch(model), then patch(model, length=…)."
        )


def points_of(rotary: nn.Module, position_ids: Tensor) -> Tensor:
    """Positions as an encoding takes them: with one coordinate an axis last, where it has axes."""
    if not isinstance(rotary, MultimodalRotary):
        return position_ids
    if position_ids.ndim == 2:
        return position_ids[..., None].expand(*position_ids.shape, len(rotary.sections))
    return position_ids.movedim(0, -1)
