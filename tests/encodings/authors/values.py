"""What the tests beside this file share: weights and content that both sides are given.

No package has the authors' classes, so the numbers that they gave for small examples are kept in
``values.json``. Each test names the repository, its commit, the file and what was run of it, in
float64 where it lets one.
"""

import json
from math import prod
from pathlib import Path

import torch
from torch import Tensor, nn

CLOSE = {"rtol": 1e-8, "atol": 1e-8}
THEIRS = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
SINGLE = {"rtol": 0, "atol": 5e-7}
"""Where the authors' code computes in float32."""


def eighths(*shape: int, start: int) -> Tensor:
    """Multiples of 1/8 from −1 to 1, which no rounding touches."""
    counted = (torch.arange(prod(shape)) * 5 + start * 3) % 17 - 8
    return (counted.double() / 8).reshape(shape)


def fill(*parameters: nn.Parameter, start: int) -> None:
    """Each with eighths of its own, from ``start`` on."""
    with torch.no_grad():
        for place, parameter in enumerate(parameters):
            parameter.copy_(eighths(*parameter.shape, start=start + place))


def numbers(name: str) -> Tensor:
    """What the authors' code printed."""
    return torch.tensor(THEIRS[name], dtype=torch.float64)
