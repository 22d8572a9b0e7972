"""Documents of any lengths as one batch of packed rows, with all that attention must know."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from posenc.positions.checks import checked
from posenc.positions.ranges import consecutive
from posenc.positions.shards import Sharding, check_part, pieces_of, shard


class PackedBatch(NamedTuple):
    """Rows of documents side by side.

    Attributes:
        input_ids: ``[rows, length]``: the tokens.
        positions: ``[rows, length]``: each document counts from 0.
        document_ids: ``[rows, length]``: the number of each token's document in its row. Padding is
            a document of its own.
        padding_mask: ``[rows, length]``: true where a token is real.
        cu_seqlens: Where documents begin, all rows side by side, and the last ends; of whole rows,
            whoever holds which part of them.
    """

    input_ids: Int64[Tensor, "rows length"]
    positions: Int64[Tensor, "rows length"]
    document_ids: Int64[Tensor, "rows length"]
    padding_mask: Bool[Tensor, "rows length"]
    cu_seqlens: Int64[Tensor, "documents_and_one"]


def collate(
    documents: Sequence[Any],
    *,
    length: int | None = None,
    padding_id: int = 0,
    rank: int = 0,
    world: int = 1,
    layout: Sharding = "contiguous",
) -> PackedBatch:
    """Pack documents into rows, in their order; one that does not fit begins the next row.

    It serves as ``collate_fn`` of a ``DataLoader``; of rows of ``datasets`` and batches of Ray Data
    it takes the column of ids.

    Args:
        documents: Token ids of each document: a list, an integer array, or a tensor.
        length: Tokens of a row; one row for all if not given.
        padding_id: What stands behind the last document of a row.
        rank: Which part of the rows is given, where they are cut among devices.
        world: Number of devices.
        layout: Who holds which tokens; see ``shard``. Rows are padded to divide evenly.

    Example:
        >>> batch = collate([[7, 8, 9], [5, 6], [4]], length=5)
        >>> batch.input_ids, batch.positions
        (tensor([[7, 8, 9, 5, 6],
                [4, 0, 0, 0, 0]]), tensor([[0, 1, 2, 0, 1],
                [0, 0, 1, 2, 3]]))
        >>> batch.cu_seqlens
        tensor([ 0,  3,  5,  6, 10])
    """
    check_part(rank, world, layout)
    documents = list(documents)
    device = next((each for each in documents if isinstance(each, Tensor)), torch.empty(0)).device
    documents = [checked(document, "token ids", device=device) for document in documents]
    pieces = pieces_of(layout, world)
    if length is None:
        length = -(-max(1, sum(map(len, documents))) // pieces) * pieces
    rows, filled = _in_rows(documents, length)
    parts, counts, numbers = list[Tensor](), list[int](), list[int]()
    for row, used in zip(rows, filled, strict=True):
        padding = torch.full((length - used,), padding_id, device=device)
        some = [document for document in (*row, padding) if len(document)]
        parts += some
        counts += map(len, some)
        numbers += range(len(some))
    sizes, shape = torch.tensor(counts, device=device), (len(rows), length)
    cu_seqlens = torch.cat((sizes.new_zeros(1), sizes.cumsum(0)))
    begins, ids = cu_seqlens[:-1], sizes.new_tensor(numbers)
    batch = PackedBatch(
        input_ids=torch.cat(parts).view(shape),
        positions=_summed(begins, (begins > 0).long() - begins.diff(prepend=begins[:1]), 1, shape),
        document_ids=_summed(begins, ids.diff(prepend=begins[:1]), 0, shape),
        padding_mask=consecutive(length, device=device) < sizes.new_tensor(filled)[:, None],
        cu_seqlens=cu_seqlens,
    )
    if world == 1:
        return batch
    held = shard(length, rank, world, layout=layout, device=device)
    ids, positions, numbered, real = (each[:, held] for each in batch[:4])
    return PackedBatch(ids, positions, numbered, real, cu_seqlens)


def _in_rows(documents: list[Tensor], length: int) -> tuple[list[list[Tensor]], list[int]]:
    """The documents of each row, and how many tokens they have."""
    rows, filled = [list[Tensor]()], [0]
    for number, document in enumerate(documents):
        if len(document) > length:
            raise ValueError(f"Document {number} has {len(document)} tokens and a row {length}.")
        if filled[-1] + len(document) > length:
            rows.append([])
            filled.append(0)
        rows[-1].append(document)
        filled[-1] += len(document)
    return rows, filled


def _summed(begins: Tensor, firsts: Tensor, step: int, shape: tuple[int, int]) -> Tensor:
    """Running sums of ``firsts`` at beginnings and of a step elsewhere. Fresh memory takes time."""
    steps = begins.new_full((shape[0] * shape[1],), step)
    steps[begins] = firsts
    return steps.cumsum_(0).view(shape)
