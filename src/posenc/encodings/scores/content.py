"""What score encodings that depend on content share: products, and the check of content."""

from math import sqrt

import torch
from torch import Tensor

from posenc.guards import working_dtype


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
    """Refuse scores of another number of heads, and content that they cannot be products of.

    Queries and keys are as many as the scores say, with their batch axes: none is broadcast.

    Args:
        name: The encoding, for the words of an error.
        heads: Heads that it was built for.
        scores: ``[*batch, heads, q_len, k_len]``.
        content: ``q=(q, head_dim)``, ``k=(k, head_dim)``: what it needs, and the width of it.

    Raises:
        TypeError: Content is not floating.
        ValueError: Something does not fit.

    Example:
        >>> checked_content("CoPE", 4, torch.zeros(4, 2, 2), q=(None, 8))
        Traceback (most recent call last):
        ...
        ValueError: CoPE was given no q; it depends on content. Pass q=... with the scores.
    """
    size = scores.shape
    if size[-3] != heads:
        raise ValueError(
            f"{name} was built for {heads} heads; scores have {size[-3]}. Build it with "
            f"heads={size[-3]}."
        )
    for letter, (x, head_dim) in content.items():
        if x is None:
            raise ValueError(
                f"{name} was given no {letter}; it depends on content. Pass {letter}=... with the "
                f"scores."
            )
        if not x.is_floating_point():
            raise TypeError(f"{letter} is {x.dtype}; {name} takes floating numbers.")
        working_dtype(x.dtype)  # which refuses eight bits
        if not _fits(x.shape, size, letter, head_dim):
            raise ValueError(_misfit(name, letter, tuple(x.shape), tuple(size), head_dim))


def _fits(x: tuple[int, ...], size: tuple[int, ...], letter: str, head_dim: int) -> bool:
    """Whether ``x`` is ``[*batch, heads, seq, head_dim]`` of scores of this size."""
    if len(x) != len(size) or x[-1] != head_dim or x[-2] != size[-2 if letter == "q" else -1]:
        return False
    for axis in range(len(size) - 3):
        if x[axis] != size[axis]:
            return False
    return _serve(x[-3], size[-3], letter)


def _serve(own: int, heads: int, letter: str) -> bool:
    """Whether so many heads of queries, or of keys, are those of ``heads`` heads of scores."""
    return own == heads if letter == "q" else own > 0 and heads % own == 0


def _misfit(
    name: str, letter: str, shape: tuple[int, ...], size: tuple[int, ...], head_dim: int
) -> str:
    if len(shape) >= 3 and shape[-1] != head_dim:
        return (
            f"{letter} has heads of width {shape[-1]}; {name} was built for head_dim {head_dim}. "
            f"Build it with head_dim={shape[-1]}."
        )
    if letter == "k" and len(shape) >= 3 and not _serve(shape[-3], size[-3], letter):
        return (
            f"k has {shape[-3]} heads, which cannot serve {size[-3]} query heads evenly. Pass keys "
            f"whose heads divide those of the queries."
        )
    heads, seq = (size[-3], size[-2]) if letter == "q" else ("kv_heads", size[-1])
    takes = ", ".join(map(str, (*size[:-3], heads, seq, head_dim)))
    return (
        f"{letter} has shape {shape} and scores {size}, for which {name} takes [{takes}]. Pass the "
        f"{'queries' if letter == 'q' else 'keys'} whose products these scores are."
    )
