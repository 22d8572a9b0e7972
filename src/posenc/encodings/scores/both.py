"""Tables of encodings that compute anew: the positions of both tokens of every pair."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions import Integers, checked
from posenc.positions.checks import checked_within

REACH = 2**56
"""A bound of positions that are moved: where they go, and their differences, stay int64."""


def both_positions(
    q_positions: Int64[Tensor, "*batch q_len"] | Integers,
    k_positions: Int64[Tensor, "*batch k_len"] | Integers,
    reach: int | None = None,
) -> Int64[Tensor, "*batch 2 q_len k_len"]:
    """The position of the query and of the key, for every pair.

    Args:
        q_positions: Those of the queries.
        k_positions: Those of the keys.
        reach: A bound of their size.

    Raises:
        TypeError: Positions are not integers.
        ValueError: A position goes beyond ``reach``.

    Example:
        >>> both_positions([5], [3, 4])
        tensor([[[5, 5]],
        <BLANKLINE>
                [[3, 4]]])
    """
    given = ((q_positions, "q_positions"), (k_positions, "k_positions"))
    if reach is None:
        queries, keys = (checked(positions, name) for positions, name in given)
    else:
        queries, keys = (checked_within(each, -reach, reach, name) for each, name in given)
    return torch.stack(torch.broadcast_tensors(queries[..., None], keys[..., None, :]), dim=-3)


def of_each(
    table: Int64[Tensor, "*batch 2 q_len k_len"],
) -> tuple[Int64[Tensor, "*batch q_len"], Int64[Tensor, "*batch k_len"]]:
    """The positions of the queries, and those of the keys, which ``both_positions`` put together.

    Example:
        >>> [each.tolist() for each in of_each(both_positions([5], [3, 4]))]
        [[5], [3, 4]]
    """
    # A sum over one entry, or over none where there are no keys or no queries.
    return table[..., 0, :, :1].sum(-1), table[..., 1, :1, :].sum(-2)
