"""Decomposed relative positions: what a query makes of a displacement, axis by axis."""

from copy import deepcopy

import torch
from torch import nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.content import Content, OfContent
from posenc.encodings.scores.windows import checked_window, displacements, without_place
from posenc.encodings.shapes import BothPositions, Device, Dtype, KeyPixels, QueryPixels, Scores
from posenc.numerics.product import products


class DecomposedRelative(OfContent):
    """A learned vector for each displacement along each axis of an image, met by the query.

    score(q, k) += q · R_y[Δy + H − 1] + q · R_x[Δx + W − 1],  (Δy, Δx) = q − k

    as in MViTv2, ViTDet and SAM: the query carries no 1/√head_dim, though the scores do, and all
    heads share both tables. Positions are points (y, x), as of ``posenc.positions.grid(H, W)``.
    Class tokens neither give nor take anything. Where queries or keys lie on a coarser grid, give
    both in units of the finer one, as ``grid(2, 2) * 2`` beside ``grid(4, 4)``; keys that stand
    ``key_stride`` apart have the rows Δy + H − key_stride.

    Args:
        size: Height and width H, W of the image or window in tokens, or one number for both.
        key_stride: How many rows and columns of queries there are to one of keys.
        std: Standard deviation at first: 0.02 in MViTv2, 0 (zeros) in SAM.

    Reference:
        Li et al. 2022, "MViTv2", equation 3 (arXiv:2112.01526), and ``cal_rel_pos_spatial`` of
        facebookresearch/mvit; Kirillov et al. 2023, "Segment Anything" (arXiv:2304.02643).

    Example:
        >>> from posenc.positions import grid
        >>> encoding = DecomposedRelative(heads=2, head_dim=8, size=(3, 4))
        >>> scores, q = torch.zeros(1, 2, 12, 12), torch.randn(1, 2, 12, 8)
        >>> encoding(scores, grid(3, 4), grid(3, 4), q=q).shape
        torch.Size([1, 2, 12, 12])
    """

    is_relative = is_pairwise = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        size: int | tuple[int, int],
        *,
        key_stride: int | tuple[int, int] = 1,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim)
        self.heads, self.head_dim, self.std = heads, head_dim, std
        self.size = checked_window(size, "size")
        self.key_stride = checked_window(key_stride, "key_stride")
        height, width = self.size
        factory = {"device": device, "dtype": dtype}
        self.vertical = nn.Parameter(torch.empty(2 * height - 1, head_dim, **factory))
        self.horizontal = nn.Parameter(torch.empty(2 * width - 1, head_dim, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both tables from N(0, std²), cut off at 2."""
        for rows in (self.vertical, self.horizontal):
            nn.init.trunc_normal_(rows, std=self.std) if self.std else nn.init.zeros_(rows)

    def table(
        self, q_positions: QueryPixels, k_positions: KeyPixels, *, dtype: Dtype = None
    ) -> BothPositions:
        """The displacements (Δy, Δx) of every pair, int64 whatever ``dtype`` is."""
        return displacements(q_positions, k_positions, self.size, name="DecomposedRelative")

    def changed(self, scores: Scores, table: BothPositions, content: Content) -> Scores:
        absent = without_place(table)
        if absent is not None:
            table = table.masked_fill(absent.unsqueeze(-3), 0)
        for axis, rows in enumerate((self.vertical, self.horizontal)):
            # One product a displacement, not a pair: there are far fewer of them.
            at = products(content.q, rows)
            first = self.size[axis] - self.key_stride[axis]
            index = table.select(-3, axis).unsqueeze(-3) + first
            change = at.gather(-1, index.expand(scores.shape))
            if absent is not None:
                change = change.masked_fill(absent.unsqueeze(-3), 0.0)
            scores = scores + change
        return scores

    @torch.no_grad()
    def resized(self, size: int | tuple[int, int]) -> "DecomposedRelative":
        """A new encoding of another size, both tables interpolated linearly as SAM's code does."""
        other = deepcopy(self)
        other.size = checked_window(size, "size")
        for name, length in zip(("vertical", "horizontal"), other.size, strict=True):
            rows = getattr(self, name)
            curves = rows.to(working_dtype(rows.dtype)).T.unsqueeze(0)
            made = F.interpolate(curves, size=2 * length - 1, mode="linear")[0].T.to(rows.dtype)
            setattr(other, name, nn.Parameter(made.contiguous(), rows.requires_grad))
        return other
