"""cos and sin at fractions of a turn whose denominators differ from token to token.

DETR counts y of H rows as y / (H + ε), and images of a batch have different H. A fraction n/d of
whole numbers is divided at length, 96 binary digits behind its point, and each run of 32 digits
meets frequencies that are as much smaller: the phase of the whole is the sum of theirs, exact to
some 2^-96 of a turn, on every device and inside graphs.
"""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc._rounding import rounded
from posenc.guards import floating, has_float64, may_look
from posenc.numerics.exact import round_for_certain
from posenc.numerics.phases import LIMB, Phases, added, cos_sin_of, phases, turn_limbs

HALF = LIMB // 2

LARGEST = 2**46
"""A bound of denominators: a remainder and 16 more digits are an int64."""


def quotient_cos_sin(
    numerators: Int64[Tensor, "*shape"],
    denominators: Int64[Tensor, "*shape"],
    turns: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "*shape frequencies"], Float[Tensor, "*shape frequencies"]]:
    """cos and sin of numerator / denominator · turns · 2^-192, rounded once.

    Denominators are from 1 to 2^46.
    """
    dtype = floating(dtype)
    if not has_float64(numerators.device):
        made = quotient_cos_sin(numerators.cpu(), denominators.cpu(), turns, dtype)
        return made[0].to(numerators.device), made[1].to(numerators.device)
    if not may_look(numerators) or not may_look(denominators):
        cos, sin = cos_sin_of(_phases(numerators, denominators, turns))
        return rounded(cos, dtype), rounded(sin, dtype)
    # Many tokens share a row or a column, and with it their quotient.
    pairs = torch.stack((numerators, denominators)).flatten(1)
    (above, below), which = pairs.unique(dim=1, return_inverse=True)
    phase, which = _phases(above, below, turns), which.view(numerators.shape)
    cos, sin = cos_sin_of(phase) if dtype == torch.float64 else round_for_certain(phase, dtype)
    return cos[which], sin[which]


def _phases(numerators: Tensor, denominators: Tensor, turns: tuple[int, ...]) -> Phases:
    whole = numerators.div(denominators, rounding_mode="floor")
    rest = numerators - whole * denominators
    total = phases(whole.unsqueeze(-1), turn_limbs(turns, whole.device))
    for place in range(1, 4):
        digits, rest = _digits(rest, denominators)
        smaller = tuple(turn >> (LIMB * place) for turn in turns)
        part = phases(digits.unsqueeze(-1), turn_limbs(smaller, whole.device))
        total = added(total, part)
    return total


def _digits(rest: Tensor, denominators: Tensor) -> tuple[Tensor, Tensor]:
    """The next 32 binary digits of rest / denominator, and what remains of it."""
    digits = torch.zeros_like(rest)
    for _ in range(2):
        rest = rest << HALF
        step = rest.div(denominators, rounding_mode="floor")
        digits, rest = (digits << HALF) + step, rest - step * denominators
    return digits, rest
