"""A sequence cut among ranks: which positions each of them holds."""

from collections.abc import Iterable
from typing import Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.ranges import consecutive
from posenc.positions.whole import check_whole_numbers, plain

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

    Raises:
        TypeError: A number is not whole.
        ValueError: The length does not divide evenly, the rank is not one of the world, or the
            layout has no such name.

    Example:
        >>> shard(8, 0, 2, layout="zigzag")
        tensor([0, 1, 6, 7])
    """
    check_whole_numbers(length=length, rank=rank, world=world)
    length, rank, world = map(plain, (length, rank, world))
    check_part(rank, world, layout)
    pieces = pieces_of(layout, world)
    if length < 0 or length % pieces:
        raise ValueError(
            f"length is {length}; the {layout} layout over {world} ranks needs a multiple of "
            f"{pieces}. Pad the sequence to one."
        )
    if layout == "striped":
        return consecutive(length, device=device)[rank::world]
    size = length // pieces
    held = [rank] if layout == "contiguous" else [rank, pieces - 1 - rank]
    return torch.cat([consecutive(size, start=piece * size, device=device) for piece in held])


def check_part(rank: int, world: int, layout: str) -> None:
    """Refuse a rank that is none of its world, and a layout of no such name.

    Raises:
        ValueError: It is one.

    Example:
        >>> check_part(2, 2, "zigzag")
        Traceback (most recent call last):
        ...
        ValueError: rank is 2 of 2; it must be one of 0 … world − 1.
    """
    if layout not in get_args(Sharding):
        raise ValueError(f"layout is {layout!r}; it must be one of {get_args(Sharding)}.")
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank is {rank} of {world}; it must be one of 0 … world − 1.")


def pieces_of(layout: Sharding, world: int) -> int:
    """The number that a length must divide by.

    Example:
        >>> pieces_of("zigzag", 4)
        8
    """
    return 2 * world if layout == "zigzag" else world


def unshard(shards: Iterable[Tensor], *, dim: int = 0, layout: Sharding = "contiguous") -> Tensor:
    """The whole sequence again from the pieces of all ranks, in the order of their ranks.

    The inverse of indexing with ``shard``: it takes values (or positions) and puts them back.

    Args:
        shards: One tensor a rank, equal in shape.
        dim: The sequence axis.

    Raises:
        ValueError: No shard is given, or their shapes differ.

    Example:
        >>> unshard([shard(8, r, 2, layout="zigzag") for r in range(2)], layout="zigzag")
        tensor([0, 1, 2, 3, 4, 5, 6, 7])
    """
    shards = list(shards)
    shapes = {tuple(piece.shape) for piece in shards}
    if len(shapes) != 1:
        raise ValueError(f"shards have shapes {sorted(shapes)}; they must be equal, one a rank.")
    joined = torch.cat(shards, dim=dim)
    local = shards[0].shape[dim]
    order = torch.cat([
        shard(local * len(shards), rank, len(shards), layout=layout, device=joined.device)
        for rank in range(len(shards))
    ])  # fmt: skip
    return joined.index_select(dim, order.argsort())
