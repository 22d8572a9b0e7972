"""What score encodings that depend on content share: products, and the check of content."""

from math import sqrt

import torch
from torch import Tensor


def products(x: Tensor, rows: Tensor) -> Tensor:
    """``x @ rowsᵀ`` in the dtype of ``x``, also inside autocast: scores are summed in float32.

    Example:
        >>> products(torch.ones(1, 2), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 7.]])
    """
    if x.is_meta:  # which has no autocast
        return x @ rows.to(x.dtype).mT
    with torch.autocast(x.device.type, enabled=False):
        return x @ rows.to(x.dtype).mT


def scale_of(scale: float | None, head_dim: int) -> float:
    """What products of queries and keys were multiplied with: as told, or 1/√head_dim.

    Example:
        >>> scale_of(None, 16), scale_of(1.0, 16)
        (0.25, 1.0)
    """
    return 1 / sqrt(head_dim) if scale is None else scale


def checked_content(
    name: str, heads: int, scores: Tensor, /, **content: tuple[Tensor | None, int]
) -> None:
    """Refuse scores of another number of heads, and content that is missing or of another width.

    Args:
        name: The encoding, for the words of an error.
        heads: Heads that it was built for.
        scores: ``[*batch, heads, q_len, k_len]``.
        content: ``q=(q, head_dim)``, ``k=(k, head_dim)``: what it needs, and the width of it.

    Raises:
        ValueError: Something does not fit.

    Example:
        >>> checked_content("CoPE", 4, torch.zeros(4, 2, 2), q=(None, 8))
        Traceback (most recent call last):
        ...
        ValueError: CoPE was given no q; it depends on content. Pass q=... with the scores.
    """
    if scores.shape[-3] != heads:
        raise ValueError(
            f"{name} was built for {heads} heads; scores have {scores.shape[-3]}. Build it with "
            f"heads={scores.shape[-3]}."
        )
    for letter, (x, head_dim) in content.items():
        if x is None:
            raise ValueError(
                f"{name} was given no {letter}; it depends on content. Pass {letter}=... with the "
                f"scores."
            )
        if x.shape[-1] != head_dim:
            raise ValueError(
                f"{letter} has heads of width {x.shape[-1]}; {name} was built for head_dim "
                f"{head_dim}. Build it with head_dim={x.shape[-1]}."
            )
