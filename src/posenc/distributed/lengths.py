"""How long the rows of a batch are, and which of their tokens are real."""

from collections.abc import Sequence

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.positions import consecutive


def described(
    length: int | None,
    lengths: Sequence[int] | Tensor | None,
    document_ids: Tensor | None,
    padding_mask: Tensor | None,
) -> tuple[int, Tensor | None]:
    """The length of all rows, and ``[batch, length]``: which tokens are real, if not all."""
    if lengths is not None:
        if padding_mask is not None:
            raise ValueError("lengths and padding_mask were given; both say what is real.")
        counts = torch.as_tensor(lengths)
        length = int(counts.max()) if length is None else length
        if int(counts.min()) < 0 or int(counts.max()) > length:
            raise ValueError(f"lengths are {counts.tolist()}; they must be from 0 to {length}.")
        padding_mask = consecutive(length, device=counts.device) < counts.unsqueeze(-1)
    if padding_mask is not None and padding_mask.dtype != torch.bool:
        raise TypeError(f"padding_mask is {padding_mask.dtype}; it must be bool, True if real.")
    for name, told in {"document_ids": document_ids, "padding_mask": padding_mask}.items():
        if told is not None:
            length = told.shape[-1] if length is None else length
            if told.ndim != 2 or told.shape[1] != length:
                shape = tuple(told.shape)
                raise ValueError(f"{name} has shape {shape}; it must be [batch, {length}].")
    check_whole(length=length)
    return length, padding_mask  # type: ignore[return-value]
