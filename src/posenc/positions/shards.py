"""A sequence cut among ranks: which positions each of them holds."""

from collections.abc import Iterable
from typing import Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice
from posenc.positions.ranges import consecutive

Sharding = Literal["contiguous", "zigzag", "striped"]


def shard(
    length: int,
    rank: int,
    world: int,
    *,
    layout: Sharding = "contiguous",
    device: torch.device | str | None = None,
) -> Int64[Tensor, "local"]:
    """The positions that rank ``rank`` of ``world`` holds when a sequence is cut among ranks.

    ``contiguous`` gives each rank one piece. ``zigzag`` cuts 2·world pieces and gives a rank the
    r-th from the head and the r-th from the tail, which balances causal attention. ``striped``
    gives it the tokens r, r + world, r + 2·world, …, which balances it too.

    Example:
        >>> shard(8, 0, 2, layout="zigzag")
        tensor([0, 1, 6, 7])
    """
    check_part(rank, world, layout)
    pieces = pieces_of(layout, world)
    if length % pieces:
        raise ValueError(
            f"length is {length}; the {layout} layout over {world} ranks needs a multiple of "
            f"{pieces}."
        )
    if layout == "striped":
        return consecutive(length, device=device)[rank::world]
    size = length // pieces
    held = [rank] if layout == "contiguous" else [rank, pieces - 1 - rank]
    return torch.cat([consecutive(size, start=piece * size, device=device) for piece in held])


def check_part(rank: int, world: int, layout: str) -> None:
    """Refuse a rank that is none of its world, and an unknown layout."""
    check_choice(get_args(Sharding), layout=layout)
    if not 0 <= rank < world:
        raise ValueError(f"rank is {rank} of {world}; it must be one of 0 … world − 1.")


def pieces_of(layout: Sharding, world: int) -> int:
    """The number that a length must divide by."""
    return 2 * world if layout == "zigzag" else world


def unshard(shards: Iterable[Tensor], *, dim: int = 0, layout: Sharding = "contiguous") -> Tensor:
    """The whole sequence again from the pieces of all ranks, in the order of their ranks.

    The inverse of indexing with ``shard``: it takes values (or positions) and puts them back.

    Args:
        shards: One tensor a rank, equal in shape.
        dim: The sequence axis.
        layout: How the sequence was cut.

    Example:
        >>> unshard([shard(8, r, 2, layout="zigzag") for r in range(2)], layout="zigzag")
        tensor([0, 1, 2, 3, 4, 5, 6, 7])
    """
    shards = list(shards)
    joined, world = torch.cat(shards, dim=dim), len(shards)
    ranks = range(world)
    length = joined.shape[dim]
    held = [shard(length, rank, world, layout=layout, device=joined.device) for rank in ranks]
    return joined.index_select(dim, torch.cat(held).argsort())
