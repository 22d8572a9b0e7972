"""Tables of encodings that compute anew: the positions of both tokens of every pair."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions import Integers, checked


def both_positions(
    q_positions: Int64[Tensor, "*batch q_len"] | Integers,
    k_positions: Int64[Tensor, "*batch k_len"] | Integers,
) -> Int64[Tensor, "*batch 2 q_len k_len"]:
    """The position of the query and of the key, for every pair.

    Example:
        >>> both_positions([5], [3, 4])
        tensor([[[5, 5]],
        <BLANKLINE>
                [[3, 4]]])
    """
    queries, keys = checked(q_positions, "q_positions"), checked(k_positions, "k_positions")
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
