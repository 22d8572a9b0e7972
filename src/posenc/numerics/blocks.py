"""A long run of positions, built in blocks at the speed of a few multiplications a value.

Three small exact tables (positions of a block's start, of a row's start in it, of the rest) are
joined by the addition theorem in float64,

    cos(a + b) = cos a cos b − sin a sin b,    sin(a + b) = sin a cos b + cos a sin b,

and v − e and v + e are rounded, where e bounds the error of v. Where both give one number, that
number is correctly rounded (Ziv 1991). The few that differ are computed again from their phase.
"""

from math import isqrt

import torch
from torch import Tensor

from posenc.numerics.frequencies.schedule import TURN_BITS
from posenc.numerics.phases import cos_sin_of, phases, turn_limbs
from posenc.numerics.positions import plain
from posenc.numerics.rounding import rounded

BLOCK_PHASES = 1 << 16
"""A block of so many phases stays in cache."""

SUM_ERROR = 2.0**-47
"""Bound on |v − truth| after two joins of exact values within 3 ulp (2.5·2^-49 by adding up)."""

HALF_STEP = 2.0**-24
"""Half a float32 step at 1, and then some: torch reaches 16-bit dtypes by way of float32."""


def fill(cos: Tensor, sin: Tensor, first: int, turns: tuple[int, ...]) -> None:
    """Write the rows ``first, first + 1, …`` of a table, correctly rounded to its dtype.

    Args:
        cos: ``[length, frequencies]``, written in place; any strides, any dtype below float64.
        sin: The same.
        first: Position of the first row.
        turns: Frequencies as fixed-point turns a position.
    """
    length, device = len(cos), cos.device
    limbs = turn_limbs(turns, device)
    rows = min(length, max(1, BLOCK_PHASES // len(turns)))
    fine_cos, fine_sin = _fine(rows, limbs)
    begins = range(0, length, rows)
    starts = torch.tensor(begins, dtype=torch.int64, device=device) + first
    coarse_cos, coarse_sin = cos_sin_of(phases(starts[:, None], limbs))

    radians = [abs(turn) * 6.2831853071796 / 2**TURN_BITS for turn in turns]
    radians = torch.tensor(radians, dtype=torch.float64, device=device)
    error = SUM_ERROR + (HALF_STEP if cos.dtype != torch.float32 else 0.0)
    value, edge = torch.empty_like(fine_cos), torch.empty_like(fine_cos)
    above = torch.empty(fine_cos.shape, dtype=cos.dtype, device=device)
    doubtful = []
    for index, begin in enumerate(begins):
        here = slice(0, min(rows, length - begin))
        v, e, up = value[here], edge[here], above[here]
        # |sin x| ≤ |x|: slow sines are small, and known as much better.
        reach = ((abs(first + begin) + rows) * radians).clamp(max=1.0)
        cos_a, sin_a = coarse_cos[index], coarse_sin[index]
        for plane, left, right, bound in (
            (0, cos_a, -sin_a, torch.full_like(reach, error)),
            (1, sin_a, cos_a, error * reach),
        ):
            torch.mul(fine_cos[here], left, out=v)
            v.addcmul_(fine_sin[here], right)
            down = (cos, sin)[plane][begin : begin + rows]
            down.copy_(torch.sub(v, bound, out=e))
            up.copy_(torch.add(v, bound, out=e))
            # Rounding is monotone, so no difference is negative and none cancels another.
            if torch.sub(up, down, out=up).sum() != 0:
                row, column = up.nonzero(as_tuple=True)
                doubtful.append((plane, row + begin, column))
    for plane, table in enumerate((cos, sin)):
        places = [(row, column) for where, row, column in doubtful if where == plane]
        if places:
            row, column = (torch.cat(parts) for parts in zip(*places, strict=True))
            exact = cos_sin_of(phases(row + first, limbs[:, column]))[plane]
            table[row, column] = rounded(exact, table.dtype)


def _fine(rows: int, limbs: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of 0 … rows − 1 in float64, within 2^-49, from about 2·√rows exact rows."""
    step = isqrt(rows) + 1
    ones = plain(step, device=limbs.device)
    cos_b, sin_b = cos_sin_of(phases(ones[:, None], limbs))
    cos_a, sin_a = cos_sin_of(phases((ones * step)[:, None, None], limbs[:, None]))
    cos = (cos_a * cos_b - sin_a * sin_b).flatten(0, 1)
    sin = (sin_a * cos_b + cos_a * sin_b).flatten(0, 1)
    return cos[:rows].contiguous(), sin[:rows].contiguous()
