"""The rotary modules of a model, what they give at several positions, and which form that has."""

import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from math import tau
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.interop.patching.angles import ExactAngles, ExactRows
from posenc.interop.patching.forms import FORMS, Angles
from posenc.interop.patching.rotations import Rotation, bare, points_of

POSITIONS = (0, 1, 2, 3, 7, 30, 129, 511, 4_097, 65_537, 1_000_003)
"""Near, where every pair tells its frequency; and far, where slow ones do."""

FREQUENCY, VALUE = 4e-6, 2e-6
"""How far float32 frequencies of a model may be off, as a share; and its cosines and sines."""

TAKEN = {"x", "hidden_states", "position_ids", "layer_type"}
"""What the forward pass of a rotary module takes."""

TABLE, ROWS = "embed_positions", "posenc_rows"
"""The table that GPT-J and CodeGen keep in their attention, and what stands beside it once ours."""

CASTS = (torch.bfloat16, torch.float16)


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
        return _keeps_rows(self.module)

    @property
    def takes_layer_type(self) -> bool:
        """Whether it is asked for layers of a type."""
        return "layer_type" in _taken(self.module)

    @property
    def ours(self) -> ExactAngles | ExactRows | None:
        """What was put there; None where the model is not patched."""
        return self.module if isinstance(self.module, ExactAngles) else vars(self.module).get(ROWS)


def places_of(model: nn.Module) -> Iterator[Place]:
    """All places of a model, ours where it is patched."""
    for path, parent in model.named_modules():
        owner = getattr(parent, "config", None) or getattr(model, "config", None)
        for name, module in parent._modules.items():
            if module is not None and (_is_rotary(module) or _keeps_rows(module)):
                config = getattr(module, "config", None) or owner
                yield Place(f"{path}.{name}".lstrip("."), parent, name, module, config)


def _is_rotary(module: nn.Module) -> bool:
    """Whether a module has no parameters and makes angles of positions."""
    if isinstance(module, ExactAngles):
        return True
    if next(module.parameters(), None) is not None or next(module.children(), None) is not None:
        return False
    names = _taken(module)
    return "position_ids" in names and names <= TAKEN and len(names) > 1


def _keeps_rows(module: nn.Module) -> bool:
    table = module._buffers.get(TABLE)
    return table is not None and table.ndim == 2 and "position_ids" in _taken(module)


def _taken(module: nn.Module) -> set[str]:
    return set(inspect.signature(type(module).forward).parameters) - {"self"}


def positions_for(rotation: Rotation, longest: int | None) -> Tensor:
    """Where to measure, ``[1, seq]`` or ``[axes, 1, seq]``: up to ``longest`` − 1."""
    near = POSITIONS if longest is None else [p for p in POSITIONS if p < longest - 1]
    row = torch.tensor([*near, *([] if longest is None else [longest - 1])])
    if not isinstance(rotation, MultimodalRotary):
        return row[None]
    return torch.stack([row.roll(2 * axis) for axis in range(len(rotation.sections))])[:, None]


def asked(
    module: nn.Module, positions: Tensor, layer_type: str | None, dtype: torch.dtype = torch.float32
) -> Angles:
    """What a module gives for a hidden state of a dtype."""
    x = torch.zeros(1, positions.shape[-1], 1, dtype=dtype)
    named = {} if layer_type is None else {"layer_type": layer_type}
    with torch.no_grad():
        return module(x, positions, **named)


def parts(angles: Angles) -> list[Tensor]:
    """Real tensors of what a module gave, two of each complex one."""
    found = angles if isinstance(angles, tuple | list) else (angles,)
    real = [x.detach() for x in found]
    return [r for x in real for r in ((x.real, x.imag) if x.is_complex() else (x,))]


def compared(given: Angles, rotation: Rotation, positions: Tensor) -> tuple[str | None, float, str]:
    """The form in which ``given`` is what a rotation gives at positions, and how far it is off.

    Without such a form, None and what differs.
    """
    table = rotation.table(points_of(rotation, positions), dtype=torch.float64)  # type: ignore[arg-type]
    allowed = _allowance(rotation, positions)
    theirs = [x.cpu().double() for x in parts(given)]
    shapes = " and ".join(str(shape) for _, shape in _shapes(given))
    worst = float("inf"), f"it gives {shapes}, which is no form of angles"
    for name, form in FORMS.items():
        arranged = form(*table.unbind(-2))
        if _shapes(arranged) != _shapes(given):
            continue
        ours, within = parts(arranged), parts(form(allowed, allowed))
        apart = torch.stack([(a - b).abs() for a, b in zip(ours, theirs, strict=True)])
        excess, difference = apart - torch.stack(within), float(apart.max())
        if bool((excess <= 0).all()):
            return name, difference, ""
        if difference < worst[0]:
            worst = difference, _told(ours, theirs, excess, positions)
    return None, *worst


def _allowance(rotation: Rotation, positions: Tensor) -> Tensor:
    """How far float32 may be off, for each position and pair."""
    schedule = bare(rotation).frequencies
    turns = [abs(each) / 2**192 for each in schedule.turns()]
    speed = tau * torch.tensor(turns, dtype=torch.float64)
    reach = positions.double() if positions.ndim == 2 else positions.double().amax(0)
    return schedule.attention_factor * (FREQUENCY * reach[..., None] * speed + VALUE)


def _told(ours: list[Tensor], theirs: list[Tensor], excess: Tensor, positions: Tensor) -> str:
    part, _, token, channel = (int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
    return (
        f"at position {positions[..., token].flatten().tolist()} channel {channel} of its "
        f"{('cosines', 'sines')[part % 2]} is {float(theirs[part][0, token, channel]):.6g}, and by "
        f"its configuration {float(ours[part][0, token, channel]):.6g}"
    )


def _shapes(given: Angles) -> list[tuple[bool, tuple[int, ...]]]:
    """Of each tensor whether it is complex, and its shape."""
    found = given if isinstance(given, tuple | list) else (given,)
    return [(x.is_complex(), tuple(x.shape)) for x in found]


def sound(module: nn.Module, config: Any) -> nn.Module:
    """A copy on the CPU; built anew where casts or the meta device took its frequencies."""
    stored = {n: b for n, b in module.named_buffers() if b.is_floating_point()}
    lost = any(b.is_meta or b.dtype in CASTS for b in stored.values())
    cast = lost or any((b.to(d).to(b.dtype) == b).all() for b in stored.values() for d in CASTS)
    anew = rebuilt(module, config) if cast else None
    if anew is None and lost:
        raise ValueError(f"The frequencies of {type(module).__name__} were cast, or are not there.")
    fresh = dict(anew.named_buffers()) if anew is not None else {}
    if lost or (fresh and all(n in fresh and _is_cast_of(b, fresh[n]) for n, b in stored.items())):
        assert anew is not None
        return anew
    return copy.deepcopy(module).cpu()


def rebuilt(module: nn.Module, config: Any) -> nn.Module | None:
    """Another module of this class, from a configuration; None where its class takes more."""
    spread = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    taken = dict(inspect.signature(type(module)).parameters)
    named = {"layer_idx": getattr(module, "layer_idx", 0)} if "layer_idx" in taken else {}
    needed = {n for n, p in taken.items() if p.default is p.empty and p.kind not in spread}
    if config is None or len(needed - set(named)) > 1:
        return None
    with torch.device("cpu"):
        return type(module)(config, **named)


def _is_cast_of(stored: Tensor, fresh: Tensor) -> bool:
    return any(torch.equal(fresh.to(d).to(stored.dtype), stored.cpu()) for d in CASTS)
