"""What transformers itself makes of a configuration: frequencies and factors."""

import inspect
import math
from importlib import import_module
from types import ModuleType

import pytest
import torch
from transformers import PreTrainedConfig, logging

from posenc import MultimodalRotary, Rotary

logging.set_verbosity_error()  # random factors do not fit random lengths, and it says so


class Oracle:
    """The rotary modules of transformers, and how ours are held against them."""

    @staticmethod
    def code_of(config: PreTrainedConfig) -> ModuleType:
        """The module with the model of a configuration."""
        return import_module(type(config).__module__.replace("configuration_", "modeling_"))

    @staticmethod
    def module_of(config: PreTrainedConfig) -> torch.nn.Module:
        """The rotary module that the model of a configuration uses."""
        code = Oracle.code_of(config)
        classes = [
            found
            for name, found in vars(code).items()
            if inspect.isclass(found) and name.endswith("RotaryEmbedding") and "Vision" not in name
        ]
        return classes[-1](config)

    @staticmethod
    def frequencies_of(module: torch.nn.Module, layer_type: str | None = None) -> torch.Tensor:
        """Radians per position."""
        return getattr(module, f"{layer_type}_inv_freq" if layer_type else "inv_freq").double()

    @staticmethod
    def rotary(encoding: Rotary | MultimodalRotary | None) -> Rotary:
        """The rotary encoding, with the axes of a multimodal one left aside."""
        assert encoding is not None
        return encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding

    @staticmethod
    def agree(encoding, module: torch.nn.Module, layer_type: str | None = None) -> None:
        """Frequencies to what ramps of float32 leave; factors to roundings of float64.

        A ramp that ends near 1 is off by some 2^-23, and so is a frequency of which a 64th is left.
        """
        schedule = Oracle.rotary(encoding).frequencies
        prefix = f"{layer_type}_" if layer_type else ""
        ours = torch.tensor([2 * math.pi / length for length in schedule.wavelengths()]).double()
        theirs = Oracle.frequencies_of(module, layer_type)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-12)
        factor = getattr(module, f"{prefix}attention_scaling")
        assert math.isclose(schedule.attention_factor, factor, rel_tol=1e-12)


@pytest.fixture(scope="session")
def oracle() -> type[Oracle]:
    """What transformers itself makes of a configuration."""
    return Oracle
