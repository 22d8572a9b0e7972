"""cos and sin of a sum of phases, which are added while they are integers."""

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._guards import may_look
from posenc.numerics.phases import added, cos_sin_of, phases
from posenc.numerics.rounding import rounded
from posenc.numerics.settling import round_for_certain

CHUNK_PHASES = 1 << 16
"""So many phases at a time stay in cache."""

Part = tuple[Int64[Tensor, "*shape"], Int64[Tensor, "limbs frequencies"]]
"""Steps, and the limbs of the turns of one step."""


def cos_sin_of_sum(
    parts: Sequence[Part], dtype: torch.dtype, factor: float = 1.0
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """factor · cos and factor · sin of Σ steps · turns, rounded once.

    Where nobody can ask whether a value is in doubt, it is within 0.5000001 units in the last
    place; elsewhere it is correctly rounded, but for float64.

    Args:
        parts: What the phases add up from; steps of one shape, and as many frequencies of each.
        dtype: The dtype of the values.
        factor: What both are multiplied with.

    Example:
        >>> from posenc.numerics.phases import turn_limbs
        >>> eighth = turn_limbs((1 << 189,))
        >>> cos_sin_of_sum([(torch.tensor([1]), eighth), (torch.tensor([-1]), eighth)],
        ...                torch.float32)
        (tensor([[1.]]), tensor([[0.]]))
    """
    shape, count = parts[0][0].shape, parts[0][1].shape[-1]
    settles = all(may_look(steps) for steps, _ in parts)

    def at(*several: Tensor) -> tuple[Tensor, Tensor]:
        each = [
            phases(steps.unsqueeze(-1), limbs)
            for steps, (_, limbs) in zip(several, parts, strict=True)
        ]
        phase = reduce(added, each)
        if settles and dtype != torch.float64:
            return round_for_certain(phase, dtype, factor)
        cos, sin = cos_sin_of(phase)
        return rounded(cos * factor, dtype), rounded(sin * factor, dtype)

    if not settles or shape.numel() * count <= CHUNK_PHASES:
        return at(*(steps for steps, _ in parts))
    rows = max(1, CHUNK_PHASES // count)
    whole = torch.empty(2, shape.numel(), count, dtype=dtype, device=parts[0][0].device)
    chunks = zip(*(steps.flatten().split(rows) for steps, _ in parts), strict=True)
    for some, to in zip(chunks, whole.split(rows, dim=1), strict=True):
        for made, place in zip(at(*some), to, strict=True):
            place.copy_(made)
    cos, sin = whole.view(2, *shape, count)
    return cos, sin
