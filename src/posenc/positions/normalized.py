"""Grids whose coordinates run from −1 or 0 to 1, whatever the resolution, as exact fractions."""

from fractions import Fraction

import torch

from posenc.arguments import check_choice, check_whole
from posenc.positions.coordinates import Coordinates
from posenc.positions.grids import grid


def normalized_grid(
    *sizes: int,
    low: int = -1,
    at: str = "centers",
    by: str = "each",
    device: torch.device | str | None = None,
) -> Coordinates:
    """The points of a grid, ``[seq, axes]``, each axis from ``low`` to 1 at every resolution.

    Centers of patches are (2i + 1) / n − 1, or half of (2i + 1) / n from 0 on: they stay half a
    patch away from the ends. Corners are 2i / (n − 1) − 1, or i / (n − 1): the first and the last
    point stand at the ends, as with ``align_corners=True``; a single one stands in the middle, or
    at 0. All are exact: a third is a third.

    Args:
        sizes: Number of points n along each axis.
        low: −1, or 0.
        at: ``"centers"`` or ``"corners"``.
        by: What coordinates are divided by: the size of ``"each"`` axis, or along all axes the
            smallest (``"min"``) or the largest (``"max"``), so that patches stay square. Then the
            other axes begin at ``low`` and end elsewhere, as in DINOv3.
        device: Where to make them.

    Example:
        >>> normalized_grid(3).tolist()
        [[Fraction(-2, 3)], [Fraction(0, 1)], [Fraction(2, 3)]]
        >>> normalized_grid(2, 3, low=0, at="corners").tolist()[-1]
        [Fraction(1, 1), Fraction(1, 1)]
    """
    check_whole(**{f"sizes[{axis}]": size for axis, size in enumerate(sizes)})
    check_choice(("centers", "corners"), at=at)
    check_choice(("each", "min", "max"), by=by)
    if low not in (-1, 0):
        raise ValueError(f"low is {low!r}; it must be -1 or 0.")
    chosen = {"each": sizes, "min": (min(sizes),) * len(sizes), "max": (max(sizes),) * len(sizes)}
    lengths = [n - (at == "corners") for n in chosen[by]]  # of which i or i + 1/2 is the part
    if any(length == 0 and n > 1 for length, n in zip(lengths, sizes, strict=True)):
        raise ValueError(f"sizes are {sizes}: corners are not divided by a side of one point.")
    first = int(at == "centers")
    starts = [first + low * length for length in lengths]
    halves = grid(*sizes, start=starts, stride=2, device=device)
    span = 1 if low else 2
    return Coordinates(halves, scale=[Fraction(1, span * (length or 1)) for length in lengths])
