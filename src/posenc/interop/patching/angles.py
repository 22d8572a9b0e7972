"""What stands where a model has its rotary module or table, with cos and sin of exact phases."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.guards import demand, graph_looks, may_look
from posenc.interop.changes import Changes
from posenc.interop.oracle.encodings import Encoding, points_of
from posenc.interop.patching.admission import ALL, GROWING, Admitted
from posenc.interop.patching.modules import FORMS, TABLE, Angles
from posenc.interop.patching.telling import Layers, stretched_length
from posenc.interop.rotary_config import RotaryLayer, layer_of
from posenc.transformer.tables import Tables

FAR = 2**20
"""Times a length: there every type that grows has grown."""


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
        reach: By layer type, the position from which on the model would rotate otherwise, or None.
    """

    def __init__(
        self,
        rotaries: Mapping[str, Encoding],
        form: str,
        replaced: nn.Module,
        config: Any,
        dtype: torch.dtype | None,
        reach: Mapping[str, int | None],
    ):
        super().__init__()
        self.rotaries = nn.ModuleDict(rotaries)
        self.form, self.dtype, self.config, self.reach = form, dtype, config, reach
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
        if (reach := self.reach[kind]) is not None:
            _check_reach(position_ids, reach)
        points = points_of(rotary, position_ids)
        table = self.tables.rows(rotary, points, dtype=self.dtype or x.dtype)  # type: ignore[arg-type]
        return FORMS[self.form](*table.unbind(-2))

    def _save_to_state_dict(self, *given: Any, **named: Any) -> None:
        # ESM saves its frequencies; a checkpoint of a patched model has all keys of the model.
        self.replaced._save_to_state_dict(*given, **named)  # type: ignore[attr-defined]

    def _load_from_state_dict(self, *given: Any, **named: Any) -> None:
        self.replaced._load_from_state_dict(*given, **named)  # type: ignore[attr-defined]


def _check_reach(position_ids: Tensor, reach: int) -> None:
    said = f"The angles of this patched model hold for {reach} positions. Patch it with length=…."
    if graph_looks(position_ids):
        demand((position_ids < reach).all(), said)
    elif may_look(position_ids) and (position_ids >= reach).any():
        raise ValueError(said)


def put(found: Admitted, layers: Layers, length: int | None, changes: Changes) -> ExactAngles:
    """Put ours in one place."""
    place = found.place
    angles = ExactAngles(
        {kind: layer.encoding for kind, layer in layers.items()},
        found.measurements[0].form,
        place.module,
        place.config,
        found.dtype,
        {kind: _holds_until(found, each, length) for kind, each in layers.items()},
    )
    if place.keeps_rows:
        before: Any = place.module._buffers[TABLE]
        rows = max(stretched_length(layers), length or 0, len(before))
        table = angles(before, torch.arange(rows, device=before.device))
        changes.set(place.module, TABLE, table)
    else:
        changes.set(place.parent, place.name, angles)
    return angles


def _holds_until(found: Admitted, layer: RotaryLayer, length: int | None) -> int | None:
    """From which position on the model itself would take other frequencies; None: from none."""
    longest = layer.rope.trained_length or layer.rope.longest
    if layer.rope.kind not in GROWING or longest is None:
        return None

    def at(n: int | None) -> str:
        return repr(layer_of(found.config, layer.layer_type, layer.rope, n).encoding)

    reach = max(length or 0, longest)
    return reach if at(length) == repr(layer.encoding) != at(FAR * reach) else None
