"""Shaw et al.: a learned vector for each clipped distance, met by the query (and weighed)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.content import checked_content, products, scale_of
from posenc.encodings.scores.picked import picked
from posenc.positions import Integers, checked_distances


class Shaw(ScoreEncoding):
    """score(q, k) += q · a[clip(k − q, −r, r)] · scale, with vectors shared by all heads.

    The scale is that of the products, 1/√head_dim in the paper. With ``values=True`` each value has
    a vector of its distance added too: ``encode_output`` adds them to the output of attention from
    its weights.

    Args:
        heads: Number of query heads.
        head_dim: Width of a head.
        reach: r: the distance from which on all are one.
        values: Whether there are vectors for values.
        std: Standard deviation of the normal initialization.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or no queries were given.

    Reference:
        Shaw, Uszkoreit & Vaswani 2018, "Self-Attention with Relative Position Representations",
        equations 3 to 5 (arXiv:1803.02155).

    Example:
        >>> shaw, q = Shaw(heads=2, head_dim=8, reach=4), torch.randn(1, 2, 5, 8)
        >>> shaw(q @ q.mT / 8**0.5, q=q).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = True
    is_pairwise = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        reach: int,
        *,
        values: bool = False,
        std: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, reach=reach)
        check_number(0.0, std=std)
        self.heads, self.head_dim, self.reach, self.std = heads, head_dim, reach, std
        self.keys = nn.Parameter(torch.empty(2 * reach + 1, head_dim, device=device, dtype=dtype))
        self.values = nn.Parameter(torch.empty_like(self.keys)) if values else None
        self.changes_output = values
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, std²)."""
        for vectors in self.parameters():
            nn.init.normal_(vectors, std=self.std)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k, whole numbers whatever ``dtype``; ``encode`` clips them, to its own reach."""
        return checked_distances(q_positions, k_positions)

    def _met(self, distance: Int64[Tensor, "*shape"]) -> Int64[Tensor, "*shape"]:
        """Which vector each pair meets: clip(k − q) + reach."""
        return self.reach - distance.clamp(-self.reach, self.reach)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with q · a · scale, added in float32 at least and rounded once."""
        checked_content("Shaw", self.heads, scores, q=(q, self.head_dim))
        assert q is not None
        wide = working_dtype(scores.dtype)
        seen = picked(products(q.to(wide), self.keys), self._met(table))
        return (scores + seen * scale_of(scale, self.head_dim)).to(scores.dtype)

    def encode_output(
        self,
        out: Float[Tensor, "*batch heads q_len value_dim"],
        weights: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
    ) -> Float[Tensor, "*batch heads q_len value_dim"]:
        """``out`` + Σ_k weight(q, k) · a'[clip(k − q)]: equation 3; ``out`` without ``values``.

        Weights that meet the same vector are summed first, so nothing of size q × k × width is
        formed.

        Raises:
            TypeError: Values are not floating.
            ValueError: Values are of another width than ``head_dim``, or not of these weights.
        """
        if self.values is None:
            return out
        if not out.is_floating_point():
            raise TypeError(f"Values are {out.dtype}; Shaw takes floating numbers.")
        if out.shape[-1] != self.head_dim:
            raise ValueError(
                f"Values have heads of width {out.shape[-1]}; the vectors that Shaw adds to them "
                f"were built for head_dim {self.head_dim}. Give values the width of keys."
            )
        if out.shape[:-1] != weights.shape[:-1]:
            raise ValueError(
                f"out has shape {tuple(out.shape)} and weights {tuple(weights.shape)}, which are "
                f"of other heads, queries or rows of a batch. Pass the weights that it came from."
            )
        wide = working_dtype(out.dtype)
        sums = weights.new_zeros((*weights.shape[:-1], len(self.values)), dtype=wide)
        index = self._met(table).unsqueeze(-3).expand(weights.shape)
        sums = sums.scatter_add(-1, index, weights.to(wide))
        return (out + products(sums, self.values.mT)).to(out.dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        values = "" if self.values is None else ", values=True"
        return f"heads={self.heads}, head_dim={self.head_dim}, reach={self.reach}{values}"
