"""What a rotary module of a model gives at several positions, held against what ours gives."""

import copy
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from math import tau
from typing import Any

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.patching.angles import Rotation, points_of
from posenc.interop.patching.forms import Angles, Form

POSITIONS = (0, 1, 2, 3, 7, 30, 129, 511, 4_097, 65_537, 1_000_003)
"""Near, where every pair tells; and far, where slow ones do."""

FREQUENCY, VALUE = 4e-6, 2e-6
"""How far float32 frequencies of a model may be off, as a share; and its cosines and sines."""

SPREAD = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

CASTS = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Measurement:
    """What was measured in one place, for layers of one type.

    Attributes:
        path: Of the place in the model.
        layer_type: Of the layers; None where all are alike.
        positions: Where it was measured, 0 the nearest.
        difference: The largest that was found in a cosine or sine, the float32 error of the model
            at far positions included.
        form: The arrangement, by its name.
    """

    path: str
    layer_type: str | None
    positions: tuple[int, ...]
    difference: float
    form: str


@dataclass(frozen=True)
class Found:
    """A form that fits, and the largest difference; or None, and in words what is different."""

    form: Form | None
    difference: float
    told: str


def positions_for(encoding: Rotation, longest: int | None) -> Tensor:
    """Where to measure, ``[1, seq]`` or ``[axes, 1, seq]``: below ``longest``, its last included.

    With axes, every axis is somewhere else.
    """
    near = POSITIONS if longest is None else [p for p in POSITIONS if p < longest - 1]
    row = torch.tensor([*near, *([] if longest is None else [longest - 1])])
    if not isinstance(encoding, MultimodalRotary):
        return row[None]
    axes = [row.roll(2 * axis) for axis in range(len(encoding.sections))]
    return torch.stack(axes)[:, None]


def asked(
    module: nn.Module, positions: Tensor, layer_type: str | None, dtype: torch.dtype
) -> Angles:
    """What a module gives for a hidden state of a dtype."""
    x = torch.zeros(1, positions.shape[-1], 1, dtype=dtype)
    named = {} if layer_type is None else {"layer_type": layer_type}
    with torch.no_grad():
        return module(x, positions, **named)


def dtype_of(module: nn.Module, positions: Tensor, layer_type: str | None) -> torch.dtype | None:
    """The dtype in which a module gives angles whatever it is asked in; None: in that."""
    half, full = (
        parts(asked(module, positions, layer_type, each))[0].dtype
        for each in (torch.bfloat16, torch.float32)
    )
    return None if half != full else full


def parts(angles: Angles) -> list[Tensor]:
    """Real tensors of what a module gave, two of each complex one."""
    found = angles if isinstance(angles, tuple | list) else (angles,)
    real = [x.detach() for x in found]
    return [r for x in real for r in ((x.real, x.imag) if x.is_complex() else (x,))]


def compared(given: Angles, encoding: Rotation, positions: Tensor, forms: Iterable[Form]) -> Found:
    """The form in which ``given`` is what an encoding gives at positions, and how near it is."""
    table = encoding.table(points_of(encoding, positions), dtype=torch.float64)  # type: ignore[arg-type]
    allowed = allowance(encoding, positions)
    theirs = [x.cpu().double() for x in parts(given)]
    worst: Found | None = None
    for form in forms:
        arranged = form.write(*table.unbind(-2))
        ours, within = parts(arranged), parts(form.write(allowed, allowed))
        if _shape(arranged) != _shape(given):
            continue
        excess = torch.stack([(a - b).abs() - c for a, b, c in zip(ours, theirs, within)])  # noqa: B905
        difference = max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
        if bool((excess <= 0).all()):
            return Found(form, difference, "")
        if worst is None or difference < worst.difference:
            worst = Found(None, difference, _told(ours, theirs, excess, positions))
    return worst or Found(
        None,
        float("inf"),
        f"it gives {_shapes(given)}, and no form of {table.shape[-1]} pairs at "
        f"{positions.shape[-1]} positions is of that shape",
    )


def mixes_axes(
    module: nn.Module, encoding: Rotation, positions: Tensor, layer_type: str | None
) -> str | None:
    """What is wrong, where a module makes one row of angles of three axes, and we read one axis."""
    if isinstance(encoding, MultimodalRotary):
        return None
    stacked = torch.stack([positions, positions.flip(-1), positions.roll(1, -1)])
    try:
        given = asked(module, stacked, layer_type, torch.float32)
    except Exception:  # whatever its code raises: it takes no axes
        return None
    if all(x.shape[:-1] == stacked.shape for x in parts(given)):
        return None
    return "it mixes positions of three axes, and its configuration is read as one of one axis"


def allowance(encoding: Rotation, positions: Tensor) -> Tensor:
    """How far float32 may be off, for each position and pair."""
    rotary = bare(encoding)
    turns = [abs(each) / 2**192 for each in rotary.frequencies.turns()]
    speed = tau * torch.tensor(turns, dtype=torch.float64)
    reach = positions.double() if positions.ndim == 2 else positions.double().amax(0)
    factor = rotary.frequencies.attention_factor
    return factor * (FREQUENCY * reach[..., None] * speed + VALUE)


def _told(ours: list[Tensor], theirs: list[Tensor], excess: Tensor, positions: Tensor) -> str:
    part, _, token, channel = (int(i) for i in torch.unravel_index(excess.argmax(), excess.shape))
    place = positions[..., token].flatten().tolist()
    return (
        f"at position {place[0] if len(place) == 1 else tuple(place)} channel {channel} of its "
        f"{('cosines', 'sines')[part % 2]} is {float(theirs[part][0, token, channel]):.6g}, and "
        f"what its configuration says gives {float(ours[part][0, token, channel]):.6g}"
    )


def _shape(given: Angles) -> list[tuple[bool, torch.Size]]:
    """Of each tensor whether it is complex, and its shape."""
    found = given if isinstance(given, tuple | list) else (given,)
    return [(x.is_complex(), x.shape) for x in found]


def _shapes(given: Angles) -> str:
    found = given if isinstance(given, tuple | list) else (given,)
    return " and ".join(f"{tuple(x.shape)} ({str(x.dtype)[6:]})" for x in found)


def sound(module: nn.Module, config: Any) -> nn.Module:
    """A copy to be asked, on the CPU; anew where casts or the meta device took its frequencies.

    Raises:
        ValueError: They are gone, and its class does not build another from its configuration.
    """
    stored = {n: b for n, b in module.named_buffers() if b.is_floating_point()}
    lost = any(b.is_meta or b.dtype in CASTS for b in stored.values())
    if not lost and not any(_is_cast(b) for b in stored.values()):
        return copy.deepcopy(module).cpu()
    anew = rebuilt(module, config)
    if anew is None and not lost:
        return copy.deepcopy(module).cpu()
    if anew is None:
        raise ValueError(
            f"the frequencies of {type(module).__name__} were cast to half precision, or lie on "
            f"the meta device, and its class builds no other from a configuration. Load the model "
            f"with dtype=… in place of casting it."
        )
    fresh = dict(anew.named_buffers())
    if lost or all(n in fresh and _is_cast_of(b, fresh[n]) for n, b in stored.items()):
        return anew
    return copy.deepcopy(module).cpu()


def rebuilt(module: nn.Module, config: Any) -> nn.Module | None:
    """Another module of this class, from a configuration; None where its class takes more."""
    taken = dict(inspect.signature(type(module)).parameters)
    named = {"layer_idx": getattr(module, "layer_idx", 0)} if "layer_idx" in taken else {}
    needed = [n for n, p in taken.items() if p.default is p.empty and p.kind not in SPREAD]
    if config is None or len(set(needed) - set(named)) > 1:
        return None
    with torch.device("cpu"):
        return type(module)(config, **named)


def _is_cast(stored: Tensor) -> bool:
    """Whether numbers went through half precision, and not all of them are small integers."""
    return any(bool((stored.to(d).to(stored.dtype) == stored).all()) for d in CASTS)


def _is_cast_of(stored: Tensor, fresh: Tensor) -> bool:
    return any(torch.equal(fresh.to(d).to(stored.dtype), stored.cpu()) for d in CASTS)


def same_angles(one: Rotation, other: Rotation) -> bool:
    """Whether two encodings turn alike, to more than float64's last digits."""
    if facts_of(one) != facts_of(other):
        return False
    mine, theirs = bare(one).frequencies, bare(other).frequencies
    turns = zip(mine.turns(), theirs.turns(), strict=True)
    return (
        all(abs(a - b) <= 1e-12 * abs(a) for a, b in turns)
        and abs(mine.attention_factor - theirs.attention_factor) < 1e-12
    )


def bare(rotation: Rotation) -> Rotary:
    """An encoding with the axes of a multimodal one left aside."""
    return rotation.rotary if isinstance(rotation, MultimodalRotary) else rotation


def on_axes_of(held: MultimodalRotary, rotary: Rotary) -> MultimodalRotary:
    """Another rotary encoding on the axes of one."""
    return MultimodalRotary(rotary, held.sections, held.arrangement)  # type: ignore[arg-type]


def facts_of(rotation: Rotation) -> tuple[object, ...]:
    """Widths, pairing, the channels that turn, and the axis of each pair."""
    rotary = bare(rotation)
    axes = rotation.sincos.axes if isinstance(rotation, MultimodalRotary) else None
    return rotary.rotated_dim, rotary.head_dim, rotary.pairing, rotary.rotated, axes
