"""Positions: one int64 tensor, ``[*batch, seq]``, whatever the way the tokens are laid out.

Every encoding takes explicit positions, so a token gets the same encoding in a plain batch, behind
left padding, in a packed row, from a cache, or on one rank of many. Each function here is one way
to lay tokens out.
"""

import operator
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

Layout = Literal["contiguous", "zigzag"]


def checked(positions: Tensor, name: str = "positions") -> Int64[Tensor, "*shape"]:
    """``positions`` as int64, or an error for what cannot be a position.

    Narrower integers are widened, which loses nothing.

    Raises:
        TypeError: ``positions`` is not a tensor of integers.

    Example:
        >>> checked(torch.tensor([0.0, 1.0]))
        Traceback (most recent call last):
        ...
        TypeError: positions are torch.float32; they must be integers (int64). Floating positions \
collide once they are large: build them with posenc.positions, or call .long() on whole numbers.
    """
    if not isinstance(positions, Tensor):
        raise TypeError(
            f"{name} are a {type(positions).__name__}; they must be an int64 tensor. "
            f"Pass torch.tensor(...), or build them with posenc.positions."
        )
    if positions.dtype == torch.bool:
        raise TypeError(
            f"{name} are torch.bool; they must be integers (int64). "
            f"A mask becomes positions through posenc.positions.left_padded(mask)."
        )
    if positions.is_floating_point() or positions.is_complex():
        raise TypeError(
            f"{name} are {positions.dtype}; they must be integers (int64). Floating positions "
            f"collide once they are large: build them with posenc.positions, or call .long() on "
            f"whole numbers."
        )
    return positions.to(torch.int64)


def consecutive(
    length: int, *, start: int = 0, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """``start, start + 1, …``: one unpadded sequence.

    Raises:
        ValueError: ``length`` is negative.

    Example:
        >>> consecutive(4)
        tensor([0, 1, 2, 3])
    """
    # Under torch.compile and torch.export a length may be a symbol, which is never negative.
    if isinstance(length, int) and length < 0:
        raise ValueError(f"length is {length}; it must be 0 or more.")
    return torch.arange(start, start + length, dtype=torch.int64, device=device)


def decoding(
    cached: int, length: int = 1, *, device: torch.device | str | None = None
) -> Int64[Tensor, "seq"]:
    """The next ``length`` positions behind a cache that already holds ``cached`` tokens.

    Raises:
        ValueError: ``cached`` or ``length`` is negative.

    Example:
        >>> decoding(7)
        tensor([7])
    """
    if isinstance(cached, int) and cached < 0:
        raise ValueError(f"cached is {cached}; a cache holds 0 tokens or more.")
    return consecutive(length, start=cached, device=device)


def left_padded(mask: Tensor) -> Int64[Tensor, "*batch seq"]:
    """Positions that begin at 0 on the first real token of each row.

    Padding itself stands at 0; attention must mask it. Padding on the right is left where it is,
    so the same call serves both sides.

    Args:
        mask: ``[*batch, seq]``, true (or nonzero) where a token is real.

    Raises:
        TypeError: ``mask`` is floating: an additive mask has 0 where a token is real.

    Example:
        >>> left_padded(torch.tensor([[False, False, True, True], [True, True, True, True]]))
        tensor([[0, 0, 0, 1],
                [0, 1, 2, 3]])
    """
    if mask.is_floating_point() or mask.is_complex():
        raise TypeError(
            f"mask is {mask.dtype}; it must be bool or integer, true where a token is real. "
            f"For an additive mask pass mask == 0."
        )
    return ((mask != 0).cumsum(-1) - 1).clamp(min=0)


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

    Raises:
        TypeError: Not exactly one description is given, or it does not hold integers.
        ValueError: A length is negative, or ``cu_seqlens`` is not an ascending row from 0.

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
    if document_ids is not None:
        return _since_last_change(checked(document_ids, "document_ids"))
    if cu_seqlens is not None:
        counts = _lengths_between(checked(cu_seqlens, "cu_seqlens"))
    elif isinstance(lengths, Tensor):
        counts = checked(lengths, "lengths")
    else:
        whole = [operator.index(length) for length in lengths or ()]
        counts = torch.tensor(whole, dtype=torch.int64, device=device)
    if counts.ndim != 1 or bool((counts < 0).any()):
        raise ValueError(f"lengths are {counts.tolist()}; they must be one row of 0 or more each.")
    starts = counts.cumsum(0) - counts
    total = int(counts.sum())
    return consecutive(total, device=counts.device) - starts.repeat_interleave(counts)


def _lengths_between(boundaries: Tensor) -> Tensor:
    ascending = boundaries.ndim == 1 and len(boundaries) > 0 and int(boundaries[0]) == 0
    if not ascending or bool((boundaries.diff() < 0).any()):
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
    return _begins(checked(document_ids, "document_ids")).cumsum(-1) - 1


def _begins(ids: Tensor) -> Tensor:
    begins = torch.ones_like(ids, dtype=torch.bool)
    begins[..., 1:] = ids[..., 1:] != ids[..., :-1]
    return begins


def _since_last_change(ids: Tensor) -> Tensor:
    index = consecutive(ids.shape[-1], device=ids.device).expand(ids.shape)
    return index - torch.where(_begins(ids), index, 0).cummax(-1).values


def grid(*sizes: int, device: torch.device | str | None = None) -> Int64[Tensor, "seq axes"]:
    """Every point of a grid, row after row: ``grid(height, width)`` gives ``(y, x)``.

    Raises:
        ValueError: No size is given, or one is negative.

    Example:
        >>> grid(2, 3).tolist()
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    if not sizes or min(sizes) < 0:
        raise ValueError(f"sizes are {sizes}; give one or more, each 0 or more.")
    axes = [consecutive(size, device=device) for size in sizes]
    return torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).flatten(0, -2)


def shard(
    length: int,
    rank: int,
    world: int,
    *,
    layout: Layout = "contiguous",
    device: torch.device | str | None = None,
) -> Int64[Tensor, "local"]:
    """The positions that rank ``rank`` of ``world`` holds when a sequence is cut among ranks.

    ``contiguous`` gives each rank one piece. ``zigzag`` cuts 2·world pieces and gives a rank the
    r-th from the head and the r-th from the tail, which balances causal attention.

    Raises:
        ValueError: The length does not divide evenly, the rank is not one of the world, or the
            layout has no such name.

    Example:
        >>> shard(8, 0, 2, layout="zigzag")
        tensor([0, 1, 6, 7])
    """
    if layout not in get_args(Layout):
        raise ValueError(f"layout is {layout!r}; it must be one of {get_args(Layout)}.")
    if world < 1 or not 0 <= rank < world:
        raise ValueError(f"rank is {rank} of {world}; it must be one of 0 … world − 1.")
    pieces = world if layout == "contiguous" else 2 * world
    if length < 0 or length % pieces:
        raise ValueError(
            f"length is {length}; the {layout} layout over {world} ranks needs a multiple of "
            f"{pieces}. Pad the sequence to one."
        )
    size = length // pieces
    held = [rank] if layout == "contiguous" else [rank, pieces - 1 - rank]
    return torch.cat([consecutive(size, start=piece * size, device=device) for piece in held])


def unshard(shards: Sequence[Tensor], *, dim: int = 0, layout: Layout = "contiguous") -> Tensor:
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
    shapes = {tuple(piece.shape) for piece in shards}
    if len(shapes) != 1:
        raise ValueError(f"shards have shapes {sorted(shapes)}; they must be equal, one a rank.")
    joined = torch.cat(list(shards), dim=dim)
    local = shards[0].shape[dim]
    order = torch.cat([
        shard(local * len(shards), rank, len(shards), layout=layout, device=joined.device)
        for rank in range(len(shards))
    ])  # fmt: skip
    return joined.index_select(dim, order.argsort())
