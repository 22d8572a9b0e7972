"""CABLE: a bias cumulated from what each token says of itself."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.between import sums_after_key
from posenc.encodings.scores.content import Content, OfDistance
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.numerics.product import products


class CABLE(OfDistance):
    """score_ij −= Σ_{j < l ≤ i} softplus(w_h · x_l + b_h), with x_l the hidden state of token l

    so each token lengthens the way to all before it by as much as it says. It is the bias of
    forgetting attention with the sign of its gate turned. It is causal: pairs whose key comes after
    its query stay. For documents and padding see ``posenc.encodings.scores.between``. A cache keeps
    one number a head and token.

    Checkpoints of the authors' code take ``scale=1.0``; load ``h_attn`` as ``weight`` and ``bias``.

    Reference:
        Veisi et al. 2025, "Context-aware Biases for Length Extrapolation" (arXiv:2503.08067);
        ``src/Cable.py`` of axiomlab/Cable.

    Example:
        >>> cable, x = CABLE(heads=1, dim=2, std=0.0), torch.randn(1, 3, 2)
        >>> cable(torch.zeros(1, 1, 3, 3), q_hidden=x, k_hidden=x).detach()[0, 0, 2]
        tensor([-1.3863, -0.6931,  0.0000])
    """

    reads_hidden = True

    def __init__(
        self, heads: int, dim: int, *, std: float = 0.02, device: Device = None, dtype: Dtype = None
    ):
        super().__init__()
        check_whole(heads=heads, dim=dim)
        self.heads, self.dim, self.std = heads, dim, std
        self.weight = nn.Parameter(torch.empty(heads, dim, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw w from N(0, std²), and set b to 0."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.zeros_(self.bias)

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len heads"]:
        """−softplus(w · x + b) of every token, one number a head."""
        wide = working_dtype(hidden.dtype)
        return -F.softplus(products(hidden.to(wide), self.weight) + self.bias.to(wide))

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        return scores + sums_after_key(content.k_features.mT.unsqueeze(-2), table)
