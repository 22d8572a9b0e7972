"""A long run of positions, built in blocks at the speed of a few multiplications a value.

Three small exact tables (positions of a block's start, of a row's start in it, of the rest) are
joined by the addition theorem in float64,

    cos(a + b) = cos a cos b − sin a sin b,    sin(a + b) = sin a cos b + cos a sin b,

and v − e and v + e are rounded, where e bounds the error of v. Where both give one number, that
number is correctly rounded (Ziv 1991). The few that differ are computed again from their phase.
A table is written as a whole, cosines and sines by one operation.
"""

from math import isqrt

import torch
from torch import Tensor

from posenc.frequencies.schedule import TURN_BITS
from posenc.numerics.columns import Columns
from posenc.numerics.exact import round_for_certain
from posenc.numerics.phases import TURNS_TO_RADIANS, cos_sin_of, phases, turn_limbs
from posenc.positions import consecutive

BLOCK_PHASES = 1 << 16  # a block of so many stays in cache

SUM_ERROR = 2.0**-47
"""Bound on |v − truth| after two joins of exact values within 3 ulp (2.5·2^-49 by adding up) and
the additions of e itself (2·2^-53)."""

HALF_STEP = 2.0**-24
"""Half a float32 step at 1, and then some: torch reaches 16-bit dtypes by way of float32."""


def fill(columns: Columns, first: int, turns: tuple[int, ...], factor: float = 1.0) -> None:
    """Write the rows of the positions ``first, first + 1, …``, correctly rounded.

    The table has one axis of rows, and any dtype below float64.
    """
    table, length, device = columns.table, len(columns.table), columns.table.device
    limbs = turn_limbs(turns, device)
    rows = min(length, max(1, BLOCK_PHASES // len(turns)))
    begins = range(0, length, rows)
    starts = torch.tensor(begins, dtype=torch.int64, device=device) + first
    (fine_cos, fine_sin), (start_cos, start_sin) = _fine_and_starts(rows, starts, limbs)

    def pair(for_cos: Tensor, for_sin: Tensor) -> Tensor:
        # As cos and sin stand in the table, so that one operation serves both.
        here = (for_cos, for_sin) if columns.cos_first else (for_sin, for_cos)
        return torch.stack(here, dim=columns.axis)

    fine_cos, fine_sin = pair(fine_cos, fine_cos), pair(fine_sin, fine_sin)
    left, right = pair(start_cos, start_sin) * factor, pair(-start_sin, start_cos) * factor
    error = _error(starts, rows, turns, table.dtype, pair) * abs(factor)
    value = torch.empty_like(fine_cos)
    above = torch.empty(fine_cos.shape, dtype=table.dtype, device=device)
    doubtful = []
    for index, begin in enumerate(begins):
        here = slice(0, min(rows, length - begin))
        v, up, down = value[here], above[here], table[begin : begin + rows]
        torch.addcmul(-error[index], fine_cos[here], left[index], out=v)
        v.addcmul_(fine_sin[here], right[index])
        down.copy_(v)
        up.copy_(v.add_(2 * error[index]))
        # Rounding is monotone, so no difference is negative and none cancels another.
        if torch.sub(up, down, out=up).sum() != 0:
            places = up.nonzero()
            places[:, 0] += begin
            doubtful.append(places)
    if doubtful:
        _settle(columns, torch.cat(doubtful), first, limbs, factor)
    if first <= 0 < first + length:
        # What −e, rounded to a dtype that has no such small number, made −0.
        columns.sin[-first] = 0.0


def _fine_and_starts(rows: int, starts: Tensor, limbs: Tensor):
    """(cos, sin) of 0 … rows − 1 within 2^-49, from about 2·√rows exact rows; those of starts."""
    step = isqrt(rows) + 1
    ones = consecutive(step, device=limbs.device)
    exact = cos_sin_of(phases(torch.cat([ones, ones * step, starts])[:, None], limbs))
    (cos_b, cos_a, start_cos), (sin_b, sin_a, start_sin) = (
        part.split([step, step, len(starts)]) for part in exact
    )
    cos_a, sin_a = cos_a[:, None], sin_a[:, None]
    cos = (cos_a * cos_b - sin_a * sin_b).flatten(0, 1)
    sin = (sin_a * cos_b + cos_a * sin_b).flatten(0, 1)
    return (cos[:rows], sin[:rows]), (start_cos, start_sin)


def _error(starts: Tensor, rows: int, turns: tuple[int, ...], dtype: torch.dtype, pair) -> Tensor:
    """e for every block and channel; as |sin x| ≤ |x|, small sines are known as much better."""
    radians = [abs(turn) * 2.0 ** (64 - TURN_BITS) * TURNS_TO_RADIANS for turn in turns]
    radians = torch.tensor(radians, dtype=torch.float64, device=starts.device)
    reach = ((starts.double().abs() + rows)[:, None] * radians).clamp(max=1.0)
    error = SUM_ERROR + (HALF_STEP if dtype != torch.float32 else 0.0)
    return pair(torch.ones_like(reach), reach) * error


def _settle(columns: Columns, places: Tensor, first: int, limbs: Tensor, factor: float) -> None:
    """Compute the values at ``places`` again, each from its own phase."""
    row, plane, column = places[:, 0], places[:, columns.axis], places[:, -3 - columns.axis]
    phase = phases(row + first, limbs[:, column])
    cos, sin = round_for_certain(phase, columns.table.dtype, factor)
    columns.table[places.unbind(1)] = torch.where((plane == 0) == columns.cos_first, cos, sin)
