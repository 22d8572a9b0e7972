"""Why something is nothing that adds to embeddings, though it looks so: told to its author."""

import torch
from torch import Tensor

from posenc.audit.adapters.added_view import Added
from posenc.audit.adapters.sizes import varies
from posenc.audit.report import CallFailedError

BATCH = 3


NO_SUM = (
    "it changes content otherwise than by a sum, as a norm behind the sum does. Check the part "
    "before that"
)
CHANCE = (
    "it gives other numbers at each call, in eval mode too, as torch.nn.functional.dropout does "
    "without training=self.training, or a table that is drawn anew in forward"
)
NOTHING = (
    "it adds nothing, as where a table is still of zeros. Give it numbers first, as "
    "torch.nn.init.normal_ of the table does"
)
IDS = (
    "equal numbers that it is given receive other rows at other places, as ids of tokens do, and "
    "positions do not. Check the part that adds positions to embeddings"
)
COUNTS = (
    "it counts positions in ids of tokens, whichever these are, and no form gives ids. Write some "
    'into the call, as call="{call}"'
)
ORDINARY = 5
"""An id of tokens that is seldom one of padding."""


def is_bounded(view: Added, x: Tensor, once: Tensor) -> bool:
    """Whether large content comes out at the size of small, as behind a norm."""
    try:
        made, larger = view.call(1e4 * x), view.call(2e4 * x)
    except CallFailedError:
        return False
    return bool((made - larger).abs().max() < 1e-2 * once.abs().max())


def no_positions(view: Added) -> str | None:
    """What the argument is that was taken for positions, where it is none of these."""
    rows = view.rows(view.seq)
    if (rows - rows[:1] - torch.arange(len(rows))[:, None]).abs().max() < 1e-3:
        return NO_SUM  # content: every channel grows as it does
    if view.moves != "positions":
        return None
    content = torch.zeros(BATCH, view.seq, view.dim)
    some = torch.zeros(1, min(4, view.seq), dtype=torch.long)
    all_of_it = torch.zeros(1, view.seq, dtype=torch.long)  # where it takes no fewer
    equal = [each + number for number in (0, ORDINARY) for each in (some[0], some, all_of_it)]
    for alike in (*equal, content):
        try:
            made = view.call(content if alike is content else content[:1, : alike.shape[-1]], alike)
        except CallFailedError:
            continue
        if varies(made, 1) > 1e-6 or (len(made) > 1 and varies(made, 0) > 1e-6):
            return NO_SUM if alike is content else _counts(view) or IDS
    return None


def _counts(view: Added) -> str | None:
    """What to do where all ids of tokens get the same, but those of padding; None where not."""
    content, name = torch.zeros(1, view.seq, view.dim), view.text.split("(")[0]
    for shape, written in (((1, view.seq), "(1, length)"), ((view.seq,), "(length,)")):
        try:
            one, other = (
                view.call(content, torch.full(shape, number)) for number in (ORDINARY, ORDINARY + 1)
            )
        except CallFailedError:
            continue
        if varies(one, 1) > 1e-6 and torch.equal(one, other):
            return COUNTS.format(call=f"{name}(torch.full({written}, {ORDINARY}))")
    return None
