"""Packed rows: several documents side by side, each counted from 0."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.checks import checked
from posenc.positions.ranges import consecutive


def packed(
    lengths: Sequence[int] | Tensor | None = None,
    *,
    cu_seqlens: Tensor | None = None,
    document_ids: Tensor | None = None,
    device: torch.device | str | None = None,
) -> Int64[Tensor, "*batch seq"]:
    """Positions that begin again at 0 with every document of a packed row.

    Give exactly one description of the documents.

    Args:
        lengths: Number of tokens of each document, in order.
        cu_seqlens: Cumulative lengths ``0, l_0, l_0 + l_1, …`` as variable-length kernels take.
        document_ids: ``[*batch, seq]``; a document is a run of equal ids.
        device: Where to make them; by default beside the tensor that is given.

    Example:
        >>> packed([3, 2])
        tensor([0, 1, 2, 0, 1])
        >>> packed(document_ids=torch.tensor([[5, 5, 9, 9, 9]]))
        tensor([[0, 1, 0, 1, 2]])
    """
    if sum(given is not None for given in (lengths, cu_seqlens, document_ids)) != 1:
        raise TypeError("packed() takes exactly one of lengths, cu_seqlens and document_ids.")
    if document_ids is not None:
        ids = checked(document_ids, "document_ids")
        index = consecutive(ids.shape[-1], device=ids.device).expand(ids.shape)
        made = index - torch.where(_begins(ids), index, 0).cummax(-1).values
    else:
        if cu_seqlens is not None:
            counts = _lengths_between(checked(cu_seqlens, "cu_seqlens"))
        else:
            counts = checked(lengths, "lengths", device=device)  # type: ignore[arg-type]
        starts = counts.cumsum(0) - counts
        total = int(counts.sum())
        made = consecutive(total, device=counts.device) - starts.repeat_interleave(counts)
    return made if device is None else made.to(device)


def _lengths_between(boundaries: Tensor) -> Tensor:
    lengths = boundaries.diff()
    if int(boundaries[0]) != 0 or bool((lengths < 0).any()):
        raise ValueError(f"cu_seqlens is {boundaries.tolist()}; it must ascend from 0.")
    return lengths


def runs(document_ids: Tensor) -> Int64[Tensor, "*batch seq"]:
    """The number of each token's document in its row: a new one begins where the id changes.

    Example:
        >>> runs(torch.tensor([7, 7, 3, 7]))
        tensor([0, 0, 1, 2])
    """
    return _begins(checked(document_ids, "document_ids")).cumsum(-1) - 1


def _begins(ids: Tensor) -> Tensor:
    begins = torch.ones_like(ids, dtype=torch.bool)
    begins[..., 1:] = ids[..., 1:] != ids[..., :-1]
    return begins
