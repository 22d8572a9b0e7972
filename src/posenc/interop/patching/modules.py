"""The modules of a live model that make angles of positions, and in which form they give them."""

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.interop.oracle.encodings import Encoding, bare, points_of

POSITIONS = (0, 1, 2, 3, 7, 30, 129, 511, 4_097, 65_537, 1_000_003)
"""Near, where every pair tells its frequency; and far, where slow ones do."""

FREQUENCY, VALUE = 4e-6, 2e-6
"""How far float32 frequencies of a model may be off, as a share; and its cosines and sines."""

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
    # gpt-oss
    "half width": lambda cos, sin: (cos, sin),
    # Cohere
    "repeated": lambda cos, sin: (cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)),
    # Llama 4, DeepSeek-V2
    "complex": torch.complex,
    # GPT-J and CodeGen, whose attention keeps a table
    "rows of a table": lambda cos, sin: torch.cat((sin, cos), -1),
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

    @property
    def takes_layer_type(self) -> bool:
        """Whether it is asked for layers of a type."""
        return "layer_type" in _taken(self.module)


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
    names = _taken(module)
    if "position_ids" not in names or rows_of(module) is not None:
        return "position_ids" in names
    empty = next(module.parameters(), None) is None and next(module.children(), None) is None
    return empty and names <= TAKEN and len(names) > 1


def _taken(module: nn.Module) -> set[str]:
    return set(inspect.signature(type(module).forward).parameters) - {"self"}


def rows_of(module: nn.Module) -> int | None:
    """How many rows a table has that a module keeps; None without one."""
    table = module._buffers.get(TABLE)
    return None if table is None else len(table)


def positions_for(encoding: Encoding, longest: int | None) -> Tensor:
    """Where to measure, ``[1, seq]`` or ``[axes, 1, seq]``: up to ``longest`` − 1."""
    near = POSITIONS if longest is None else [p for p in POSITIONS if p < longest - 1]
    row = torch.tensor([*near, *([] if longest is None else [longest - 1])])
    if not isinstance(encoding, MultimodalRotary):
        return row[None]
    return torch.stack([row.roll(2 * axis) for axis in range(len(encoding.sections))])[:, None]


def angles_of(
    module: nn.Module, positions: Tensor, layer_type: str | None, dtype: torch.dtype = torch.float32
) -> Angles:
    """What a module gives for a hidden state of a dtype, or its table has."""
    if (table := module._buffers.get(TABLE)) is not None:
        return table[positions]
    x = torch.zeros(1, positions.shape[-1], 1, dtype=dtype)
    named = {} if layer_type is None else {"layer_type": layer_type}
    with torch.no_grad():
        return module(x, positions, **named)


def real(angles: Angles) -> Tensor:
    """One tensor of real numbers: ``[2, …]`` where cosines and sines are apart, else ``[1, …]``."""
    if isinstance(angles, Tensor):
        return torch.stack((angles.real, angles.imag)) if angles.is_complex() else angles[None]
    return torch.stack([*angles])


def compared(given: Angles, encoding: Encoding, positions: Tensor) -> tuple[str, float]:
    """The form in which angles are those of an encoding, and how far they are off.

    Raises:
        ValueError: They are not, in no form.
    """
    table = encoding.table(points_of(encoding, positions), dtype=torch.float64)  # type: ignore[arg-type]
    allowed = _allowance(encoding, positions)
    theirs, tried = real(given).detach().cpu().double(), []
    for name, form in FORMS.items():
        arranged = form(*table.unbind(-2))
        if _shape(arranged) == _shape(given):
            ours = real(arranged)
            apart = (ours - theirs).abs()
            tried.append((name, ours, apart, apart - real(form(allowed, allowed))))
    if not tried:
        raise ValueError(f"it gives {_shape(given)[-1]}, which is no form of angles")
    name, ours, apart, excess = min(tried, key=lambda each: float(each[-1].max()))
    if excess.max() <= 0:
        return name, float(apart.max())
    place = tuple(map(int, torch.unravel_index(excess.argmax(), excess.shape)))
    where, which = positions[..., place[-2]].flatten().tolist(), ("cosines", "sines")[place[0]]
    own, meant = theirs[place], ours[place]
    raise ValueError(
        f"channel {place[-1]} of its {which} is {own:.6g} at {where}, and {meant:.6g} is meant"
    )


def _allowance(encoding: Encoding, positions: Tensor) -> Tensor:
    """How far float32 may be off, for each position and pair."""
    schedule = bare(encoding).frequencies
    speed = torch.tensor([abs(float(each)) for each in schedule.radians()], dtype=torch.float64)
    reach = positions.double() if positions.ndim == 2 else positions.double().amax(0)
    return schedule.attention_factor * (FREQUENCY * reach[..., None] * speed + VALUE)


def _shape(angles: Angles) -> tuple[bool, bool, tuple[int, ...]]:
    """Whether cosines and sines are one tensor, and a complex one, and its shape."""
    one = angles if isinstance(angles, Tensor) else angles[0]
    return one is angles, one.is_complex(), tuple(one.shape)


def sound(module: nn.Module, config: Any) -> nn.Module:
    """A copy on the CPU; built anew where casts or the meta device took its frequencies."""
    stored = {n: b for n, b in module.named_buffers() if b.is_floating_point()}
    if any(b.is_meta or _is_cast_of(b, b) for b in stored.values()):
        anew = rebuilt(module, config)
        fresh = {} if anew is None else dict(anew.named_buffers())
        if anew is not None and all(n in fresh and _lost(b, fresh[n]) for n, b in stored.items()):
            return anew
    return copy.deepcopy(module).cpu()


def _lost(stored: Tensor, fresh: Tensor) -> bool:
    """Whether a buffer may be what is left of another."""
    return stored.is_meta or stored.dtype in CASTS or _is_cast_of(stored, fresh)


def _is_cast_of(stored: Tensor, fresh: Tensor) -> bool:
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
