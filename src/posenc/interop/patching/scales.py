"""The softmax scale of attention, which YaRN changes in DeepSeek and its kin."""

from collections.abc import Mapping

from torch import nn

from posenc.interop.patching.admission import Admitted
from posenc.interop.patching.angles import Changes
from posenc.interop.rotary_config import RotaryLayer

NAMES = ("scaling", "softmax_scale")


def rescaled(model: nn.Module, found: Admitted, layers: Mapping[str, RotaryLayer]) -> Changes:
    """Set the scales of attention modules to those of the layers, where they differ.

    Raises:
        ValueError: They differ, and no module of the model has the scale that was read.
    """
    changes: Changes = []
    for kind, layer in layers.items():
        before, after = found.layers[kind].softmax_scale, layer.softmax_scale
        if abs(after - before) <= 1e-12 * abs(before):
            continue
        held = [
            (module, name, getattr(module, name))
            for module in model.modules()
            for name in NAMES
            if _is_near(getattr(module, name, None), before)
            and getattr(module, "config", None) is found.place.config
        ]
        if not held:
            raise ValueError(
                f"rotary multiplies the softmax scale by {after / before:.6g} (mscale_all_dim of "
                f"YaRN), and no attention module of this model has the scale {before:.6g} that was "
                f"read. Give it without mscale_all_dim."
            )
        for module, name, _ in held:
            setattr(module, name, after)
        changes += held
    return changes


def _is_near(value: object, other: float) -> bool:
    return isinstance(value, float) and abs(value - other) <= 1e-6 * abs(other)
