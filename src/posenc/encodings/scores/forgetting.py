"""Forgetting attention and CABLE: each token says how much of all before it is kept."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.scores.content import Content, OfDistance, sums_after_key
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.numerics.product import products
from posenc.positions import Integers, checked_distances, consecutive


def forgetting_bias(
    log_forget: Float[Tensor, "*batch heads k_len"],
    q_positions: Int64[Tensor, "*rows q_len"] | Integers | None = None,
    k_positions: Int64[Tensor, "*rows k_len"] | Integers | None = None,
) -> Scores:
    """Σ log f_l over the tokens l after key j and up to query i; 0 for keys after their query.

    It is the paper's bias for gates that a model computes itself: pass it to ``posenc.attention``
    as ``attn_mask``. ``log_forget`` must be finite: clamp that of a closed gate, as
    ``log_forget.clamp(min=-1e4)``.

    Reference:
        Lin et al. 2025, "Forgetting Transformer" (arXiv:2503.02130).

    Example:
        >>> forgetting_bias(torch.tensor([[-9.0, -0.5, -0.25]]))
        tensor([[[ 0.0000,  0.0000,  0.0000],
                 [-0.5000,  0.0000,  0.0000],
                 [-0.7500, -0.2500,  0.0000]]])
    """
    if (q_positions is None) != (k_positions is None):
        raise ValueError("Positions were given for one side; give q_positions and k_positions.")
    if q_positions is None or k_positions is None:
        q_positions = k_positions = consecutive(log_forget.shape[-1], device=log_forget.device)
    return sums_after_key(log_forget.unsqueeze(-2), checked_distances(q_positions, k_positions))


class Forgetting(OfDistance):
    """A bias that falls with every token between key and query, as fast as those tokens say.

    score_ij += Σ_{j < l ≤ i} log f_l,  f_l = σ(w_h · k_l + b_h)

    The paper computes the gate from the hidden state, this from the key; for the paper's own use
    ``forgetting_bias``. It is causal: pairs whose key comes after its query stay. For documents and
    padding see ``posenc.encodings.scores.content``.

    Args:
        bias: First value of b; gates begin around σ(bias), 1/2 in the authors' code.

    Reference:
        Lin et al. 2025, "Forgetting Transformer" (arXiv:2503.02130).

    Example:
        >>> forgetting, k = Forgetting(heads=4, head_dim=8), torch.randn(1, 2, 5, 8)
        >>> forgetting(torch.zeros(1, 4, 5, 5), k=k)[0, 0, 4].diff() > 0
        tensor([True, True, True, True])
    """

    def __init__(
        self,
        heads: int,
        head_dim: int,
        *,
        std: float = 0.02,
        bias: float = 0.0,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        check_whole(heads=heads, head_dim=head_dim)
        check_number(bias=bias)
        self.heads, self.head_dim, self.std, self.first_bias = heads, head_dim, std, bias
        self.weight = nn.Parameter(torch.empty(heads, head_dim, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(heads, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw w from N(0, std²), and set b to its first value."""
        nn.init.normal_(self.weight, std=self.std)
        nn.init.constant_(self.bias, self.first_bias)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        return scores + sums_after_key(self.log_forget(content.k).unsqueeze(-2), table)

    def log_forget(
        self, k: Float[Tensor, "*batch kv_heads k_len head_dim"]
    ) -> Float[Tensor, "*batch heads k_len"]:
        """log f of every key, for every query head."""
        weight = self.weight.unflatten(0, (k.shape[-3], -1))
        gates = products(k, weight).mT.flatten(-3, -2)
        return F.logsigmoid(gates + self.bias.to(k.dtype).unsqueeze(-1))


class CABLE(OfDistance):
    """score_ij −= Σ_{j < l ≤ i} softplus(w_h · x_l + b_h), with x_l the hidden state of token l

    so each token lengthens the way to all before it by as much as it says. It is causal: pairs
    whose key comes after its query stay. For documents and padding see
    ``posenc.encodings.scores.content``.

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
