"""The modules of a model that make angles of positions, and ours that stands in their place."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.guards import demand, graph_looks, may_look
from posenc.interop.oracle.encodings import Encoding, points_of
from posenc.transformer.tables import Tables

ALL = "all"
"""The name of the encoding of all layers, where they are alike."""

TAKEN = {"x", "hidden_states", "position_ids", "layer_type"}
"""What the forward pass of a rotary module takes."""

TABLE = "embed_positions"
"""The table that GPT-J and CodeGen keep in their attention."""

CASTS = (torch.bfloat16, torch.float16)

Angles = tuple[Tensor, Tensor] | Tensor
"""What a rotary module of a model returns."""

FORMS: dict[str, Callable[[Tensor, Tensor], Angles]] = {
    # Llama and most others
    "both halves": lambda cos, sin: (torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)),
    "half width": lambda cos, sin: (cos, sin),  # gpt-oss
    # Cohere
    "repeated": lambda cos, sin: (cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)),
    "complex": torch.complex,  # Llama 4, DeepSeek-V2
    "rows of a table": lambda cos, sin: torch.cat((sin, cos), -1),  # GPT-J and CodeGen
}
"""From cos and sin, one a pair, to what the model's code expects; which it is, is measured."""


@dataclass(frozen=True)
class Place:
    """A module that makes angles of positions: a rotary one, or attention with its own table."""

    path: str
    parent: nn.Module
    name: str  # in the parent
    module: nn.Module
    config: Any  # that it was built from; None where nothing holds one

    @property
    def keeps_rows(self) -> bool:
        """Whether this is attention with a table of its own."""
        return rows_of(self.module) is not None


def places_of(model: nn.Module) -> Iterator[Place]:
    """All places of a model."""
    for path, parent in model.named_modules():
        owner = getattr(parent, "config", None) or getattr(model, "config", None)
        for name, module in parent._modules.items():
            if module is not None and _makes_angles(module):
                config = getattr(module, "config", None) or owner
                yield Place(f"{path}.{name}".lstrip("."), parent, name, module, config)


def _makes_angles(module: nn.Module) -> bool:
    """Whether a module takes position ids, and has no parameters or keeps a table."""
    names = takes(module)
    if "position_ids" not in names or rows_of(module) is not None:
        return "position_ids" in names
    empty = next(module.parameters(), None) is None and next(module.children(), None) is None
    return empty and names <= TAKEN and len(names) > 1


def takes(module: nn.Module) -> set[str]:
    """The names of what the forward pass of a module takes."""
    return set(inspect.signature(type(module).forward).parameters) - {"self"}


def rows_of(module: nn.Module) -> int | None:
    """How many rows a table has that a module keeps; None without one."""
    table = module._buffers.get(TABLE)
    return None if table is None else len(table)


def sound(module: nn.Module, config: Any) -> nn.Module:
    """A copy on the CPU; built anew where casts or the meta device took its frequencies."""
    stored = {n: b for n, b in module.named_buffers() if b.is_floating_point()}
    if any(_lost(b, b) for b in stored.values()) and (anew := rebuilt(module, config)) is not None:
        fresh = dict(anew.named_buffers())
        if all(n in fresh and _lost(b, fresh[n]) for n, b in stored.items()):
            return anew
    return copy.deepcopy(module).cpu()


def _lost(stored: Tensor, fresh: Tensor) -> bool:
    """Whether a buffer may be what is left of another."""
    if stored.is_meta or stored.dtype in CASTS:
        return True
    return any(torch.equal(fresh.to(d).to(stored), stored) for d in CASTS)


def rebuilt(module: nn.Module, config: Any) -> nn.Module | None:
    """Another module of this class, from a configuration; None where its class takes more."""
    taken = inspect.signature(type(module)).parameters
    named = {"layer_idx": getattr(module, "layer_idx", 0)} if "layer_idx" in taken else {}
    try:
        with torch.device("cpu"):
            return type(module)(config, **named)
    except Exception:  # whatever a class raises of what it does not know
        return None


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
