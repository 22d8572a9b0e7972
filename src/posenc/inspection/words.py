"""A vector for each word, drawn from the word itself: for sentences without a trained model."""

from collections.abc import Iterable

import torch
from jaxtyping import Float64
from torch import Tensor

LOW = 0xFFFFFFFF
STEP = 0x6D2B79F5


def word_vectors(
    words: Iterable[str], dim: int, *, seed: int = 0
) -> Float64[Tensor, "words {dim}"]:
    """Random vectors from N(0, 1), which depend on the word and the seed alone.

    Number j is √(−2 ln(1 − u_2j)) cos(2π u_2j+1), with u drawn by mulberry32 from the FNV-1a hash
    of the word. Upper and lower case are one word. ``posenc explore`` draws the same vectors.

    Reference:
        Box & Muller 1958, "A Note on the Generation of Random Normal Deviates"; mulberry32 by
        Tommy Ettinger (public domain).

    Example:
        >>> word_vectors(["your", "cat", "Cat"], 2)
        tensor([[ 0.3294, -1.0135],
                [-0.4312, -2.0687],
                [-0.4312, -2.0687]], dtype=torch.float64)
    """
    hashes = torch.tensor([_hash(word.lower(), seed) for word in words], dtype=torch.int64)
    state = (hashes[:, None] + STEP * torch.arange(1, 2 * dim + 1)) & LOW
    mixed = (state ^ state >> 15) * (state | 1) & LOW
    mixed ^= mixed + (mixed ^ mixed >> 7) * (mixed | 61) & LOW
    radius, angle = ((mixed ^ mixed >> 14).double() / 2**32).unflatten(1, (dim, 2)).unbind(-1)
    return (-2 * torch.log(1 - radius)).sqrt() * torch.cos(2 * torch.pi * angle)


def _hash(word: str, seed: int) -> int:
    """FNV-1a of 32 bits, begun from the seed."""
    found = 0x811C9DC5 ^ seed % 2**32
    for byte in word.encode():
        found = (found ^ byte) * 0x01000193 & LOW
    return found
