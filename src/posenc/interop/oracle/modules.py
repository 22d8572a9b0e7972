"""The modules of a live model that make angles of positions, and in which form they give them."""

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import tau
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
        return self.module._buffers.get(TABLE) is not None

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
    names, table = _taken(module), module._buffers.get(TABLE)
    if "position_ids" not in names:
        return False
    if table is not None:
        return table.ndim == 2
    empty = next(module.parameters(), None) is None and next(module.children(), None) is None
    return empty and names <= TAKEN and len(names) > 1


def _taken(module: nn.Module) -> set[str]:
    return set(inspect.signature(type(module).forward).parameters) - {"self"}


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


def compared(given: Angles, encoding: Encoding, positions: Tensor) -> tuple[str, float]:
    """The form in which angles are those of an encoding, and how far they are off.

    Raises:
        ValueError: They are not, in no form.
    """
    table = encoding.table(points_of(encoding, positions), dtype=torch.float64)  # type: ignore[arg-type]
    allowed = _allowance(encoding, positions)
    theirs, tried = [x.cpu().double() for x in parts(given)], []
    for name, form in FORMS.items():
        arranged = form(*table.unbind(-2))
        if _shapes(arranged) == _shapes(given):
            pairs = zip(parts(arranged), theirs, strict=True)
            apart = torch.stack([(a - b).abs() for a, b in pairs])
            excess = apart - torch.stack(parts(form(allowed, allowed)))
            tried.append((float(excess.max()), name, float(apart.max()), excess))
    if not tried:
        shapes = " and ".join(str(shape) for _, shape in _shapes(given))
        raise ValueError(f"it gives {shapes}, which is no form of angles")
    most, name, difference, excess = min(tried, key=lambda each: each[0])
    if most <= 0:
        return name, difference
    place = tuple(map(int, torch.unravel_index(excess.argmax(), excess.shape)))
    ours = parts(FORMS[name](*table.unbind(-2)))[place[0]][place[1:]]
    raise ValueError(
        f"at position {positions[..., place[-2]].flatten().tolist()} channel {place[-1]} of its "
        f"{('cosines', 'sines')[place[0] % 2]} is {theirs[place[0]][place[1:]]:.6g}, and by its "
        f"configuration {ours:.6g}"
    )


def _allowance(encoding: Encoding, positions: Tensor) -> Tensor:
    """How far float32 may be off, for each position and pair."""
    schedule = bare(encoding).frequencies
    turns = [abs(each) / 2**192 for each in schedule.turns()]
    speed = tau * torch.tensor(turns, dtype=torch.float64)
    reach = positions.double() if positions.ndim == 2 else positions.double().amax(0)
    return schedule.attention_factor * (FREQUENCY * reach[..., None] * speed + VALUE)


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
        raise ValueError(f"the frequencies of {type(module).__name__} were cast, or are not there")
    fresh = dict(anew.named_buffers()) if anew is not None else {}
    if anew is not None and (
        lost or (fresh and all(n in fresh and _is_cast_of(b, fresh[n]) for n, b in stored.items()))
    ):
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
