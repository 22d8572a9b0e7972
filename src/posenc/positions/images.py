"""Many images in one row of tokens, each with its own height and width."""

from collections.abc import Sequence

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.grids import grid
from posenc.positions.placeless import PADDING, prefixed


def packed_grids(
    sizes: Sequence[Sequence[int]],
    *,
    prefix: int = 0,
    length: int | None = None,
    device: torch.device | str | None = None,
) -> tuple[Int64[Tensor, "seq axes"], Int64[Tensor, "seq"]]:
    """The points of many images side by side, and whose they are.

    Each image counts from 0 along its axes, whatever stands before it. The second tensor numbers
    the images: given to ``posenc.attention`` as ``document_ids``, no image sees another.

    Args:
        sizes: The sizes of each image, all with as many axes.
        prefix: Class tokens or registers before each image; they stand nowhere, and belong to it.
        length: What the row is padded to, for several rows in one batch. Padding stands nowhere, in
            a document of its own with the number −1.
        device: Where to make them.

    Raises:
        ValueError: The images have more tokens than ``length``.

    Reference:
        Dehghani et al. 2023, "Patch n' Pack: NaViT", section 3.1 (arXiv:2307.06304).

    Example:
        >>> points, images = packed_grids([(1, 2), (2, 1)], length=5)
        >>> points[:4].tolist(), images.tolist()
        ([[0, 0], [0, 1], [0, 0], [1, 0]], [0, 0, 1, 1, -1])
    """
    images = [prefixed(grid(*size, device=device), prefix) for size in sizes]
    points = torch.cat(images)
    counts = torch.tensor([len(image) for image in images], device=device)
    ids = torch.arange(len(images), device=device).repeat_interleave(counts)
    if length is None:
        return points, ids
    missing = length - len(points)
    if missing < 0:
        raise ValueError(f"The images have {len(points)} tokens together, and length is {length}.")
    nowhere = points.new_full((missing, points.shape[1]), PADDING)
    return torch.cat((points, nowhere)), torch.cat((ids, ids.new_full((missing,), -1)))
