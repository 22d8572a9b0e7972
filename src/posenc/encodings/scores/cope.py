"""Contextual position encoding: positions that count what the query finds worth counting."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.between import sums_after_key
from posenc.encodings.scores.content import checked_content, products, scale_of
from posenc.encodings.scores.picked import grouped_keys
from posenc.positions import Integers, checked_distances


class CoPE(ScoreEncoding):
    """The query's product with a learned vector, chosen by a count of gates instead of tokens.

    g_ij = σ(score_ij),  p_ij = min(Σ_{l = j … i} g_il, max_positions − 1)
    score_ij += q_i · e[p_ij],  e[p] interpolated linearly between ⌊p⌋ and ⌈p⌉

    It is causal: a key after its query opens no gate. The gates come from the scores as they
    arrive, scaled and unmasked, so it stands first among score encodings for gates of content
    alone. All heads share the vectors. A packed or padded row is counted document by document: see
    ``posenc.encodings.scores.between.sums_after_key``. A token at the position of the one before it
    is taken for padding, which is not counted: count tokens that share a position anew.

    Paper and authors' code differ: the paper's listing adds q·e to scaled scores, which is the
    default here; the code by default scales q·e like the scores as well, which ``scaled`` does.

    The code can gate by other products too. Keys of their own for the gates are a linear map of the
    keys here (``separate_keys``), where the code maps the hidden state, which scores do not see.
    For gates by values, or by any other product, call ``encode(..., gates=)`` with their logits.

    Args:
        heads: Number of query heads.
        head_dim: Width of a head.
        max_positions: Number of vectors; counts past the last stay there.
        scaled: Whether q·e is multiplied with the scale of the scores, as 1/√head_dim.
        separate_keys: Whether the gates have keys of their own, a learned map of the keys of each
            head. It begins as the identity.
        std: Standard deviation of the normal initialization; the authors begin with zeros.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or queries were not given, or keys where the gates
            need them.

    Reference:
        Golovneva et al. 2024, "Contextual Position Encoding" (arXiv:2405.18719), with the listing
        in its appendix; the authors' code is ``projects/cope`` of facebookresearch/RAM, where
        the options are ``--cope-sep-key``, ``--cope-val-gates`` and ``--cope-nodiv``.

    Example:
        >>> cope, q = CoPE(heads=2, head_dim=8, max_positions=16), torch.randn(1, 2, 5, 8)
        >>> cope(q @ q.mT / 8**0.5, q=q).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = True
    is_pairwise = False  # it counts the tokens between

    def __init__(
        self,
        heads: int,
        head_dim: int,
        max_positions: int,
        *,
        scaled: bool = False,
        separate_keys: bool = False,
        std: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim, max_positions=max_positions)
        check_number(0.0, std=std)
        self.heads, self.head_dim, self.max_positions = heads, head_dim, max_positions
        self.scaled, self.std = scaled, std
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(max_positions, head_dim, **factory))
        self.key_maps = None
        if separate_keys:
            self.key_maps = nn.Parameter(torch.empty(heads, head_dim, head_dim, **factory))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw every vector anew from N(0, std²), and make the maps of keys the identity."""
        nn.init.normal_(self.weight, std=self.std)
        if self.key_maps is not None:
            self.key_maps.copy_(torch.eye(self.head_dim, device=self.key_maps.device))

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k, which says what lies between them; whole numbers whatever ``dtype``."""
        return checked_distances(q_positions, k_positions)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
        gates: Float[Tensor, "*batch heads q_len k_len"] | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with q · e[p], added in float32 at least and rounded once.

        ``gates`` are logits of the gates, scaled, in place of the scores: as
        ``query @ value.mT * scale`` for gates by values.
        """
        checked_content("CoPE", self.heads, scores, q=(q, self.head_dim))
        assert q is not None
        wide = working_dtype(scores.dtype)
        if gates is None and self.key_maps is not None:
            checked_content("CoPE", self.heads, scores, k=(k, self.head_dim))
            gates = self._by_own_keys(q.to(wide), k, scale)  # type: ignore[arg-type]
        positions = self.positions((scores if gates is None else gates).to(wide), table)
        # Padding may hold NaN, which is no index; what it gives is masked.
        low = positions.floor().long().clamp(0, self.max_positions - 1)
        high = (low + 1).clamp(max=self.max_positions - 1)
        at = products(q.to(wide), self.weight)
        between = torch.lerp(at.gather(-1, low), at.gather(-1, high), positions - low)
        factor = scale_of(scale, self.head_dim) if self.scaled else 1.0
        return (scores + factor * between).to(scores.dtype)

    def _by_own_keys(self, q: Tensor, k: Tensor, scale: float | None) -> Tensor:
        assert self.key_maps is not None
        keys = grouped_keys(k.to(q.dtype), self.heads)
        return products(q, products(keys, self.key_maps)) * scale_of(scale, self.head_dim)

    def positions(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """p_ij: how much a query counts from a key up to itself.

        Example:
            >>> table = checked_distances(range(3), range(3))
            >>> CoPE(1, 8, max_positions=16).positions(torch.zeros(1, 3, 3), table)
            tensor([[[0.5000, 0.0000, 0.0000],
                     [1.0000, 0.5000, 0.0000],
                     [1.5000, 1.0000, 0.5000]]])
        """
        gates = torch.where((table >= 0).unsqueeze(-3), scores.sigmoid(), 0)
        return (gates + sums_after_key(gates, table)).clamp(max=self.max_positions - 1)

    def extra_repr(self) -> str:
        """The arguments."""
        told = f"heads={self.heads}, head_dim={self.head_dim}, max_positions={self.max_positions}"
        own_keys = "" if self.key_maps is None else ", separate_keys=True"
        return f"{told}{', scaled=True' if self.scaled else ''}{own_keys}"
