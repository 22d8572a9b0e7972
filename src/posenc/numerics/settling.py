"""Rounding for certain: the few values that float64 leaves in doubt are computed in integers.

A float64 value v within d of the truth is rounded twice, as v·(1 − d) and v·(1 + d). Where both
give one number, that number is right (Ziv 1991). Where they do not, which befalls one value in
millions, or one that somebody looked for, cos and sin are summed again to some 380 bits.
"""

from math import isfinite

import torch
from torch import Tensor

from posenc._rounding import rounded
from posenc.numerics.in_integers import exact_value
from posenc.numerics.phases import Phases, cos_sin_of

DOUBT = 2.0**-49
"""d: 3 units in the last place, and what a factor and the products with 1 ± d round away."""

WORD = 64


def round_for_certain(
    phase: Phases, dtype: torch.dtype, factor: float = 1.0
) -> tuple[Tensor, Tensor]:
    """factor · cos and factor · sin of each phase, correctly rounded; values must be known.

    Example:
        >>> eighth, none = torch.tensor([2**61]), torch.tensor([0])
        >>> round_for_certain(Phases(eighth, none, none), torch.float16, -2.0)
        (tensor([-1.4141], dtype=torch.float16), tensor([-1.4141], dtype=torch.float16))
    """
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
