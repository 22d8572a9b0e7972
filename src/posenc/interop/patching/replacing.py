"""Ours put in one place of a model, measured there, and taken out again."""

import sys
from typing import Any

import torch

from posenc.interop.patching import measuring
from posenc.interop.patching.admission import Admitted
from posenc.interop.patching.angles import ALL, ExactAngles
from posenc.interop.patching.places import TABLE, Place, device_of
from posenc.interop.patching.rows import ExactRows, SharedRows
from posenc.interop.patching.telling import restore
from posenc.interop.rotary_config import RotaryLayer

Layers = dict[str, RotaryLayer]
Ours = ExactAngles | ExactRows


def put(found: Admitted, layers: Layers, made: list[Ours]) -> Ours:
    """Put ours in one place."""
    place = found.place
    rotaries: dict[str, Any] = {kind: layer.encoding for kind, layer in layers.items()}
    if not place.keeps_rows:
        known = (each for each in made if isinstance(each, ExactAngles))
        angles = next((each for each in known if each.replaced is place.module), None)
        angles = angles or ExactAngles(
            rotaries, found.form, place.module, place.config, found.dtype
        )
        place.parent._modules[place.name] = angles
        return angles
    rotary = rotaries[ALL]
    others = (each.shared for each in made if isinstance(each, ExactRows))
    shared = next((each for each in others if repr(each.rotary) == repr(rotary)), None)
    before: Any = place.module._buffers[TABLE]
    rows = ExactRows(shared or SharedRows(rotary), before)
    place.module.register_forward_pre_hook(rows, with_kwargs=True)
    place.module.register_forward_hook(rows.turn.give, always_call=True)
    _forget_graphs()
    return rows


def _forget_graphs() -> None:
    """Have compiled graphs made anew, which do not look whether hooks came or went since."""
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


def confirm(found: Admitted, layers: Layers) -> None:
    """Measure again, in the place itself: it gives what its layers have, as the model takes it.

    Raises:
        RuntimeError: It does not, or with other shapes or dtypes.
    """
    place = found.place
    angles = place.parent._modules[place.name]
    if not isinstance(angles, ExactAngles):
        return
    for kind, layer in layers.items():
        positions = measuring.positions_for(layer.encoding, None)
        named = None if kind == ALL else kind
        for dtype in (torch.float32, torch.bfloat16):
            given = measuring.asked(angles, positions, named, dtype)
            if {x.dtype for x in measuring.parts(given)} != {found.dtype or dtype}:
                raise RuntimeError(f"{place.path} gives {given}; expected {found.dtype or dtype}.")
        seen = measuring.compared(
            measuring.asked(angles, positions, named, torch.float32),
            layer.encoding,
            positions,
            (found.form,),
        )
        if seen.form is None:
            raise RuntimeError(f"{place.path}, patched: {seen.told}.")


def take(place: Place, angles: Any) -> None:
    """Take ours out of one place."""
    restore(angles.changes)
    device = device_of(place.parent) or next((b.device for b in place.parent.buffers()), None)
    if isinstance(angles, ExactAngles):
        before: Any = angles.replaced
        place.parent._modules[place.name] = before if device is None else before.to(device)
        return
    hooks = place.module._forward_pre_hooks
    for key in [key for key, hook in hooks.items() if hook is angles]:
        del hooks[key]
        del place.module._forward_pre_hooks_with_kwargs[key]
    after = place.module._forward_hooks
    for key in [key for key, hook in after.items() if hook == angles.turn.give]:
        del after[key]
        place.module._forward_hooks_always_called.pop(key, None)
    place.module._buffers[TABLE] = angles.before.to(device_of(place.module))
    _forget_graphs()
