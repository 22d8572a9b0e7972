"""PaTH: products along a path of reflections that the tokens between query and key make."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_multiple, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.rotation import check_key_heads
from posenc.encodings.scores.content import Content, OfDistance, steps_of_keys
from posenc.encodings.shapes import Device, Distances, Dtype, Scores
from posenc.numerics.product import products

EPSILON = 1e-6


class PaTH(OfDistance):
    """score_ij = q_iᵀ H_i ··· H_{j+1} k_j · scale,  H_l = I − β_l w_l w_lᵀ

    where token l gives the direction w_l = u / √(|u|² + 10⁻⁶), u = U D x_l, and β_l = 2 σ(v · x_l +
    c):
    at 1 the direction is forgotten, at 2 turned around, at 0 nothing happens. Each key head has
    paths of its own. All H together add ``−(q Wᵀ) (I + strict(β W Wᵀ))⁻¹ strict(β W kᵀ) · scale``
    to the scores; with ``Forgetting`` or ``CABLE`` beside it, it is PaTH-FoX.

    It is causal: pairs whose key comes after its query stay. For documents and padding see
    ``posenc.encodings.scores.content``. The paper also passes u through a convolution over three
    tokens: a model that has it passes ``k_features=torch.cat([w.flatten(-2), beta], dim=-1)`` to
    ``encode``.

    Args:
        rank: Width between D and U, 32 in the paper; ``None`` for one map of full rank.

    Reference:
        Yang et al. 2025, "PaTH Attention: Position Encoding via Accumulating Householder
        Transformations", section 3 (arXiv:2505.16381); ``naive_path_attn`` of
        flash-linear-attention.

    Example:
        >>> path, x = PaTH(heads=2, head_dim=4, dim=8), torch.randn(1, 5, 8)
        >>> q, k = torch.randn(2, 1, 2, 5, 4)
        >>> path(q @ k.mT / 2, q=q, k=k, q_hidden=x, k_hidden=x).shape
        torch.Size([1, 2, 5, 5])
    """

    reads_hidden = True

    def __init__(
        self,
        heads: int,
        head_dim: int,
        dim: int,
        kv_heads: int | None = None,
        rank: int | None = 32,
        *,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        inner = dim if rank is None else rank
        check_whole(heads=heads, head_dim=head_dim, dim=dim, kv_heads=kv_heads, rank=inner)
        check_multiple(kv_heads, heads=heads)
        self.heads, self.head_dim, self.dim, self.kv_heads = heads, head_dim, dim, kv_heads
        self.rank, self.std = rank, std
        factory = {"device": device, "dtype": dtype}
        self.down = None if rank is None else nn.Parameter(torch.empty(rank, dim, **factory))
        self.weight = nn.Parameter(torch.empty(kv_heads * head_dim, inner, **factory))
        self.beta_weight = nn.Parameter(torch.empty(kv_heads, dim, **factory))
        self.beta_bias = nn.Parameter(torch.empty(kv_heads, **factory))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every map from N(0, std²), and set c to 0."""
        for weight in (self.down, self.weight, self.beta_weight):
            if weight is not None:
                nn.init.normal_(weight, std=self.std)
        nn.init.zeros_(self.beta_bias)

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len _"]:
        """w of every key head, side by side, and β of each: ``kv_heads · (head_dim + 1)`` wide."""
        x = hidden.to(working_dtype(hidden.dtype))
        u = products(x if self.down is None else products(x, self.down), self.weight)
        u = u.unflatten(-1, (self.kv_heads, self.head_dim))
        w = u * (u.square().sum(-1, keepdim=True) + EPSILON).rsqrt()
        beta = 2 * (products(x, self.beta_weight) + self.beta_bias.to(x.dtype)).sigmoid()
        return torch.cat([w.flatten(-2), beta], dim=-1)

    def changed(self, scores: Scores, table: Distances, content: Content) -> Scores:
        width = self.head_dim
        w, beta = content.k_features.split([self.kv_heads * width, self.kv_heads], dim=-1)
        w = w.unflatten(-1, (self.kv_heads, width)).transpose(-2, -3)
        grouped, keys = content.q.unflatten(-3, (self.kv_heads, -1)), content.k
        check_key_heads(keys, self.kv_heads, True)
        change = _change(grouped, keys, w, beta.mT, table).flatten(-4, -3)
        return scores - change * content.scale


def _change(
    q: Float[Tensor, "*batch kv_heads group q_len head_dim"],
    k: Float[Tensor, "*batch kv_heads k_len head_dim"],
    w: Float[Tensor, "*batch kv_heads k_len head_dim"],
    beta: Float[Tensor, "*batch kv_heads k_len"],
    distance: Distances,
) -> Float[Tensor, "*batch kv_heads group q_len k_len"]:
    """q_i · k_j − q_iᵀ H_i ··· H_{j+1} k_j of every pair, all H at once."""
    counted, earlier = _steps(distance)
    rows = (beta * counted.unsqueeze(-2)).unsqueeze(-1) * w
    between = torch.where(earlier.unsqueeze(-3), products(rows, w), 0)
    reached = torch.where(earlier.unsqueeze(-3), products(rows, k), 0)
    # Unit triangular: the diagonal that it is taken to have is not read.
    ways = torch.linalg.solve_triangular(between, reached, upper=False, unitriangular=True)
    seen = (distance >= 0).unsqueeze(-3).unsqueeze(-3)
    return products(torch.where(seen, products(q, w.unsqueeze(-3)), 0), ways.mT.unsqueeze(-3))


def _steps(distance: Distances) -> tuple[Tensor, Tensor]:
    """Which keys take a step, and for each key which stand before it in its document."""
    step = steps_of_keys(distance)
    counted = F.pad(step > 0, (1, 0), value=False)[..., : distance.shape[-1]]  # of no keys: none
    document = F.pad(step < 0, (1, 0), value=False).cumsum(-1)
    row = torch.arange(distance.shape[-1], device=distance.device)
    same = document.unsqueeze(-1) == document.unsqueeze(-2)
    return counted, same & (row.unsqueeze(-1) > row)
