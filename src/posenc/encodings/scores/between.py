"""What encodings share that read the tokens between a key and its query, or beside a key.

They know documents and padding by positions: where positions fall a document begins, and a token at
the position of the one before it is padding (``posenc.positions.left_padded``).
"""

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

from posenc.encodings.shapes import Distances
from posenc.guards import widest


def steps_of_keys(distance: Distances) -> Int64[Tensor, "*rows steps"]:
    """From each key to the next, how far positions go."""
    step = distance[..., :1, :-1] - distance[..., :1, 1:]
    return step.sum(-2)  # over one query, or over none


def sums_after_key(
    values: Float[Tensor, "*batch #heads #q_len k_len"], distance: Distances
) -> Float[Tensor, "*batch #heads q_len k_len"]:
    """Σ values[i, l] over tokens l of a document after key j and up to query i, in float64."""
    step = steps_of_keys(distance).unsqueeze(-2)
    # The first token of a document comes after none of it.
    rises = F.pad(step > 0, (1, 0), value=False)
    counted = (rises & (distance >= 0)).unsqueeze(-3)
    wide = torch.promote_types(values.dtype, widest(values.device))
    counted_values = torch.where(counted, values, 0).to(wide)
    after = counted_values.flip(-1).cumsum(-1).flip(-1) - counted_values
    last = _last_of_document(step < 0).unsqueeze(-3).expand(after.shape)
    return (after - after.gather(-1, last)).to(values.dtype)


def _last_of_document(falls: Bool[Tensor, "*rows steps"]) -> Int64[Tensor, "*rows k_len"]:
    """For each key the index of the last key of its document."""
    ends = F.pad(falls, (0, 1), value=True)
    index = torch.arange(ends.shape[-1], device=ends.device)
    at_ends = torch.where(ends, index, ends.shape[-1])
    return at_ends.flip(-1).cummin(-1).values.flip(-1)
