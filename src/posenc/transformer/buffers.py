"""Tensors one of whose axes counts the tokens of a cache: joined, cropped, moved and reordered."""

from operator import index
from typing import Any

import torch
from torch import Tensor

from posenc.positions import Coordinates, consecutive

PADDING = -(2**63)
"""Where padding stands: before every position."""


def grown(kept: Tensor | None, new: Tensor, first: int) -> Tensor:
    """``[batch, heads, capacity, width]`` with ``new`` from place ``first`` on; it doubles if full.

    Joined to a new tensor where gradients are recorded, or where inference mode made what is kept.
    """
    if kept is None:
        return new.clone()  # whoever gave it may write to it again
    frozen = kept.is_inference() and not torch.is_inference_mode_enabled()
    if torch.is_grad_enabled() or frozen:
        return torch.cat([kept[:, :, :first], new], dim=2)
    length = first + new.shape[2]
    # What is written where cropped tokens stood would have their gradients.
    if length > kept.shape[2] or kept.requires_grad:
        larger = kept.new_empty(*kept.shape[:2], max(length, 2 * first), kept.shape[3])
        larger[:, :, :first] = kept[:, :, :first]
        kept = larger
    room = kept.narrow(2, first, new.shape[2])
    narrower = kept.dtype is new.dtype or torch.promote_types(kept.dtype, new.dtype) is kept.dtype
    if room.shape != new.shape or not narrower:  # torch would broadcast or round
        raise ValueError(
            f"Keys or values {list(new.shape)} of {new.dtype} come to a cache of "
            f"{list(kept.shape)}, {kept.dtype}: batch, heads, width and dtype must agree."
        )
    room.copy_(new)
    return kept


def alike(kept: Tensor, new: Tensor) -> bool:
    """Whether both have the same batch, heads, width and dtype."""
    sizes = kept.shape[:2] == new.shape[:2] and kept.shape[3] == new.shape[3]
    return sizes and kept.dtype is new.dtype


def empty_places(size: int, like: Tensor) -> Tensor:
    """``[batch, heads, size, width]`` of zeros, to be written in any mode."""
    with torch.inference_mode(False):
        return like.new_zeros(*like.shape[:2], size, like.shape[3])


Row = tuple[Tensor, Tensor, Tensor]
"""The length, the positions and the padding mask of a cache of fixed size."""


def empty_row(batch: int, size: int, device: torch.device) -> Row:
    """One without tokens, to be written in any mode."""
    with torch.inference_mode(False):
        length = torch.zeros((), dtype=torch.int64, device=device)
        positions = torch.zeros(batch, size, dtype=torch.int64, device=device)
        return length, positions, torch.zeros_like(positions, dtype=torch.bool)


def written(row: Row, positions: Tensor, real: Tensor | None) -> Tensor:
    """The places that new tokens take in a row; it is written in place."""
    length, kept, mask = row
    batch, seq = len(kept), positions.shape[-1]
    writing = length + consecutive(seq, device=kept.device)
    kept.index_copy_(1, writing, positions.expand(batch, seq))
    mask.index_copy_(1, writing, mask.new_ones(batch, seq) if real is None else real)
    length.add_(seq)
    return writing


def moved_up(kept: Tensor, rows: Tensor | None, length: int, dim: int) -> Tensor:
    """Some rows at the first places, in place, and zeros behind; ``None``: those that are there.

    What stands behind is hidden, but 0 times what is not finite would be NaN.
    """
    kept = kept.clone() if kept.requires_grad else kept  # a backward pass may want what is there
    if rows is not None:
        kept.narrow(dim, 0, length).copy_(kept.index_select(dim, rows))
    kept.narrow(dim, length, kept.shape[dim] - length).zero_()
    return kept


def in_rows(kept: Any, rows: Tensor, *, in_place: bool) -> Any:
    """These rows of the batch; in the same memory where that is fixed and there are as many."""
    if isinstance(kept, Coordinates):
        return kept[rows]
    taken = kept.index_select(0, rows)
    if not in_place:
        return taken
    if taken.shape == kept.shape and not kept.requires_grad:
        return kept.copy_(taken)
    with torch.inference_mode(False):
        return taken.clone() if taken.is_inference() else taken


def renumbered(held: Tensor, places: slice | Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Which of the tokens held here are among ``places`` of a row, and where they stand then."""
    stays = torch.zeros(length, dtype=torch.bool, device=held.device)
    stays[places] = True
    own = stays[held].nonzero().flatten()
    return own, (stays.cumsum(0) - 1)[held[own]]


def joined_masks(kept: Tensor | None, length: int, new: Tensor | None, seq: int) -> Tensor | None:
    """``[batch, length + seq]``, which tokens are real; all where nothing is said."""
    if kept is None:
        if new is None:
            return None
        kept = new.new_ones(len(new), length)
    return torch.cat([kept, kept.new_ones(len(kept), seq) if new is None else new], dim=-1)


def joined_positions(
    kept: Tensor | Coordinates | None, new: Tensor | Coordinates
) -> Tensor | Coordinates:
    """Both, rows alike or each its own, at a common scale if they are coordinates."""
    axis = 1 if new.ndim == 3 else -1
    if kept is None:  # a copy, since whoever gave them may count on in place
        return new.clone() if isinstance(new, Tensor) else Coordinates.cat([new], dim=axis)
    if (kept.ndim == 3) != (new.ndim == 3):
        raise ValueError(
            f"positions have shape {list(new.shape)}; the cache holds {list(kept.shape)}."
        )
    rows = torch.broadcast_shapes(kept.shape[:axis], new.shape[:axis])
    kept, new = (each.expand(*rows, *each.shape[axis:]) for each in (kept, new))
    if isinstance(kept, Coordinates) or isinstance(new, Coordinates):
        return Coordinates.cat([Coordinates(kept), Coordinates(new)], dim=axis)
    return torch.cat([kept, new], dim=axis)


def at_places(positions: Tensor | Coordinates, places: slice | Tensor) -> Tensor | Coordinates:
    """Where the tokens at some places of the row stand."""
    return positions[:, places] if positions.ndim == 3 else positions[..., places]


def last(positions: Tensor | Coordinates | None, length: int | Tensor) -> Tensor | None:
    """``[1]`` or ``[batch, 1]``: where the last token stands, if that is one whole number."""
    if not isinstance(positions, Tensor) or positions.ndim > 2:
        return None
    if isinstance(length, Tensor):
        return positions.index_select(1, (length - 1).clamp(min=0).view(1))
    return positions[..., -1:]


def one_past(positions: Tensor, padding_mask: Tensor | None) -> Tensor:
    """``[]`` or ``[batch]``: one past the furthest real token of a row; 0 if it has none."""
    at = positions.amax(-1) if positions.ndim == 3 else positions
    if padding_mask is not None:
        at = at.where(padding_mask, PADDING)
    past = at.amax(-1).clamp(max=2**63 - 2) + 1  # the last int64 at most
    return past if padding_mask is None else past.where(padding_mask.any(-1), 0)


def chosen_places(rows: Tensor, length: int, last: int | None) -> Tensor:
    """The places in a row of ``length`` of all before the ``last``, and of ``rows`` among these."""
    first = 0 if last is None else length - index(last)
    places = consecutive(length, device=rows.device)
    among = places[first:]
    chosen = among[rows] if rows.dtype == torch.bool else among.index_select(0, rows).unique()
    return torch.cat([places[:first], chosen])
