"""Decomposed relative positions: what a query makes of a displacement, axis by axis."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.content import checked_content, products
from posenc.encodings.scores.windows import checked_window, displacements


class DecomposedRelative(ScoreEncoding):
    """A learned vector for each displacement along each axis of an image, met by the query.

    score(q, k) += q · R_y[Δy + H − 1] + q · R_x[Δx + W − 1],  (Δy, Δx) = q − k

    The segment-anything model (SAM) and ViTDet have it: the query here carries no 1/√head_dim,
    though the scores do, and all heads share both tables. Positions are ``[*batch, seq, 2]`` with
    (y, x), as ``posenc.positions.grid(H, W)`` makes them. For queries on a coarser grid than the
    keys (MViTv2) give both in the units of the finer one.

    Args:
        heads: Number of query heads.
        head_dim: Width of a head.
        size: Height and width H, W of the image or window in tokens, or one number for both.
        std: Standard deviation of the (truncated) normal initialization. SAM and the paper begin
            with zeros, 0.

    Raises:
        ValueError: A number is not positive, tokens lie further apart than ``size``, or no queries
            were given.

    Reference:
        Li et al. 2022, "MViTv2" (arXiv:2112.01526); Kirillov et al. 2023, "Segment
        Anything" (arXiv:2304.02643), whose code adds the product of the unscaled query.

    Example:
        >>> from posenc import positions
        >>> encoding = DecomposedRelative(heads=2, head_dim=8, size=(3, 4))
        >>> points, q = positions.grid(3, 4), torch.randn(1, 2, 12, 8)
        >>> encoding(torch.zeros(1, 2, 12, 12), points, points, q=q).shape
        torch.Size([1, 2, 12, 12])
    """

    is_relative = True
    is_pairwise = True

    def __init__(
        self, heads: int, head_dim: int, size: int | tuple[int, int], *, std: float = 0.02
    ):
        super().__init__()
        if heads < 1 or head_dim < 1:
            raise ValueError(f"heads is {heads} and head_dim {head_dim}; each must be 1 or more.")
        self.heads, self.head_dim, self.std = heads, head_dim, std
        self.size = checked_window(size, "size")
        height, width = self.size
        self.vertical = nn.Parameter(torch.empty(2 * height - 1, head_dim))
        self.horizontal = nn.Parameter(torch.empty(2 * width - 1, head_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both tables anew from N(0, std²), cut off at 2."""
        for rows in (self.vertical, self.horizontal):
            nn.init.trunc_normal_(rows, std=self.std) if self.std else nn.init.zeros_(rows)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len 2"],
        k_positions: Int64[Tensor, "*batch k_len 2"],
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch 2 q_len k_len"]:
        """The displacements (Δy, Δx), whole numbers whatever ``dtype``.

        Raises:
            TypeError: Positions are not integers.
            ValueError: They are no points of a grid, or lie further apart than the size allows.
        """
        return displacements(q_positions, k_positions, self.size, name="DecomposedRelative")

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows 2 q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with both products, added in float32 at least and rounded once."""
        checked_content("DecomposedRelative", self.heads, scores, q=(q, self.head_dim))
        assert q is not None
        wide = working_dtype(scores.dtype)
        total = scores.to(wide)
        for axis, rows in enumerate((self.vertical, self.horizontal)):
            # One product a displacement, not a pair: there are far fewer of them.
            at = products(q.to(wide), rows)
            index = table.select(-3, axis).unsqueeze(-3) + self.size[axis] - 1
            total = total + at.gather(-1, index.expand(scores.shape))
        return total.to(scores.dtype)

    @torch.no_grad()
    def resized(self, size: int | tuple[int, int]) -> "DecomposedRelative":
        """A new encoding of another size, both tables interpolated linearly as SAM's code does.

        Example:
            >>> DecomposedRelative(2, 8, size=14).resized((14, 21)).horizontal.shape
            torch.Size([41, 8])
        """
        other = DecomposedRelative(self.heads, self.head_dim, size, std=self.std)
        other = other.to(self.vertical)
        tables = ((self.vertical, other.vertical), (self.horizontal, other.horizontal))
        for rows, resized in tables:
            curves = F.interpolate(rows.float().T.unsqueeze(0), size=len(resized), mode="linear")
            resized.copy_(curves[0].T)
            resized.requires_grad_(rows.requires_grad)
        return other.train(self.training)

    def extra_repr(self) -> str:
        """Heads, width and size."""
        return f"heads={self.heads}, head_dim={self.head_dim}, size={self.size}"
