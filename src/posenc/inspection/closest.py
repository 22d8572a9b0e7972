"""The closest pair of positions where sines and cosines do not come in pairs."""

from heapq import nsmallest

import torch
from jaxtyping import Float
from torch import Tensor

from posenc.encodings.tokens import Sinusoidal

CANDIDATES = 32
LOST = 1e-10
"""Squared distances below this, a column, are differences of sums that round as much."""


def closest_positions(encoding: Sinusoidal, rows: Float[Tensor, "length dim"]) -> tuple[int, int]:
    """The two nearest of the positions 0 … length − 1, whose rows are given in float64.

    With t the position as the convention counts it,

    sin tω · sin uω = ½ (cos(u − t)ω − cos(t + u)ω)
    cos tω · cos uω = ½ (cos(u − t)ω + cos(t + u)ω)

    so PE(p) · PE(q) = D[q − p] + S[p + q]: two sequences of a few times ``length`` numbers hold all
    products, and |PE(p) − PE(q)|² = 2 D[0] + S[2p] + S[2q] − 2 D[q − p] − 2 S[p + q]. The sequences
    follow from the rows: neighbors give S, the first row gives D. So a pair costs three additions,
    whatever the width. Of one column the two nearest are neighbors in its order; and where rows are
    so near each other that these sums are rounding, the order of one column says which to measure.

    Example:
        >>> encoding = Sinusoidal(8, convention="per_dimension")
        >>> rows = encoding.table(torch.arange(60), dtype=torch.float64)
        >>> closest_positions(encoding, rows)
        (20, 21)
    """
    length = len(rows)
    if encoding.dim == 1:  # so near each other that squares of distances are lost in rounding
        return _neighbors(rows[:, 0])
    near = torch.zeros(length, dtype=torch.float64)
    channels = encoding.convention.channels(encoding.dim, encoding.base)
    rotating = torch.tensor([c.frequency for c in channels if c.frequency], dtype=torch.float64)
    near[:2] = torch.stack([(k * rotating).cos().sum() / 2 for k in (0, 1)])
    # S of even sums from each row with itself, of odd ones from each row with the next.
    even = rows.square().sum(1) - near[0]
    odd = (rows[1:] * rows[:-1]).sum(1) - near[1]
    far = torch.empty(2 * length - 1, dtype=torch.float64)
    far[::2], far[1::2] = even, odd
    near[2:] = (rows[2:] @ rows[0]) - far[2:length]
    found = []
    for offset in range(1, length):
        half = offset // 2
        between = (odd if offset % 2 else even)[half : half + length - offset]
        apart = even[: length - offset] + even[offset:] - 2 * between
        least = int(apart.argmin())
        squared = 2 * (near[0] - near[offset]).item() + apart[least].item()
        found.append((squared, least, least + offset))
    # The sums above round; the few best are measured row by row.
    measured = [
        ((rows[first] - rows[second]).norm().item(), first, second)
        for _, first, second in nsmallest(CANDIDATES, found)
    ]
    best = min(measured, key=lambda each: each[0])
    if best[0] ** 2 < LOST * encoding.dim:
        best = _nearer(rows, best)
    return best[1:]


def _nearer(
    rows: Float[Tensor, "length dim"], best: tuple[float, int, int]
) -> tuple[float, int, int]:
    """The nearest pair, given one: two that are nearer are as near in every column.

    So only those are measured that are in the column with the longest range.
    """
    widest = int((rows.amax(0) - rows.amin(0)).argmax())
    column, places = rows[:, widest].sort(stable=True)
    for step in range(1, len(rows)):
        near = (column[step:] - column[:-step] < best[0]).nonzero()[:, 0]
        if not len(near):
            break
        one, other = places[near], places[near + step]
        away = (rows[one] - rows[other]).norm(dim=1)
        least = int(away.argmin())
        if (distance := away[least].item()) < best[0]:
            first, second = sorted((int(one[least]), int(other[least])))
            best = distance, first, second
    return best


def _neighbors(column: Float[Tensor, "length"]) -> tuple[int, int]:
    """The places of the two nearest numbers, the earlier first."""
    ordered, places = column.sort(stable=True)
    nearest = int(ordered.diff().argmin())
    first, second = sorted(places[nearest : nearest + 2].tolist())
    return first, second
