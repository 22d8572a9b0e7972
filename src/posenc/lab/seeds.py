"""Where randomness comes from: one generator a purpose, so that none disturbs another.

The same seed gives the same body and the same data to every encoding, whatever the encoding draws.
"""

from hashlib import sha256

import torch


def seed_of(seed: int, *purpose: object) -> int:
    """A 63-bit seed for one purpose."""
    written = ":".join(map(str, (seed, *purpose)))
    return int.from_bytes(sha256(written.encode()).digest()[:8], "big") >> 1


def generator_for(seed: int, *purpose: object) -> torch.Generator:
    """A generator of its own."""
    return torch.Generator().manual_seed(seed_of(seed, *purpose))
