"""Where text, images and videos stand in one row of tokens: (time, height, width) for each."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_choice
from posenc.positions.checks import checked
from posenc.positions.grids import grid
from posenc.positions.packing import runs
from posenc.positions.padding import checked_mask
from posenc.positions.ranges import consecutive

Grid = Sequence[int] | Tensor
After = Literal["sides", "all"]


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
    real = torch.ones_like(types, dtype=torch.bool) if mask is None else checked_mask(mask)
    documents = torch.zeros_like(types) if document_ids is None else runs(document_ids)
    rows, seq = types.shape[:-1].numel(), types.shape[-1]
    # Images are laid out one by one, on the CPU.
    given = types, documents, real
    kinds, numbers, told = (each.cpu().expand(types.shape).reshape(rows, seq) for each in given)
    tokens = kinds[told]
    shown = {
        kind: iter(_shown(kind, int((tokens == kind).sum()), of_kind, (times or {}).get(kind)))
        for kind, of_kind in grids.items()
    }
    placed = [_row(*row, shown, after) for row in zip(kinds, numbers, told, strict=True)]
    every = torch.cat([tokens.new_zeros(0, 3), *placed])
    return every.view(*types.shape, 3).to(types.device)


def _shown(
    kind: int, tokens: int, grids: Sequence[Grid], times: Sequence[Sequence[int] | Tensor] | None
) -> list[Int64[Tensor, "tokens 3"]]:
    """The points of each image or video of a type, from 0 on."""
    sizes = [each.tolist() if isinstance(each, Tensor) else list(each) for each in grids]
    count = sum(frames * height * width for frames, height, width in sizes)
    if tokens != count:
        raise ValueError(
            f"There are {tokens} tokens of type {kind}, and its {len(sizes)} grids have {count}, "
            f"after merging patches."
        )
    found = [grid(*size, device="cpu") for size in sizes]
    for points, moments in zip(found, times or (), strict=times is not None):
        points[:, 0] = checked(moments, "times", device="cpu").cpu()[points[:, 0]]
    return found


def _row(
    types: Tensor,
    documents: Tensor,
    real: Tensor,
    shown: Mapping[int, Iterator[Tensor]],
    after: After,
) -> Int64[Tensor, "seq 3"]:
    """One row: runs of text, images and videos, one behind the other."""
    kinds = [kind if kind in shown else None for kind in types[real].tolist()]
    told = list(zip(documents[real].tolist(), kinds, strict=True))
    placed, begin, start = [types.new_zeros(0, 3)], 0, 0
    while begin < len(told):
        document, kind = here = told[begin]
        if begin and told[begin - 1][0] != document:
            start = 0
        if kind is None:
            behind = (n for n in range(begin, len(told)) if told[n] != here)
            step = next(behind, len(told)) - begin
            points = consecutive(step, device="cpu").unsqueeze(-1).expand(-1, 3)
        else:
            points = next(shown[kind])
            step = int(points.amax(0)[0 if after == "all" else 1 :].max()) + 1
        end = begin + len(points)
        if told[begin:end] != [here] * len(points):
            raise ValueError(f"The tokens of an image or video of type {kind} are cut in two.")
        placed.append(start + points)
        begin, start = end, start + step
    positions = types.new_zeros(len(types), 3)
    positions[real] = torch.cat(placed)
    return positions
