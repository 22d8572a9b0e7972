"""Where text, images and videos stand in one row of tokens: (time, height, width) for each."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice
from posenc.positions.checks import checked
from posenc.positions.packing import runs
from posenc.positions.padding import checked_mask

Grid = Sequence[int] | Tensor
After = Literal["sides", "all"]


class _Shown(NamedTuple):
    """Every image and video, in the order of the tokens of its type."""

    frames: Tensor
    height: Tensor
    width: Tensor
    times: Tensor  # of every frame of all of them, one after the other
    first: Tensor  # where the frames of each begin in ``times``


def mixed_modalities(
    token_types: Tensor,
    grids: Mapping[int, Sequence[Grid]],
    *,
    times: Mapping[int, Sequence[Sequence[int] | Tensor]] | None = None,
    after: After = "sides",
    mask: Tensor | None = None,
    document_ids: Tensor | None = None,
) -> Int64[Tensor, "*batch seq 3"]:
    """The (t, h, w) of M-RoPE for rows in which text, images and videos follow each other.

    Text at p has t = h = w = p. An image or video that begins at s has
    (s + time of the frame, s + row, s + column), and what follows it begins at s + max(height,
    width), or behind the last of all three axes. Every document of a packed row begins at 0 and
    takes the next of the grids, so it stands as it would alone.

    Text behind text stands at one more than it. Models of transformers decode from
    ``positions.amax((-2, -1)) + 1`` on, which is the same unless a row is packed, or ``"sides"``
    are counted and a video has later frames than the text behind it. They take axes first:
    ``positions.movedim(-1, 0)``.

    Args:
        token_types: ``[*batch, seq]``: whole numbers; those that ``grids`` names are images or
            videos, and all others count as text (audio does so in Qwen's models).
        grids: For each type, the (frames, height, width) in tokens of each of its images, in the
            order in which they come, row after row.
        times: For each type, the times of the frames of each of them; 0, 1, 2, … for types that
            are left out.
        after: Where a row goes on behind an image or video: ``"sides"`` beyond the longer side, as
            transformers 5 has it, ``"all"`` beyond the last frame too, as Qwen2-VL's paper says and
            earlier releases had it. They differ for videos with later frames than they have rows.
        mask: ``[*batch, seq]``, true where a token is real. Padding stands at 0, on either side.
        document_ids: ``[*batch, seq]``; a document is a run of equal ids.

    Reference:
        Wang et al. 2024, "Qwen2-VL", section 2.1 (arXiv:2409.12191).

    Example:
        >>> types = torch.tensor([0, 0, 1, 1, 1, 1, 0])
        >>> mixed_modalities(types, {1: [(1, 2, 2)]}).T
        tensor([[0, 1, 2, 2, 2, 2, 4],
                [0, 1, 2, 2, 3, 3, 4],
                [0, 1, 2, 3, 2, 3, 4]])
    """
    check_choice(("sides", "all"), after=after)
    types = checked(token_types, "token_types")
    real = torch.ones_like(types, dtype=torch.bool)
    if mask is not None:
        real = checked_mask(mask).to(types.device)
    document = _documents(types, document_ids)[real]
    flat = types[real]
    shown, which = _shown(flat, grids, times or {})
    positions = types.new_zeros((*types.shape, 3))
    positions[real] = _placed(flat, document, shown, which, after)
    return positions


def _documents(types: Tensor, document_ids: Tensor | None) -> Tensor:
    """A number for each document of each row, no two alike."""
    count = types.shape[:-1].numel()
    rows = torch.arange(count, device=types.device).view(*types.shape[:-1], 1)
    if document_ids is None:
        return rows.expand_as(types)
    return rows * types.shape[-1] + runs(document_ids).to(types.device)


def _shown(
    types: Tensor,
    grids: Mapping[int, Sequence[Grid]],
    times: Mapping[int, Sequence[Sequence[int] | Tensor]],
) -> tuple[_Shown, Tensor]:
    """All images and videos, and for each token which of them it is of; −1 for text."""
    device = types.device
    sizes, moments = [], []
    which = torch.full_like(types, -1)
    for kind, of_kind in grids.items():
        listed = [_three(grid) for grid in of_kind]
        tokens = (types == kind).nonzero().squeeze(-1)
        counts = torch.tensor([t * h * w for t, h, w in listed], dtype=torch.int64, device=device)
        if int(counts.sum()) != len(tokens):
            raise ValueError(
                f"There are {len(tokens)} tokens of type {kind}, and its {len(listed)} grids have "
                f"{int(counts.sum())}, after merging patches."
            )
        numbers = torch.arange(len(listed), device=device) + len(sizes)
        which[tokens] = numbers.repeat_interleave(counts)
        given = times.get(kind, [range(frames) for frames, _, _ in listed])
        for grid, moment in zip(listed, given, strict=True):
            moments.append(checked(moment, "times", device=device).to(device))
            if len(moments[-1]) != grid[0]:
                raise ValueError(f"There are {len(moments[-1])} times for {grid[0]} frames.")
        sizes += listed
    frames, height, width = torch.tensor(sizes, dtype=torch.int64, device=device).view(-1, 3).T
    every = torch.cat(moments) if moments else types.new_zeros(0)
    return _Shown(frames, height, width, every, frames.cumsum(0) - frames), which


def _three(grid: Grid) -> list[int]:
    """(frames, height, width)."""
    sizes = grid.tolist() if isinstance(grid, Tensor) else list(grid)
    if len(sizes) != 3 or min(sizes) < 1:
        raise ValueError(f"A grid has {sizes!r}; give (frames, height, width), each above 0.")
    return sizes


def _placed(
    types: Tensor, document: Tensor, shown: _Shown, which: Tensor, after: After
) -> Int64[Tensor, "tokens 3"]:
    """The tokens of all rows, one after the other: segments, their starts, then what is inside."""
    if not len(types):
        return types.new_zeros((0, 3))
    index = torch.arange(len(types), device=types.device)
    changes = torch.ones_like(types, dtype=torch.bool)
    new_document = document[1:] != document[:-1]
    changes[1:] = (which[1:] != which[:-1]) | new_document
    segment = changes.cumsum(0) - 1
    first = index[changes]
    inside = index - first[segment]
    of = which[first]
    is_shown = of >= 0
    counts = torch.diff(first, append=first.new_tensor([len(types)]))
    _refuse_cut(of[is_shown], counts[is_shown], shown)
    steps = torch.where(is_shown, _length(shown, after)[of.clamp(min=0)], counts)
    begins = steps.cumsum(0) - steps
    opened = torch.ones_like(changes)
    opened[1:] = new_document
    # What the documents before took is taken off again; starts only grow, so the last one counts.
    base = torch.where(opened[first], begins, begins.new_full((), -1)).cummax(0).values
    start = (begins - base)[segment]
    return start.unsqueeze(-1) + _inside(shown, which, inside)


def _length(shown: _Shown, after: After) -> Tensor:
    """How far a row goes on behind each image or video; one more entry stands for none."""
    sides = torch.maximum(shown.height, shown.width)
    if after == "all" and len(sides):
        numbers = torch.arange(len(sides), device=sides.device).repeat_interleave(shown.frames)
        last = torch.zeros_like(sides).scatter_reduce(0, numbers, shown.times, "amax")
        sides = torch.maximum(sides, last + 1)
    return torch.cat((sides, sides.new_zeros(1)))


def _inside(shown: _Shown, which: Tensor, inside: Tensor) -> Int64[Tensor, "tokens 3"]:
    """What is added to the start: the same for all axes of text, of the others their own."""
    if not len(shown.frames):
        return inside.unsqueeze(-1).expand(-1, 3)
    of = which.clamp(min=0)
    height, width = shown.height[of], shown.width[of]
    frame = (inside // (height * width)).clamp(max=shown.frames[of] - 1)
    point = torch.stack(
        (shown.times[shown.first[of] + frame], inside // width % height, inside % width), dim=-1
    )
    return torch.where((which >= 0).unsqueeze(-1), point, inside.unsqueeze(-1))


def _refuse_cut(of: Tensor, counts: Tensor, shown: _Shown) -> None:
    whole = (shown.frames * shown.height * shown.width)[of] if len(of) else of
    if bool((counts != whole).any()):
        number = int(of[counts != whole][0])
        raise ValueError(f"The tokens of image or video {number} are cut in two.")
