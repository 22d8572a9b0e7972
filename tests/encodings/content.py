"""Content that tests of encodings draw."""

import torch


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """N(0, 1), the same numbers in every dtype but for their rounding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def wide(*shape: int, seed: int = 0) -> torch.Tensor:
    """The same in float64."""
    return random(*shape, seed=seed, dtype=torch.float64)
