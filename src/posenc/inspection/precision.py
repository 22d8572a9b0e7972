"""What narrow dtypes lose: errors of cosines and sines, and positions that become the same."""

from bisect import bisect_left
from dataclasses import dataclass

import torch

from posenc.encodings.base import TokenEncoding
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import FromCheckpoint, Schedule
from posenc.guards import floating
from posenc.positions import consecutive

WINDOW = 1024
"""So many positions before the target length are looked at: the error grows with the position."""


@dataclass(frozen=True)
class Precision:
    """What is lost at a length, where something is held in floating point."""

    dtype: str  #: in which positions and frequencies are held
    #: largest error of cosines and sines of the last positions, with float32 frequencies and angles
    float32_error: float
    #: the same with frequencies that were rounded to ``dtype`` before, as those of a module after
    #: ``.to(dtype)``
    frequency_error: float
    first_shared: int  #: the first position p that is the same number as p + 1 in ``dtype``
    sharing: int  #: how many positions are the same number as the last one in ``dtype``


def precision_of(schedule: Schedule, length: int, dtype: torch.dtype = torch.bfloat16) -> Precision:
    """What is lost at positions up to ``length`` − 1.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> precision = precision_of(Geometric(128), 4096)
        >>> precision.first_shared, precision.sharing, precision.float32_error < 1e-3
        (256, 8, True)
    """
    rounded = FromCheckpoint(schedule.float32("float32").to(floating(dtype)))
    return Precision(
        dtype=str(dtype).removeprefix("torch."),
        float32_error=_error(schedule, schedule, length),
        frequency_error=_error(rounded, schedule, length, schedule.attention_factor),
        first_shared=int(2 / torch.finfo(dtype).eps),
        sharing=_sharing(length - 1, dtype),
    )


def _error(held: Schedule, meant: Schedule, length: int, factor: float = 1.0) -> float:
    """Largest difference of a float32 table from the exact one, among the last positions."""
    count = min(length, WINDOW)
    positions = consecutive(count, start=length - count)
    exact = Rotary(meant).table(positions, dtype=torch.float64)
    common = Rotary(held, arithmetic="float32").table(positions).double() * factor
    return (common - exact).abs().max().item()


def _sharing(last: int, dtype: torch.dtype) -> int:
    """How many whole numbers from 0 to ``last`` are rounded to the same as ``last``."""

    def held(position: int) -> float:
        return torch.tensor(position).to(dtype).item()

    return last + 1 - bisect_left(range(last + 1), held(last), key=held)


@dataclass(frozen=True)
class Resolution:
    """Positions that can still be told apart."""

    length: int  #: number of positions that were looked at
    positions: int  #: different numbers among the positions themselves, held in the dtype
    rows: int  #: different rows of the table, rounded to the dtype once
    rows_from_positions: int  #: different rows of the table at the rounded positions


def resolution(
    encoding: TokenEncoding, length: int, *, dtype: torch.dtype = torch.bfloat16
) -> Resolution:
    """Count distinct positions and rows among 0 … length − 1.

    Example:
        >>> from posenc import Sinusoidal
        >>> resolution(Sinusoidal(128), 4096)
        Resolution(length=4096, positions=769, rows=4096, rows_from_positions=769)
    """
    held = consecutive(length).to(floating(dtype))
    if not held.isfinite().all():
        raise ValueError(f"Position {length - 1} is infinite in {dtype}.")
    rounded = encoding.table(held.long(), dtype=dtype).detach()
    rows = unique_up_to(encoding, length, dtype=dtype)
    return Resolution(length, len(held.unique()), rows, len(rounded.unique(dim=0)))


def unique_up_to(
    encoding: TokenEncoding, length: int, *, dtype: torch.dtype = torch.float32
) -> int:
    """How many of the positions 0 … length − 1 have a row of their own, rounded once to ``dtype``.

    Example:
        >>> from posenc import Sinusoidal
        >>> unique_up_to(Sinusoidal(64), 5000), unique_up_to(Sinusoidal(64, base=1.0), 5000)
        (5000, 5000)
    """
    table = encoding.table(consecutive(length), dtype=floating(dtype)).detach()
    return len(table.unique(dim=0))
