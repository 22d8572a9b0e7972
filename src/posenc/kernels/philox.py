"""Random numbers by counter: any of them is computed by itself, so no mask has to be stored."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.arguments import check_probability

ROUNDS = 7
"""The fewest with which Philox 4x32 passes all of BigCrush (the paper's section 5)."""
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
KEY_STEPS = 0x9E3779B9, 0xBB67AE85
LOW = 0xFFFFFFFF

COUNTERS, WORDS = 16, 4
"""A block of 64 elements takes the words of 16 counters: the first of all, then the second, …"""

BLOCKS_IN_CACHE = 512
"""Drawn at once, so that the hundred operations of the generator stay in cache."""


class Dropping(NamedTuple):
    """Which elements of a tensor are dropped: those whose random word is below a threshold.

    Attributes:
        probability: Of dropping an element; more than 0 and less than 1.
        key: What makes these words differ from others.
    """

    probability: float
    key: int

    @property
    def threshold(self) -> int:
        """Words from here on keep their element, so the probability is right within 2⁻³², and
        within 2⁻³³ unless it is that close to 0 or 1."""
        return min(max(round(self.probability * 2**32), 1), LOW)

    @property
    def rescale(self) -> float:
        """What is kept is multiplied with this, so that the mean stays."""
        return 1.0 / (1.0 - self.probability)

    @property
    def numbers(self) -> tuple[float, int, int]:
        """``rescale, threshold, key``, as kernels take them."""
        return self.rescale, self.threshold, self.key


def drawn(probability: float) -> Dropping | None:
    """``Dropping`` with a key from torch's generator, or ``None`` where nothing is dropped.

    Example:
        >>> _ = torch.manual_seed(3)
        >>> first = drawn(0.1)
        >>> _ = torch.manual_seed(3)
        >>> first == drawn(0.1), first == drawn(0.1), drawn(0.0)
        (True, False, None)
    """
    check_probability(dropout=probability)
    if not probability:
        return None
    return Dropping(probability, int(torch.randint(2**63 - 1, (), device="cpu")))


def philox(
    counters: Int64[Tensor, "4 *shape"], key: int | Int64[Tensor, ""]
) -> Int64[Tensor, "4 *shape"]:
    """Philox 4x32-7: for each counter of four words of 32 bits, four random ones.

    A round makes of (c₀, c₁, c₂, c₃), with hi and lo the halves of a product,
    (hi(M₁c₂) ⊕ c₁ ⊕ k₀, lo(M₁c₂), hi(M₀c₀) ⊕ c₃ ⊕ k₁, lo(M₀c₀)).

    Args:
        counters: Words of 32 bits, the lowest first.
        key: 64 bits; a tensor where no value may be looked at.

    Reference:
        Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3", section 3.3.

    Example:
        >>> [f"{int(word):08x}" for word in philox(torch.tensor([0, 0, 0, 0]), 0)]
        ['5f6fb709', '0d893f64', '4f121f81', '4f730a48']
    """
    c0, c1, c2, c3 = counters
    k0, k1 = key & LOW, key >> 32 & LOW
    for _ in range(ROUNDS):
        # Products of two words of 32 bits wrap in int64, which loses no bit.
        first, second = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1 = (second >> 32 & LOW) ^ c1 ^ k0, second & LOW
        c2, c3 = (first >> 32 & LOW) ^ c3 ^ k1, first & LOW
        k0, k1 = (k0 + KEY_STEPS[0]) & LOW, (k1 + KEY_STEPS[1]) & LOW
    return torch.stack((c0, c1, c2, c3))


def kept(
    shape: torch.Size | tuple[int, ...],
    threshold: int,
    key: int,
    device: torch.device | str = "cpu",
) -> Bool[Tensor, "*shape"]:
    """Whether each element of a tensor of this shape is kept; it depends on its number alone."""
    count = torch.Size(shape).numel()
    blocks = -(-count // (COUNTERS * WORDS))
    mask = torch.empty(blocks, WORDS, COUNTERS, dtype=torch.bool, device=device)
    for first in range(0, blocks, BLOCKS_IN_CACHE):
        some = mask[first : first + BLOCKS_IN_CACHE]
        begin, end = first * COUNTERS, (first + len(some)) * COUNTERS
        number = torch.arange(begin, end, device=device).view(-1, COUNTERS)
        none = torch.zeros_like(number)
        words = philox(torch.stack((number & LOW, number >> 32, none, none)), key)
        torch.ge(words.transpose(0, 1), threshold, out=some)
    return mask.flatten()[:count].view(shape)
