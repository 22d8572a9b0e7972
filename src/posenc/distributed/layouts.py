"""Who holds which token: how a row is dealt out to ranks."""

from typing import Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice
from posenc.positions import consecutive, packed

Layout = Literal["contiguous", "zigzag", "striped", "zigzag_by_document"]

NOBODY = -1
"""Stands where a rank holds padding and no token of the row."""


def dealt(
    layout: Layout, length: int, world: int, documents: Tensor | None = None
) -> Int64[Tensor, "rows world local"]:
    """The place in the row of each token of each rank; −1 where a rank holds padding.

    ======================  ====================================================================
    ``contiguous``          each rank holds one piece
    ``zigzag``              of 2·world pieces, the r-th from the head and the r-th from the tail,
                            which balances causal attention
    ``striped``             tokens r, r + world, r + 2·world, …, which balances it too
    ``zigzag_by_document``  zigzag within every document, which balances packed rows
    ======================  ====================================================================

    Args:
        layout: One of these.
        length: Number of tokens of a row.
        world: Number of ranks.
        documents: ``[batch, length]``: the number of each token's document, rising along a row;
            where every row is dealt out by its own.

    Reference:
        Brandon et al. 2023, "Striped Attention" (arXiv:2311.09431), for ``striped``; Llama Team
        2024, section 3.3.2 (arXiv:2407.21783), for ``zigzag``.

    Example:
        >>> dealt("zigzag", 8, 2)
        tensor([[[0, 1, 6, 7],
                 [2, 3, 4, 5]]])
        >>> dealt("striped", 5, 2)
        tensor([[[ 0,  2,  4],
                 [ 1,  3, -1]]])
    """
    check_choice(get_args(Layout), layout=layout)
    if layout == "zigzag_by_document":
        if documents is None:
            raise ValueError("layout is 'zigzag_by_document'; pass document_ids.")
        return _by_document(documents, world)
    places = _dealt(layout, length, world)
    return places.where(places < length, NOBODY).unsqueeze(0)


def _dealt(layout: str, length: int, world: int) -> Int64[Tensor, "world local"]:
    count = 2 * world if layout == "zigzag" else world
    pieces = consecutive(-(-length // count) * count)
    if layout == "striped":
        return pieces.view(-1, world).T.contiguous()
    pieces = pieces.view(count, -1)
    if layout == "contiguous":
        return pieces
    return torch.cat((pieces[:world], pieces[world:].flip(0)), dim=1)


def _by_document(documents: Tensor, world: int) -> Tensor:
    holders = torch.stack([_holders(row, world) for row in documents])
    counts = torch.stack([row.bincount(minlength=world) for row in holders])
    places = torch.full((len(documents), world, int(counts.max())), NOBODY)
    for row, holder in enumerate(holders):
        parts = holder.argsort(stable=True).split(counts[row].tolist())
        for rank, part in enumerate(parts):
            places[row, rank, : len(part)] = part
    return places


def _holders(documents: Tensor, world: int) -> Tensor:
    """The rank of each token of a row."""
    index, sizes = packed(document_ids=documents), documents.bincount()[documents]
    piece = index * (2 * world) // sizes
    rank = torch.where(piece < world, piece, 2 * world - 1 - piece)
    # Documents shorter than their pieces begin with another rank each, so none holds all of them.
    return (rank + documents) % world
