"""The distance of every query from every key, in integers that cannot wrap."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.positions.checks import Integers, checked

FARTHEST = 2**63 - 1
SAFE = 2**62  # the difference of two smaller numbers is an int64


def pair_distances(
    q_positions: Int64[Tensor, "*batch q_len"], k_positions: Int64[Tensor, "*batch k_len"]
) -> Int64[Tensor, "*batch q_len k_len"]:
    """q_position − k_position of every pair; what would leave int64 stays at its end.

    So a key far behind its query is never taken for one far ahead of it.

    Example:
        >>> pair_distances(torch.tensor([2]), torch.tensor([0, 1, 2]))
        tensor([[2, 1, 0]])
        >>> pair_distances(torch.tensor([2**63 - 1]), torch.tensor([-2])) == 2**63 - 1
        tensor([[True]])
    """
    queries, keys = q_positions.unsqueeze(-1), k_positions.unsqueeze(-2)
    found = queries - keys
    if _lie_close(q_positions) and _lie_close(k_positions):
        return found
    # A difference has wrapped where its sign is not that of the query, though the key's is neither.
    wrapped = ((queries ^ keys) & (queries ^ found)) < 0
    ends = torch.where(queries < 0, -FARTHEST - 1, FARTHEST)
    return torch.where(wrapped, ends, found)


def checked_distances(q_positions: Integers, k_positions: Integers) -> Int64[Tensor, "..."]:
    """``pair_distances`` of what callers give: checked, and made int64 tensors.

    Raises:
        TypeError: Positions are not integers.

    Example:
        >>> checked_distances(range(2), range(2))
        tensor([[ 0, -1],
                [ 1,  0]])
    """
    return pair_distances(checked(q_positions, "q_positions"), checked(k_positions, "k_positions"))


def _lie_close(positions: Tensor) -> bool:
    """Whether a look, which costs nothing on a CPU, shows that no difference can wrap."""
    if not positions.is_cpu or not may_look(positions):
        return False
    if not positions.numel():
        return True
    low, high = (int(end) for end in positions.aminmax())
    return -SAFE < low and high < SAFE
