"""What a module prints of itself: the arguments that it was built with."""

import inspect
from typing import Any

from torch import nn


def arguments_told(module: nn.Module, **defaults: Any) -> str:
    """The arguments that are not at their defaults, read from attributes of the same names.

    Submodules print themselves; devices and dtypes are left out. ``defaults`` replace those of the
    signature.

    Example:
        >>> from posenc import Sinusoidal
        >>> arguments_told(Sinusoidal(16, convention="timestep"))
        "16, convention='timestep'"
    """
    told, parameters = [], inspect.signature(type(module)).parameters
    for index, (name, parameter) in enumerate(parameters.items()):
        value = None if name in ("device", "dtype") else getattr(module, name)
        value = getattr(value, "name", value)  # conventions and forms have names
        usual = value is None or value == defaults.get(name, parameter.default)
        if not usual and not isinstance(value, nn.Module):
            told.append(repr(value) if index == 0 else f"{name}={value!r}")
    return ", ".join(told)
