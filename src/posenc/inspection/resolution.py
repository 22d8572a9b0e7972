"""How many of so many positions stay distinct when something is held in a narrow dtype."""

from dataclasses import dataclass

import torch

from posenc.encodings.base import TokenEncoding
from posenc.guards import floating
from posenc.inspection.similarity import unique_up_to
from posenc.positions import consecutive


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
