"""Positions that repeat: padding at the ends of rows, or documents of one token."""

import torch
from jaxtyping import Bool
from torch import Tensor

from posenc.guards import demand, graph_looks, may_look


def check_repeats(
    name: str, goes_on: Bool[Tensor, "*rows steps"], repeats: Bool[Tensor, "*rows steps"]
) -> None:
    """Refuse positions that go on (``goes_on``), repeat and go on again, as 0, 1, 1, 2."""
    if may_look(repeats) and not bool(repeats.any()):
        return
    index = torch.arange(repeats.shape[-1], device=repeats.device)
    # The last step that is no repeat, if there is one, says what the repeats come behind.
    last = torch.where(repeats, -1, index).cummax(-1).values.clamp(min=0)
    inside = repeats[..., :-1] & goes_on.gather(-1, last)[..., :-1] & goes_on[..., 1:]
    words = (
        f"Positions repeat between tokens that follow one another; {name} cannot read over padding "
        f"inside a document. Pad rows at their ends, and let positions of documents begin anew."
    )
    if graph_looks(inside):
        demand(~inside.any(), words)
    elif may_look(inside) and bool(inside.any()):
        raise ValueError(words)
