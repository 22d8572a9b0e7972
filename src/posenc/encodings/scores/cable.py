"""CABLE: a bias cumulated from what each token says of itself."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.scores.between import sums_after_key
from posenc.encodings.scores.content import checked_content, products
from posenc.encodings.scores.hidden import checked_features, checked_hidden
from posenc.positions import Integers, checked_distances


class CABLE(ScoreEncoding):
    """score_ij −= Σ_{j < l ≤ i} softplus(w_h · x_l + b_h), with x_l the hidden state of token l

    so each token lengthens the way to all before it by as much as it says, where ALiBi lengthens it
    by its slope. Since −softplus(u) = log σ(−u), it is the bias of forgetting attention with the
    sign of its gate turned: a checkpoint of either may be loaded into the other so.

    It is causal: pairs whose key comes after its query are left as they are. Decoding keeps one
    number a head and token beside the keys. A packed or padded row is cumulated document by
    document: see ``posenc.encodings.scores.between.sums_after_key``. A token at the position of the
    one before it is taken for padding, which is no step: count tokens that share a position anew.

    The authors' code does not scale products of queries and keys, since the widths that it divides
    are one: its checkpoints take ``scale=1.0``. The map is ``h_attn`` there: load it as ``weight``
    and ``bias``.

    Args:
        heads: Number of query heads.
        dim: Width of the hidden state.
        std: Standard deviation of the normal initialization of w; b begins at 0.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        ValueError: A number is not positive, or no hidden state of the keys was given.

    Reference:
        Veisi et al. 2025, "Context-aware Biases for Length Extrapolation" (arXiv:2503.08067);
        ``src/Cable.py`` of axiomlab/Cable.

    Example:
        >>> cable, x = CABLE(heads=1, dim=2, std=0.0), torch.randn(1, 3, 2)
        >>> cable(torch.zeros(1, 1, 3, 3), q_hidden=x, k_hidden=x).detach()[0, 0]
        tensor([[ 0.0000,  0.0000,  0.0000],
                [-0.6931,  0.0000,  0.0000],
                [-1.3863, -0.6931,  0.0000]])
    """

    is_relative = True
    is_pairwise = False  # it sums over the tokens between
    reads_hidden = True

    def __init__(
        self,
        heads: int,
        dim: int,
        *,
        std: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, dim=dim)
        check_number(0.0, std=std)
        self.heads, self.dim, self.std = heads, dim, std
        factory = {"device": device, "dtype": dtype}
        self.weight = nn.Parameter(torch.empty(heads, dim, **factory))
        self.bias = nn.Parameter(torch.empty(heads, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw w anew from N(0, std²), and set b to 0."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.zeros_(self.bias)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch q_len k_len"]:
        """q − k, which says what lies between them; whole numbers whatever ``dtype``."""
        return checked_distances(q_positions, k_positions)

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len _"]:
        """−softplus(w · x + b) of every token, one number a head."""
        checked_hidden("CABLE", self.dim, hidden)
        wide = working_dtype(hidden.dtype)
        return -F.softplus(products(hidden.to(wide), self.weight) + self.bias.to(wide))

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
        q_features: Float[Tensor, "*batch q_len _"] | None = None,
        k_features: Float[Tensor, "*batch k_len _"] | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores`` with their bias, added in float32 at least and rounded once."""
        checked_content("CABLE", self.heads, scores)
        checked_features("CABLE", self.heads, scores, unread=q_features, k_features=k_features)
        assert k_features is not None
        steps = k_features.to(working_dtype(scores.dtype)).mT.unsqueeze(-2)
        return (scores + sums_after_key(steps, table)).to(scores.dtype)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"heads={self.heads}, dim={self.dim}"
