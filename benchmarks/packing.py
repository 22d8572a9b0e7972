"""Documents packed into rows, with positions, documents, padding mask and boundaries.

Tokens a second are the number in the title over the time: 40 million a second are 100 ms for 4
million tokens. Peers give less: ids alone, or each document's positions by a call of its own.
"""

from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.harness import Case, bytes_of, copying
from posenc.positions import collate

LENGTH = 8192


def cases(quick: bool) -> Iterator[Case]:
    """Long documents, and short ones, of which there are more to look at."""
    tokens = 2**18 if quick else 2**22
    for mean in (1000, 100):
        yield _packing(tokens, mean)


def _packing(tokens: int, mean: int) -> Case:
    drawn = np.random.default_rng(0)
    sizes = drawn.integers(mean // 2, mean * 3 // 2, tokens // mean)
    arrays = [drawn.integers(0, 50_000, size) for size in sizes]
    tensors = [torch.from_numpy(array) for array in arrays]
    made = collate(arrays, length=LENGTH)
    results = made[:4]
    return Case(
        f"pack {sizes.sum() / 1e6:.2f} million tokens of documents of {mean}",
        {
            "posenc, arrays": lambda: collate(arrays, length=LENGTH),
            "posenc, tensors": lambda: collate(tensors, length=LENGTH),
            "ids alone, torch.cat": lambda: torch.cat(tensors),
            "ids and positions, each document": lambda: (
                torch.cat(tensors),
                torch.cat([torch.arange(len(tensor)) for tensor in tensors]),
            ),
        },
        copying(*results),
        copied=bytes_of(*results),
        moved=bytes_of(*results, *tensors),
    )
