"""Positions that repeat: padding at the end of a row, a document of one token, or neither."""

from jaxtyping import Bool
from torch import Tensor, arange, where

from posenc.guards import demand, graph_looks, may_look


def check_repeats(
    name: str, goes_on: Bool[Tensor, "*rows steps"], repeats: Bool[Tensor, "*rows steps"]
) -> None:
    """Refuse positions that go on, repeat, and go on again, as 0, 1, 1, 2.

    Between tokens that follow one another lies padding, or the first of the two ends a document at
    the position where the next begins: what reads neighbors cannot tell. Other repeats are borders:
    of padding at an end, or of documents of one token, as 0, 0, 1. So positions that several tokens
    of one document share, as those of a frame, are not to be given to them.

    Args:
        name: Who reads neighbors.
        goes_on: Of each step from a token to the next: whether a document may go on there.
        repeats: Whether both stand at one position.

    Raises:
        ValueError: They do, as far as can be seen.

    Example:
        >>> import torch
        >>> steps = torch.tensor([0, 0, 1, 1, 0]).diff()
        >>> check_repeats("DAPEv2", steps > 0, steps == 0)
        >>> steps = torch.tensor([0, 1, 1, 2]).diff()
        >>> check_repeats("DAPEv2", steps > 0, steps == 0)
        Traceback (most recent call last):
        ...
        ValueError: Positions repeat between tokens that follow one another, as they do where \
there is padding, over which DAPEv2 does not read, or where documents share a position. Pad rows \
at their ends, and count documents anew.
    """
    if may_look(repeats) and not bool(repeats.any()):
        return
    index = arange(repeats.shape[-1], device=repeats.device)
    # The last step that is no repeat, if there is one, says what the repeats come behind.
    last = where(repeats, -1, index).cummax(-1).values.clamp(min=0)
    inside = repeats[..., :-1] & goes_on.gather(-1, last)[..., :-1] & goes_on[..., 1:]
    words = (
        f"Positions repeat between tokens that follow one another, as they do where there is "
        f"padding, over which {name} does not read, or where documents share a position. Pad rows "
        f"at their ends, and count documents anew."
    )
    if graph_looks(inside):
        demand(~inside.any(), words)
    elif may_look(inside) and bool(inside.any()):
        raise ValueError(words)
