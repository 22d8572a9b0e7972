"""RePo: each token says itself where it stands, and rotary positions take it at its word."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_probability, check_whole
from posenc.encodings.base import working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import check_unrotated
from posenc.encodings.scores.content import Content, OfBothPositions, of_each
from posenc.encodings.scores.rotated import check_rotary, radians, rotated_by
from posenc.encodings.shapes import BothPositions, Device, Dtype, Scores
from posenc.encodings.told import Drawn
from posenc.numerics.product import products
from posenc.positions import in_float64


class RePo(Drawn, OfBothPositions):
    """score_ij = (R(z_i) q_i) · (R(z_j) k_j) · scale,  z = (1 − β) F (silu(G x) ⊙ C x) + β p

    where x is the hidden state of a token, p its position, and z a real number for each head.
    Scores are computed anew from unrotated queries and keys, so it comes first among encodings of
    scores, without a rotary encoding. The authors let the blend fall to 0 in training: set
    ``blend``. At 0 positions are not seen. A cache keeps what tokens said beside unrotated keys.
    Angles are float64.

    Args:
        rotary: The rotation: schedule, pairing and width of heads.
        hidden: Width of G and C; ``dim // 8`` if not given, as in the authors' code.
        blend: β, how much of z is the true position, from 0 to 1.

    Reference:
        Li et al. 2025, "RePo: Language Models with Context Re-Positioning" (arXiv:2512.14391);
        ``dynamic_position_encoding_swigluex_multihead`` in SakanaAI/repo.

    Example:
        >>> repo, x = RePo(2, Rotary(4), dim=16), torch.randn(1, 5, 16)
        >>> q, k = torch.randn(2, 1, 2, 5, 4)
        >>> repo(q @ k.mT / 2, q=q, k=k, q_hidden=x, k_hidden=x).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = is_pairwise = makes_anew = reads_hidden = True
    check_beside = check_unrotated

    def __init__(
        self,
        heads: int,
        rotary: Rotary,
        dim: int,
        hidden: int | None = None,
        *,
        blend: float = 0.0,
        std: float = 0.02,
        device: Device = None,
        dtype: Dtype = None,
    ):
        super().__init__()
        hidden = max(dim // 8, 1) if hidden is None else hidden
        check_whole(heads=heads, dim=dim, hidden=hidden)
        check_rotary(rotary)
        check_probability(blend=blend)
        self.heads, self.rotary, self.dim, self.hidden = heads, rotary, dim, hidden
        self.blend, self.std = blend, std
        factory = {"device": device, "dtype": dtype}
        self.gate = nn.Parameter(torch.empty(hidden, dim, **factory))
        self.content = nn.Parameter(torch.empty(hidden, dim, **factory))
        self.final = nn.Parameter(torch.empty(heads, hidden, **factory))
        self.reset_parameters()

    def query_features(
        self, hidden: Float[Tensor, "*batch q_len dim"]
    ) -> Float[Tensor, "*batch q_len heads"]:
        """F (silu(G x) ⊙ C x): where each token says that it stands, for every head."""
        x = hidden.to(working_dtype(hidden.dtype))
        return products(F.silu(products(x, self.gate)) * products(x, self.content), self.final)

    key_features = query_features

    def changed(self, scores: Scores, table: BothPositions, content: Content) -> Scores:
        of_queries, of_keys = of_each(table)
        there_q = self._rotated(content.q, content.q_features, of_queries)
        there_k = self._rotated(content.keys, content.k_features, of_keys)
        return products(there_q, there_k) * content.scale

    def _rotated(self, x: Tensor, features: Tensor, positions: Tensor) -> Tensor:
        """``x`` rotated, each head by positions of its own."""
        learned, places = in_float64(features), in_float64(positions)
        stands = (1 - self.blend) * learned + self.blend * places[..., None]
        angles = stands.mT.unsqueeze(-1) * radians(self.rotary, stands.device)
        return rotated_by(self.rotary, x, angles, self.rotary.frequencies.attention_factor)
