"""Where randomness comes from: one generator a purpose, so that none disturbs another.

The same seed gives the same body and the same data to every encoding, whatever the encoding draws.
"""

from hashlib import sha256
from typing import Literal

import torch

Purpose = Literal["body", "encoding", "data", "positions", "examination"]


def seed_of(seed: int, purpose: Purpose, *more: object) -> int:
    """A 63-bit seed for one purpose.

    Example:
        >>> seed_of(0, "body") != seed_of(0, "data") != seed_of(1, "data")
        True
    """
    written = ":".join(map(str, (seed, purpose, *more)))
    return int.from_bytes(sha256(written.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, purpose: Purpose, *more: object) -> torch.Generator:
    """A generator of its own.

    Example:
        >>> a, b = (torch.rand(1, generator=generator_for(3, "data")) for _ in range(2))
        >>> bool(a == b)
        True
    """
    return torch.Generator().manual_seed(seed_of(seed, purpose, *more))
