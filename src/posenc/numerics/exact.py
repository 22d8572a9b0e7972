"""cos and sin of phases, rounded for certain.

A float64 value v within d of the truth is rounded twice, as v·(1 − d) and v·(1 + d). Where both
give one number, that number is right (Ziv 1991). Where they do not, which befalls one value in
millions, or one that somebody looked for, ``in_integers`` sums cos and sin again, right to some
380 bits.
"""

from collections.abc import Sequence
from functools import reduce
from math import isfinite

import torch
from jaxtyping import Float
from torch import Tensor

from posenc._rounding import rounded
from posenc.guards import may_look
from posenc.numerics.in_integers import exact_value
from posenc.numerics.phases import (
    Phases,
    Summand,
    added,
    cos_sin_of,
    phases,
    phases_of_sum,
    turn_limbs,
)

CHUNK_PHASES = 1 << 14  # so many at a time stay in cache
DOUBT = 2.0**-49  # d: 3 units in the last place, and what a factor and the products round away
WORD = 64


def cos_sin_of_sum(
    parts: Sequence[Summand], dtype: torch.dtype, factor: float = 1.0
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """factor · cos and factor · sin of Σ steps · turns, rounded once.

    Where nobody can ask whether a value is in doubt, it is within 0.5000001 units in the last
    place; elsewhere it is correctly rounded, but for float64.
    """
    shape, count = parts[0].steps.shape, len(parts[0].turns)
    if not all(may_look(each.steps) for each in parts):
        cos, sin = cos_sin_of(_fused(parts))
        return rounded(cos * factor, dtype), rounded(sin * factor, dtype)

    if shape.numel() * count <= CHUNK_PHASES:
        return _at(parts, dtype, factor)
    rows = max(1, CHUNK_PHASES // count)
    whole = torch.empty(2, shape.numel(), count, dtype=dtype, device=parts[0].steps.device)
    flat = [each.steps.flatten() for each in parts]
    for begin in range(0, shape.numel(), rows):
        here = slice(begin, begin + rows)
        few = [Summand(at[here], each.turns) for at, each in zip(flat, parts, strict=True)]
        for made, place in zip(_at(few, dtype, factor), whole[:, here], strict=True):
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


def round_for_certain(
    phase: Phases, dtype: torch.dtype, factor: float = 1.0
) -> tuple[Tensor, Tensor]:
    """factor · cos and factor · sin of each phase, correctly rounded; values must be known."""
    both = torch.stack(cos_sin_of(phase))
    if factor != 1.0:
        both = both * factor
    below, above = rounded(torch.stack((both * (1 - DOUBT), both * (1 + DOUBT))), dtype)
    doubtful = below != above
    if isfinite(factor) and doubtful.any():
        below[doubtful] = rounded(_exactly(phase, doubtful, factor), dtype)
    cos, sin = below
    return cos, sin


def _exactly(phase: Phases, doubtful: Tensor, factor: float) -> Tensor:
    """The values where ``doubtful``, in float64 rounded to odd."""
    words = torch.stack([word.expand(doubtful.shape)[doubtful] for word in phase])
    which = doubtful.nonzero()[:, :1].mT  # 0: cos, 1: sin
    # A position may stand in every row of a batch.
    asked, each = torch.cat((words, which)).unique(dim=1, return_inverse=True)
    values = [exact_value(_joined(words), bool(sine), factor) for *words, sine in asked.mT.tolist()]
    return torch.tensor(values, dtype=torch.float64, device=doubtful.device)[each]


def _joined(words: list[int]) -> int:
    high, middle, low = (word % 2**WORD for word in words)
    return (high << (2 * WORD)) + (middle << WORD) + low
