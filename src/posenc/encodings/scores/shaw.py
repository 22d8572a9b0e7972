"""Shaw et al.: a learned vector for each clipped distance, met by the query (and weighed)."""

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.arguments import check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.content import Content, OfDistance, picked
from posenc.encodings.shapes import Attended, Device, Distances, Dtype, Scores
from posenc.encodings.told import Drawn
from posenc.numerics.product import products


class Shaw(Drawn, OfDistance):
    """score(q, k) += q · a[clip(k − q, −r, r)] · scale, with vectors shared by all heads.

    The scale is 1/√head_dim in the paper. With ``values=True`` each value has a vector
    a'[clip(k − q)] too, which ``encode_output`` adds to the output of attention.

    Args:
        reach: r: the distance from which on all are one.

    Reference:
        Shaw, Uszkoreit & Vaswani 2018, "Self-Attention with Relative Position Representations",
        equations 3 to 5 (arXiv:1803.02155).

    Example:
        >>> shaw, q = Shaw(heads=2, head_dim=8, reach=4), torch.randn(1, 2, 5, 8)
        >>> shaw(q @ q.mT / 8**0.5, q=q).shape
        torch.Size([1, 2, 5, 5])
    """

    is_pairwise = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        reach: int,
        *,
        values: bool = False,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, reach=reach)
        self.heads, self.head_dim, self.reach, self.std = heads, head_dim, reach, std
        self.keys = nn.Parameter(torch.empty(2 * reach + 1, head_dim, device=device, dtype=dtype))
        self.values = nn.Parameter(torch.empty_like(self.keys)) if values else None
        self.changes_output = values
        self.reset_parameters()

    def _met(self, distance: Int64[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
        """Which vector each pair meets: clip(k − q) + reach."""
        return self.reach - distance.clamp(-self.reach, self.reach)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        seen = picked(products(content.q, self.keys), self._met(table))
        return scores + seen * content.scale

    def encode_output(self, out: Attended, weights: Scores, table: Distances) -> Attended:
        """``out`` + Σ_k weight(q, k) · a'[clip(k − q)]: equation 3; ``out`` without ``values``."""
        if self.values is None:
            return out
        wide = working_dtype(out.dtype)
        sums = weights.new_zeros((*weights.shape[:-1], len(self.values)), dtype=wide)
        index = self._met(table).unsqueeze(-3).expand(weights.shape)
        sums = sums.scatter_add(-1, index, weights.to(wide))
        return (out + products(sums, self.values.mT)).to(out.dtype)
