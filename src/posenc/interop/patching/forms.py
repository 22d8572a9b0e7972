"""The arrangements in which models want the cosines and sines of all pairs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Angles = tuple[Tensor, Tensor] | Tensor
"""What a rotary module of a model returns."""


@dataclass(frozen=True)
class Form:
    """One arrangement.

    Attributes:
        name: As documents and errors have it.
        write: From cos and sin, one a pair, to what the model's code expects.
    """

    name: str
    write: Callable[[Tensor, Tensor], Angles]


def _halves(cos: Tensor, sin: Tensor) -> Angles:
    return torch.cat((cos, cos), dim=-1), torch.cat((sin, sin), dim=-1)


def _half_width(cos: Tensor, sin: Tensor) -> Angles:
    return cos, sin


def _repeated(cos: Tensor, sin: Tensor) -> Angles:
    return cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)


def _complex(cos: Tensor, sin: Tensor) -> Angles:
    return torch.complex(cos, sin)


def _rows(cos: Tensor, sin: Tensor) -> Tensor:
    return torch.cat((sin, cos), dim=-1)


OF_MODULES = (
    Form("both halves", _halves),  # Llama and most others
    Form("half width", _half_width),  # gpt-oss
    Form("repeated", _repeated),  # Cohere
    Form("complex", _complex),  # Llama 4, DeepSeek-V2
)
"""What a rotary module may return; which of them it is, is measured."""

ROWS = Form("rows of a table", _rows)
"""Tables that attention keeps itself: GPT-J and CodeGen."""
