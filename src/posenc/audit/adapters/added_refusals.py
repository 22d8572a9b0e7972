"""Why something is nothing that adds to embeddings, though it looks so: told to its author."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from posenc.audit.adapters.calls import varies
from posenc.audit.report import CallFailedError

if TYPE_CHECKING:
    from posenc.audit.adapters.added import Added

BATCH = 3

IDS = (
    "equal numbers that it is given receive other rows at other places, as ids of tokens do, and "
    "positions do not. Check the part that adds positions to embeddings"
)
NO_SUM = (
    "it changes content otherwise than by a sum, as a norm behind the sum does. Check the part "
    "before that"
)
CHANCE = (
    "it gives other numbers at each call, in eval mode too, as torch.nn.functional.dropout does "
    "without training=self.training, or a table that is drawn anew in forward"
)


def no_positions(view: "Added") -> str | None:
    """What the argument is that was taken for positions, where it is none of these."""
    rows = view.rows(view.seq)
    if (rows - rows[:1] - torch.arange(len(rows))[:, None]).abs().max() < 1e-3:
        return NO_SUM  # content: every channel grows as it does
    if view.moves != "positions":
        return None
    content = torch.zeros(BATCH, view.seq, view.dim)
    some = torch.zeros(1, min(4, view.seq), dtype=torch.long)
    all_of_it = torch.zeros(1, view.seq, dtype=torch.long)  # where it takes no fewer
    for alike, words in ((some[0], IDS), (some, IDS), (all_of_it, IDS), (content, NO_SUM)):
        try:
            made = view.call(content if alike is content else content[:1, : alike.shape[-1]], alike)
        except CallFailedError:
            continue
        if varies(made, 1) > 1e-6 or (len(made) > 1 and varies(made, 0) > 1e-6):
            return words  # those of equal positions would be equal
    return None


def is_bounded(view: "Added", x: Tensor, once: Tensor) -> bool:
    """Whether large content comes out at the size of small, as behind a norm."""
    try:
        made, larger = view.call(1e4 * x), view.call(2e4 * x)
    except CallFailedError:
        return False
    return bool((made - larger).abs().max() < 1e-2 * once.abs().max())
