"""Which two channels of a head form a rotated pair, and conversion of weights between the two ways.

``half`` pairs channel i with i + width/2 (Llama in transformers, GPT-NeoX, Gemma, Qwen);
``interleaved`` pairs channel 2i with 2i + 1 (the RoFormer paper, GPT-J, Meta's Llama, Cohere).
A permutation of the channels of queries and keys alike takes one to the other, and no score moves.
"""

from typing import Literal, get_args

from jaxtyping import Shaped
from torch import Tensor

Pairing = Literal["half", "interleaved"]
Rotated = Literal["prefix", "suffix"]


def checked_pairing(pairing: str) -> Pairing:
    """``pairing`` if it is one of the two.

    Raises:
        ValueError: It is not.
    """
    if pairing not in get_args(Pairing):
        raise ValueError(
            f"pairing is {pairing!r}; it must be 'half' (channels i and i + width/2) or "
            f"'interleaved' (channels 2i and 2i + 1)."
        )
    return pairing  # type: ignore[return-value]


def split(
    x: Shaped[Tensor, "*shape width"], pairing: Pairing
) -> tuple[Shaped[Tensor, "*shape pairs"], Shaped[Tensor, "*shape pairs"]]:
    """The first and the second channel of every pair, as views.

    Example:
        >>> import torch
        >>> split(torch.arange(4), "interleaved")
        (tensor([0, 2]), tensor([1, 3]))
    """
    if pairing == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    half = x.shape[-1] // 2
    return x[..., :half], x[..., half:]
