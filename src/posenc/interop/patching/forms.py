"""The arrangements in which models want the cosines and sines of all pairs, by name."""

from collections.abc import Callable

import torch
from torch import Tensor

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
