"""How long the rows of a batch are, by what is told of them."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool
from torch import Tensor

from posenc.arguments import check_whole
from posenc.positions import checked, consecutive


def from_lengths(
    length: int | None, lengths: Sequence[int] | Tensor, padding_mask: Tensor | None
) -> tuple[int, Bool[Tensor, "batch length"]]:
    """The length of all rows, and which tokens are real, where each row begins with its own.

    Raises:
        TypeError: Lengths are no whole numbers.
        ValueError: One is negative or past ``length``, or padding was told too.
    """
    if length is not None:
        check_whole(length=length)
    counts = checked(lengths, "lengths")
    if padding_mask is not None:
        raise ValueError("lengths and padding_mask were given; both say what is real. Pass one.")
    if counts.ndim != 1 or not len(counts) or bool((counts < 0).any()):
        raise ValueError(
            f"lengths are {counts.tolist()}; they must be one number from 0 on for each row."
        )
    longest = int(counts.max())
    length = longest if length is None else length
    if longest > length:
        raise ValueError(f"lengths reach {longest}, and length is {length}.")
    return length, consecutive(length, device=counts.device) < counts.unsqueeze(-1)


def length_of(length: int | None, document_ids: Tensor | None, padding_mask: Tensor | None) -> int:
    """The length of all rows, said or seen.

    Raises:
        TypeError: ``padding_mask`` is not bool.
        ValueError: Nothing tells it, or what was given differs in length.
    """
    for name, value in {"document_ids": document_ids, "padding_mask": padding_mask}.items():
        if value is None:
            continue
        if not isinstance(value, Tensor) or value.ndim != 2:
            told = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ValueError(f"{name} is {told}; it must be a tensor [batch, length].")
        length = value.shape[1] if length is None else length
        if value.shape[1] != length:
            raise ValueError(
                f"{name} has shape {tuple(value.shape)} and rows have {length} tokens. Give one "
                f"value a token of the whole row."
            )
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(
            f"padding_mask is {padding_mask.dtype}; it must be bool, True where a token is real."
        )
    shapes = {tuple(x.shape) for x in (document_ids, padding_mask) if x is not None}
    if len(shapes) > 1:
        raise ValueError(
            f"document_ids and padding_mask have shapes {sorted(shapes)}; give both for the same "
            f"rows."
        )
    if length is None:
        raise ValueError("Nothing tells how long rows are. Pass length=, lengths= or a mask.")
    check_whole(length=length)
    return length
