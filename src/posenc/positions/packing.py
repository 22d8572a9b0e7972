"""Packed rows: several documents side by side, each counted from 0."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.checks import checked
from posenc.positions.ranges import consecutive
from posenc.positions.whole import check_listed, check_whole_numbers


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
        device: Where to make them; where the tensor lies that was given, if not said.

    Raises:
        TypeError: Not exactly one description is given, it does not hold integers, or is a set.
        ValueError: A length is negative, ``cu_seqlens`` is not an ascending row from 0, or
            ``document_ids`` are one number.

    Example:
        >>> packed([3, 2])
        tensor([0, 1, 2, 0, 1])
        >>> packed(document_ids=torch.tensor([[5, 5, 9, 9, 9]]))
        tensor([[0, 1, 0, 1, 2]])
    """
    given = [name for name, value in
             [("lengths", lengths), ("cu_seqlens", cu_seqlens), ("document_ids", document_ids)]
             if value is not None]  # fmt: skip
    if len(given) != 1:
        raise TypeError(
            f"packed() was given {' and '.join(given) or 'nothing'}; it takes exactly one of "
            f"lengths, cu_seqlens and document_ids."
        )
    check_listed(lengths=lengths)
    if document_ids is not None:
        made = _since_last_change(_checked_ids(document_ids))
        return made if device is None else made.to(device)
    if cu_seqlens is not None:
        counts = _lengths_between(checked(cu_seqlens, "cu_seqlens"))
    elif isinstance(lengths, Tensor):
        counts = checked(lengths, "lengths")
    else:
        assert lengths is not None
        listed = list(lengths)
        for length in listed:
            check_whole_numbers(length=length)
        whole = [int(length) for length in listed]
        counts = torch.tensor(whole, dtype=torch.int64, device=device)
    if counts.ndim != 1 or bool((counts < 0).any()):
        raise ValueError(f"lengths are {counts.tolist()}; they must be one row of 0 or more each.")
    starts = counts.cumsum(0) - counts
    total = int(counts.sum())
    made = consecutive(total, device=counts.device) - starts.repeat_interleave(counts)
    return made if device is None else made.to(device)


def _lengths_between(boundaries: Tensor) -> Tensor:
    ascending = boundaries.ndim == 1 and len(boundaries) > 0 and int(boundaries[0]) == 0
    if not ascending or bool((boundaries[1:] < boundaries[:-1]).any()):
        raise ValueError(
            f"cu_seqlens is {boundaries.tolist()}; it must be one row that begins at 0 and never "
            f"falls. It is the cumulative sum of the lengths with a 0 before it."
        )
    return boundaries.diff()


def runs(document_ids: Tensor) -> Int64[Tensor, "*batch seq"]:
    """The number of each token's document in its row: a new one begins where the id changes.

    Example:
        >>> runs(torch.tensor([7, 7, 3, 7]))
        tensor([0, 0, 1, 2])
    """
    return _begins(_checked_ids(document_ids)).cumsum(-1) - 1


def _checked_ids(document_ids: Tensor) -> Int64[Tensor, "*batch seq"]:
    ids = checked(document_ids, "document_ids")
    if not ids.ndim:
        raise ValueError(
            f"document_ids are {document_ids!r}; they must be [*batch, seq], one a token."
        )
    return ids


def _begins(ids: Tensor) -> Tensor:
    begins = torch.ones_like(ids, dtype=torch.bool)
    begins[..., 1:] = ids[..., 1:] != ids[..., :-1]
    return begins


def _since_last_change(ids: Tensor) -> Tensor:
    index = consecutive(ids.shape[-1], device=ids.device).expand(ids.shape)
    return index - torch.where(_begins(ids), index, 0).cummax(-1).values
