"""Where the tokens of a video stand beside text: coordinates that are no plain grid."""

from fractions import Fraction

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.positions.coordinates import Coordinates
from posenc.positions.grids import grid


def diagonal_video(
    frames: int,
    height: int,
    width: int,
    *,
    start: int | Fraction = 0,
    stride: int | Fraction = 2,
    device: torch.device | str | None = None,
) -> Int64[Tensor, "seq 3"] | Coordinates:
    """VideoRoPE's (t, h, w): frames go along the diagonal of all axes, patches stand about it.

    t = start + stride · frame, h = t + row − ⌊(height − 1)/2⌋, w = t + column − ⌊(width − 1)/2⌋

    Text is on the diagonal, t = h = w, and goes on at the last t of the video + 1.

    Args:
        frames: Number of frames.
        height: Patches in a column of one.
        width: Patches in a row of one.
        start: Where the first frame stands, the number of the tokens of text before it.
        stride: Steps from frame to frame; δ = 2 in the paper. A ``Fraction`` gives ``Coordinates``,
            as HoPE has them, which draws one of 1/2, 3/4, 1, 5/4 and 3/2 for each video in training
            and takes one that is chosen afterwards. Text behind them may stand at fractions too.
        device: Where to make them.

    Reference:
        Wei et al. 2025, "VideoRoPE", section 4 (arXiv:2502.05173); ``get_t_scale_rope_index`` of
        Wiselnn570/VideoRoPE, which rounds the middle down as it is here. Li et al. 2025, "HoPE"
        (arXiv:2505.20444); ``get_dynamic_rope_index`` of hrlics/HoPE.

    Example:
        >>> diagonal_video(2, 1, 3, start=5).tolist()
        [[5, 5, 4], [5, 5, 5], [5, 5, 6], [7, 7, 6], [7, 7, 7], [7, 7, 8]]
    """
    t, row, column = grid(frames, height, width, device=device).unbind(-1)
    row, column = row - (height - 1) // 2, column - (width - 1) // 2
    if Fraction(start).denominator == Fraction(stride).denominator == 1:
        t = t * int(stride) + int(start)
        return torch.stack((t, t + row, t + column), dim=-1)
    when = Coordinates(t) * stride + start
    return Coordinates.stack((when, when + row, when + column), dim=-1)


def symmetric_video(
    frames: int,
    height: int,
    width: int,
    *,
    start: int = 0,
    device: torch.device | str | None = None,
) -> Int64[Tensor, "seq 4"]:
    """VRoPE's four coordinates: row ± column, counted from either end, and frame after frame.

    (y + x, y + x̄, ȳ + x, ȳ + x̄) with x̄ = width − 1 − x and ȳ = height − 1 − y, to which
    start + (height + width − 1) · frame is added. Their mean is the same for all patches of a
    frame, so no corner is nearer to the text than another. Text has four equal coordinates, and
    goes on at start + (height + width − 1) · frames. The pairs of a head take them in turn:
    ``MultimodalRotary(rotary, (16, 16, 16, 16), "interleaved")``.

    Args:
        frames: Number of frames.
        height: Patches in a column of one.
        width: Patches in a row of one.
        start: Where the first frame stands, the number of the tokens of text before it.
        device: Where to make them.

    Reference:
        Liu et al. 2025, "VRoPE" (arXiv:2502.11664); ``vrope.py`` of johncaged/VRoPE.

    Example:
        >>> symmetric_video(1, 2, 2).tolist()
        [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
    """
    frame, y, x = grid(frames, height, width, device=device).unbind(-1)
    y_back, x_back = height - 1 - y, width - 1 - x
    sums = torch.stack((y + x, y + x_back, y_back + x, y_back + x_back), dim=-1)
    return start + (height + width - 1) * frame.unsqueeze(-1) + sums
