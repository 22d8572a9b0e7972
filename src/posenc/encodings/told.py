"""What a module prints of itself: the arguments that it was built with."""

import inspect
from typing import Any

from torch import Tensor, nn


def arguments_told(module: nn.Module, *, named: bool = False, **defaults: Any) -> str:
    """The arguments that are not at their defaults, read from attributes of the same names."""
    told, parameters = [], inspect.signature(type(module)).parameters
    for index, (name, parameter) in enumerate(parameters.items()):
        usual = defaults.get(name, parameter.default)
        value = getattr(module, f"first_{name}", getattr(module, name, usual))
        value = getattr(value, "name", value)  # conventions and forms have names
        if isinstance(parameter.default, bool) and not isinstance(value, bool):
            value = value is not None  # of a parameter that a switch adds
        if value is not usual and not isinstance(value, nn.Module | Tensor) and value != usual:
            unnamed = index == 0 and usual is parameter.empty and not named
            told.append(repr(value) if unnamed else f"{name}={value!r}")
    return ", ".join(told)


class Described(nn.Module):
    """A module that prints the arguments it was built with."""

    def extra_repr(self) -> str:
        return arguments_told(self)


class Drawn(nn.Module):
    """A module whose parameters all begin alike."""

    std: float

    def reset_parameters(self) -> None:
        """Draw every number anew from N(0, std²)."""
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=self.std)
