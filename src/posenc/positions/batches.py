"""Documents of any lengths as one batch of packed rows, with all that attention must know."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
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
    tokens = torch.cat([checked(document, "token ids", device=device) for document in documents])
    sizes = [len(document) for document in documents]
    pieces = pieces_of(layout, world)
    if length is None:
        length = -(-max(1, sum(sizes)) // pieces) * pieces
    rows = _rows(sizes, length)
    filled = [sum(sizes[begin:end]) for begin, end in rows]
    starts, numbers = _starts(sizes, rows, filled, length)
    begins, shape = torch.tensor(starts, device=device), (len(rows), length)
    batch = PackedBatch(
        input_ids=_in_rows(tokens, filled, shape, padding_id),
        positions=_counted(begins, shape),
        document_ids=_repeated(begins.new_tensor(numbers), begins, shape),
        padding_mask=consecutive(length, device=device) < begins.new_tensor(filled)[:, None],
        cu_seqlens=torch.cat((begins, begins.new_tensor([len(rows) * length]))),
    )
    if world == 1:
        return batch
    held = shard(length, rank, world, layout=layout, device=device)
    ids, positions, numbered, real = (each[:, held] for each in batch[:4])
    return PackedBatch(ids, positions, numbered, real, batch.cu_seqlens)


def _rows(sizes: list[int], length: int) -> list[tuple[int, int]]:
    """Where the documents of each row begin and end."""
    ends, filled = [0], 0
    for number, size in enumerate(sizes):
        if size > length:
            raise ValueError(f"Document {number} has {size} tokens and a row {length}.")
        if filled + size > length:
            ends.append(number)
            filled = 0
        filled += size
    return list(pairwise([*ends, len(sizes)]))


def _starts(
    sizes: list[int], rows: list[tuple[int, int]], filled: list[int], length: int
) -> tuple[list[int], list[int]]:
    """Where documents that have tokens begin, and padding, and the number of each in its row."""
    starts, numbers = list[int](), list[int]()
    for row, (begin, end) in enumerate(rows):
        here = accumulate(sizes[begin:end], initial=row * length)
        some = [start for start, size in zip(here, sizes[begin:end], strict=False) if size]
        if filled[row] < length:
            some.append(row * length + filled[row])
        starts += some
        numbers += range(len(some))
    return starts, numbers


# Each of these is written once and summed in place: fresh memory is what takes time.


def _counted(begins: Tensor, shape: tuple[int, int]) -> Tensor:
    """0, 1, 2, … from each beginning."""
    steps = begins.new_ones(shape[0] * shape[1])
    steps[begins[1:]] = 1 - begins.diff()
    steps[0] = 0
    return steps.cumsum_(0).view(shape)


def _repeated(values: Tensor, begins: Tensor, shape: tuple[int, int]) -> Tensor:
    """Each value from its beginning to the next."""
    steps = begins.new_zeros(shape[0] * shape[1])
    steps[begins] = values.diff(prepend=values.new_zeros(1))
    return steps.cumsum_(0).view(shape)


def _in_rows(joined: Tensor, filled: list[int], shape: tuple[int, int], padding_id: int) -> Tensor:
    if len(joined) == shape[0] * shape[1]:
        return joined.view(shape)
    ids = joined.new_empty(shape)
    for row, some in enumerate(joined.split(filled)):
        ids[row, : len(some)] = some
        ids[row, len(some) :] = padding_id
    return ids
