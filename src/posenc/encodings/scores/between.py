"""Sums over the tokens between a key and its query, for encodings that count content."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.guards import widest


def sums_after_key(
    values: Float[Tensor, "*batch #heads #q_len k_len"],
    distance: Int64[Tensor, "*rows q_len k_len"],
) -> Float[Tensor, "*batch #heads q_len k_len"]:
    """Σ values[i, l] over the tokens l that stand after key j and not after query i.

    Keys come in the order of their row. Where positions fall, a new document begins, and tokens of
    another document do not count; neither does padding, which shares the position of a real token
    (see ``posenc.positions.left_padded``), nor a token that shares the position of the one before
    it, since nothing tells the two apart. So a packed or padded row gives what each document gives
    alone. Sums run in float64, since those of later documents are taken off again.

    Args:
        values: One number for each key, or for each pair.
        distance: q − k; it alone says where documents begin and how keys are ordered.

    Raises:
        ValueError: There are other keys, or other queries, on one side than on the other.

    Example:
        >>> from posenc.positions import checked_distances
        >>> values = torch.tensor([[[1.0, 2.0, 4.0]]])
        >>> sums_after_key(values, checked_distances(range(3), range(3)))
        tensor([[[0., 0., 0.],
                 [2., 0., 0.],
                 [6., 4., 0.]]])
    """
    queries, keys = distance.shape[-2:]
    if values.shape[-1] != keys or values.shape[-2] not in (1, queries):
        raise ValueError(
            f"values have shape {tuple(values.shape)} and distances {tuple(distance.shape)}; there "
            f"is one value for each of {keys} keys, or for each of {queries} × {keys} pairs. Pass "
            f"the positions of the queries and keys that the values are of."
        )
    step = distance[..., :1, :-1] - distance[..., :1, 1:]  # from one key to the next
    # The first token of a document is after none of it; padding repeats a position.
    rises = F.pad(step > 0, (1, 0), value=False)
    counted = (rises & (distance >= 0)).unsqueeze(-3)
    wide = torch.promote_types(values.dtype, widest(values.device))
    counted_values = torch.where(counted, values, 0).to(wide)
    after = counted_values.flip(-1).cumsum(-1).flip(-1) - counted_values
    last = _last_of_document(step < 0).unsqueeze(-3).expand(after.shape)
    return (after - after.gather(-1, last)).to(values.dtype)


def _last_of_document(falls: Tensor) -> Tensor:
    """For each key the index of the last key of its document."""
    ends = F.pad(falls, (0, 1), value=True)
    index = torch.arange(ends.shape[-1], device=ends.device)
    at_ends = torch.where(ends, index, ends.shape[-1])
    return at_ends.flip(-1).cummin(-1).values.flip(-1)
