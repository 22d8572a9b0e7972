"""Which keys a query sees, of a mask function, of a mask, or of scores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

FAR = 1 << 20
"""Keys among which a mask is looked at."""


@dataclass(frozen=True)
class Reach:
    """The keys that a query sees."""

    before: int | None = None  # up to its own; None for all of them
    after: int | None = None  # after its own; None for all of them
    # the size of the chunks beyond which none are seen; None without chunks
    chunk: int | None = None


def reach_of(function: Callable[..., Any]) -> Reach | None:
    """The keys that a mask function lets a far query see."""
    keys, zero = torch.arange(2 * FAR), torch.zeros((), dtype=torch.long)

    def sees(q: Tensor | int, k: Tensor | int) -> Tensor:
        made = function(zero, zero, torch.as_tensor(q), torch.as_tensor(k))
        return torch.as_tensor(made).expand(2 * FAR)

    try:
        after = int(sees(FAR, keys)[FAR + 1 :].sum())
        first = sees(keys, zero)
        limit = int((~first).to(torch.uint8).argmax()) if not bool(first.all()) else None
        if limit is None:
            return Reach(None, after if after < FAR - 1 else None)
        before = int(sees(limit, keys)[: limit + 1].sum())
    except Exception:  # it looks at the tokens of this pass
        return None
    after = int(sees(FAR // limit * limit, keys)[FAR // limit * limit + 1 :].sum())
    if before == 1 and limit > 1:  # a new chunk begins
        return Reach(None, 0 if after == 0 else limit - 1, limit)
    return Reach(before, after if after < FAR - 1 else None)


def seen_in(mask: Tensor) -> Reach | None:
    """The keys that the middle query sees, of scores or a mask ``[…, seq, seq]``."""
    seq = mask.shape[-2]
    if mask.shape[-1] < seq:
        return None
    middle = seq // 2 + 1
    row = mask.reshape(-1, *mask.shape[-2:])[:, middle, :seq]
    seen = row if row.dtype == torch.bool else row > -1e4
    before, after = (int(x.sum(-1).max()) for x in (seen[:, : middle + 1], seen[:, middle + 1 :]))
    return Reach(
        None if before == middle + 1 else before, None if after == seq - middle - 1 else after
    )
