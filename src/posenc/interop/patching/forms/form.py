"""What a form is: the arrangement in which a model wants cosines and sines handed over."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

Angles = tuple[Tensor, Tensor] | Tensor
"""What a rotary module of a model returns."""


@dataclass(frozen=True)
class Form:
    """One arrangement of the cosines and sines of all pairs.

    Attributes:
        name: In words, as documents and refusals have it.
        write: From cos and sin, one a pair, to what the model's code expects.
    """

    name: str
    write: Callable[[Tensor, Tensor], Angles]
