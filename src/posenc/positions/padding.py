"""Padded rows: real tokens counted, padding counted for nothing."""

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.positions.checks import Integers, checked
from posenc.positions.packing import packed
from posenc.positions.ranges import consecutive


def left_padded(
    mask: Tensor, *, start: int | Int64[Tensor, "*batch"] = 0
) -> Int64[Tensor, "*batch seq"]:
    """Positions that begin at ``start`` on the first real token of each row.

    Padding stands where the real token before it stands, and where there is none at 0 (or with the
    first real token, if that stands at less); attention must mask it. Padding on the right is left
    where it is, so the same call serves both sides. A row in several chunks gets the positions of
    the whole: the start of a chunk is the number of real tokens before it.

    Args:
        mask: ``[*batch, seq]``, true (or nonzero) where a token is real.
        start: The position of the first real token, one for all rows or one a row: behind a cache,
            its next position.

    Example:
        >>> left_padded(torch.tensor([[False, False, True, True], [True, True, True, True]]))
        tensor([[0, 0, 0, 1],
                [0, 1, 2, 3]])
        >>> left_padded(torch.tensor([False, True, True]), start=7)
        tensor([6, 7, 8])
    """
    count = checked_mask(mask).cumsum(-1)
    if not isinstance(start, Tensor):
        return (count + (start - 1)).clamp(min=min(start, 0))
    if start.ndim and start.shape != mask.shape[:-1]:
        raise ValueError(f"start has shape {[*start.shape]}, and mask {[*mask.shape]}.")
    start = checked(start, "start").unsqueeze(-1)
    return (count + (start - 1)).maximum(start.clamp(max=0))


def checked_mask(mask: Tensor) -> Bool[Tensor, "*shape"]:
    """``mask`` as bool, true (or nonzero) where a token is real; an additive mask has 0 there."""
    if mask.is_floating_point():
        raise TypeError(f"mask is {mask.dtype}; it must be true where a token is real.")
    return mask != 0


def over_padding(
    positions: Int64[Tensor, "*rows seq"] | Integers, mask: Bool[Tensor, "*batch seq"]
) -> Int64[Tensor, "*batch seq"]:
    """``positions`` with each token of padding at the place of the real token before it.

    Encodings that count the tokens between a key and its query tell padding by its position, as
    ``left_padded`` makes it; this makes any positions such. Padding before the first real token
    stands with that one.

    Args:
        positions: Where the tokens stand, of each row or of all.
        mask: True (or nonzero) where a token is real.

    Example:
        >>> over_padding([5, 6, 7, 7, 8], torch.tensor([True, True, False, True, True]))
        tensor([5, 6, 6, 7, 8])
    """
    mask, positions = checked_mask(mask), checked(positions, device=mask.device)
    if positions.shape[-1:] != mask.shape[-1:]:  # one position would be spread over a row
        raise ValueError(f"positions have shape {[*positions.shape]}, and mask {[*mask.shape]}.")
    positions = positions.expand(mask.shape)
    if 0 in mask.shape:
        return positions
    index = consecutive(mask.shape[-1], device=mask.device).expand(mask.shape)
    before = torch.where(mask, index, -1).cummax(-1).values
    first = torch.where(mask, index, mask.shape[-1]).amin(-1, keepdim=True)
    nearest = torch.where(before < 0, first, before).clamp(max=mask.shape[-1] - 1)
    return positions.gather(-1, nearest)


def in_documents(
    document_ids: Int64[Tensor, "*batch seq"], mask: Bool[Tensor, "*batch seq"] | None = None
) -> Int64[Tensor, "*batch seq"]:
    """Each document's real tokens counted from 0; padding in it counts for nothing.

    Args:
        document_ids: A document is a run of equal ids.
        mask: True (or nonzero) where a token is real; all are if not given.

    Example:
        >>> in_documents(torch.tensor([5, 5, 9, 9, 9]), torch.tensor([1, 1, 0, 1, 1]) == 1)
        tensor([0, 1, 0, 0, 1])
    """
    if mask is None:
        return packed(document_ids=document_ids)
    real = checked_mask(mask).long()
    index = packed(document_ids=checked(document_ids, "document_ids", device=real.device))
    if mask.shape != index.shape:
        raise ValueError(f"mask has shape {[*mask.shape]}, and document_ids {[*index.shape]}.")
    count = real.cumsum(-1)
    begin = consecutive(real.shape[-1], device=real.device) - index
    return (count - 1 - (count - real).gather(-1, begin)).clamp(min=0)
