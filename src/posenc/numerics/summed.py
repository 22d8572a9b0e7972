"""cos and sin of a sum of phases, which are added while they are integers."""

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from posenc._rounding import rounded
from posenc.guards import may_look
from posenc.numerics.digits import phases_of_sum
from posenc.numerics.phases import Phases, Summand, added, cos_sin_of, phases, turn_limbs
from posenc.numerics.settling import round_for_certain

CHUNK_PHASES = 1 << 14
"""So many phases at a time stay in cache."""


def cos_sin_of_sum(
    parts: Sequence[Summand], dtype: torch.dtype, factor: float = 1.0
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """factor · cos and factor · sin of Σ steps · turns, rounded once.

    Where nobody can ask whether a value is in doubt, it is within 0.5000001 units in the last
    place; elsewhere it is correctly rounded, but for float64.

    Args:
        parts: What the phases add up from; steps of one shape, and as many turns of each.
        dtype: The dtype of the values.
        factor: What both are multiplied with.

    Example:
        >>> from posenc.numerics.phases import Summand
        >>> there = Summand(torch.tensor([1]), (1 << 189,))  # an eighth of a turn
        >>> cos_sin_of_sum([there, there._replace(steps=torch.tensor([-1]))], torch.float32)
        (tensor([[1.]]), tensor([[0.]]))
    """
    shape, count = parts[0].steps.shape, len(parts[0].turns)
    if not all(may_look(each.steps) for each in parts):
        cos, sin = cos_sin_of(_fused(parts))
        return rounded(cos * factor, dtype), rounded(sin * factor, dtype)

    if shape.numel() * count <= CHUNK_PHASES:
        return _at(parts, dtype, factor)
    rows = max(1, CHUNK_PHASES // count)
    whole = torch.empty(2, shape.numel(), count, dtype=dtype, device=parts[0].steps.device)
    chunks = zip(*(each.steps.flatten().split(rows) for each in parts), strict=True)
    for some, to in zip(chunks, whole.split(rows, dim=1), strict=True):
        few = [each._replace(steps=steps) for each, steps in zip(parts, some, strict=True)]
        for made, place in zip(_at(few, dtype, factor), to, strict=True):
            place.copy_(made)
    cos, sin = whole.view(2, *shape, count)
    return cos, sin


def _at(parts: Sequence[Summand], dtype: torch.dtype, factor: float) -> tuple[Tensor, Tensor]:
    phase = phases_of_sum(parts)
    if dtype != torch.float64:
        return round_for_certain(phase, dtype, factor)
    cos, sin = cos_sin_of(phase)
    return cos * factor, sin * factor


def _fused(parts: Sequence[Summand]) -> Phases:
    """Their phases added, by operations of one element at a time, which graphs fuse."""
    each = [phases(steps.unsqueeze(-1), turn_limbs(turns, steps.device)) for steps, turns in parts]
    return reduce(added, each)
