"""Numbers as text that reads back as the same numbers."""

import torch


def digits(vectors: torch.Tensor) -> list[list[str]]:
    """The shortest digits that read back as the same number of this dtype.

    Example:
        >>> digits(torch.tensor([[0.1, -2.0]]))
        [['0.1', '-2.0']]
    """
    if vectors.dtype == torch.bfloat16:
        vectors = vectors.float()  # Exact; numpy has no bfloat16.
    return [list(map(str, vector)) for vector in vectors.numpy()]
