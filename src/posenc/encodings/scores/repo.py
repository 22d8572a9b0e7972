"""RePo: each token says itself where it stands, and rotary positions take it at its word."""

from collections.abc import Sequence
from math import pi
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_number, check_whole
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, working_dtype
from posenc.encodings.queries_keys.by_profile import refuse_profile
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.temperature import check_unrotated
from posenc.encodings.scores.both import both_positions, of_each
from posenc.encodings.scores.content import checked_content, products, scale_of
from posenc.encodings.scores.hidden import checked_features, checked_hidden
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.rotary.front import rotate
from posenc.positions import Integers, in_float64


class RePo(ScoreEncoding):
    """score_ij = (R(z_i) q_i) · (R(z_j) k_j) · scale,  z = (1 − β) F (silu(G x) ⊙ C x) + β p

    where x is the hidden state of a token, p its position, and z a real number for each head. The
    scores are computed anew from unrotated queries and keys, so it comes first among encodings of
    scores, and no rotary encoding stands beside it. The authors begin training with a blend above 0
    and let it fall to 0; ``blend`` is an attribute, to be set as training goes on, and held to the
    same bounds then. At 0 positions are not seen: order then reaches tokens by the causal mask, and
    by what layers below put into x.

    A cache keeps what tokens said beside unrotated keys. A learned position has no exact value to
    keep: angles are float64, which errs by less than 2^-50 of what the sizes of the two parts of z
    turn together. Where the parts cancel, that is more of the angle itself.

    Args:
        heads: Number of query heads; each has positions of its own.
        rotary: The rotation: schedule, pairing and width of heads.
        dim: Width of the hidden state.
        hidden: Width of G and C; ``dim // 8`` if not given, as in the authors' code.
        blend: β, how much of z is the true position.
        std: Standard deviation of the normal initialization.
        device: Where the parameters are made.
        dtype: Their dtype.

    Raises:
        TypeError: ``rotary`` is no ``Rotary``.
        ValueError: A number is not positive, ``blend`` is no share from 0 to 1, or queries, keys or
            hidden states were not given.

    Reference:
        Li et al. 2025, "RePo: Language Models with Context Re-Positioning" (arXiv:2512.14391);
        ``dynamic_position_encoding_swigluex_multihead`` in SakanaAI/repo.

    Example:
        >>> repo, x = RePo(2, Rotary(4), dim=16), torch.randn(1, 5, 16)
        >>> q, k = torch.randn(2, 1, 2, 5, 4)
        >>> repo(q @ k.mT / 2, q=q, k=k, q_hidden=x, k_hidden=x).shape
        torch.Size([1, 2, 5, 5])
    """

    is_relative = True
    is_pairwise = True
    makes_anew = True
    reads_hidden = True

    def __init__(
        self,
        heads: int,
        rotary: Rotary,
        dim: int,
        hidden: int | None = None,
        *,
        blend: float = 0.0,
        std: float = 0.02,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        check_whole(heads=heads, dim=dim)
        if not isinstance(rotary, Rotary):
            raise TypeError(f"rotary is {rotary!r}; pass a Rotary, as Rotary(64).")
        refuse_profile("RePo", rotary)
        hidden = max(dim // 8, 1) if hidden is None else hidden
        check_whole(hidden=hidden)
        check_number(0.0, std=std)
        self.heads, self.rotary, self.dim, self.hidden = heads, rotary, dim, hidden
        self.blend, self.std = blend, std
        factory = {"device": device, "dtype": dtype}
        self.gate = nn.Parameter(torch.empty(hidden, dim, **factory))
        self.content = nn.Parameter(torch.empty(hidden, dim, **factory))
        self.final = nn.Parameter(torch.empty(heads, hidden, **factory))
        self.reset_parameters()

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "blend":  # at first, and as training goes on
            check_number(0.0, blend=value)
            if value > 1:
                raise ValueError(f"blend is {value}; it must be a share from 0 to 1.")
        super().__setattr__(name, value)

    def reset_parameters(self) -> None:
        """Draw G, C and F anew from N(0, std²)."""
        for weight in (self.gate, self.content, self.final):
            nn.init.normal_(weight, std=self.std)

    def check_beside(
        self, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
    ) -> None:
        """Refuse what rotates queries and keys before; a temperature may stand there.

        Raises:
            ValueError: Something does.
        """
        check_unrotated(self, queries_keys)

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"] | Integers,
        k_positions: Int64[Tensor, "*batch k_len"] | Integers,
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch 2 q_len k_len"]:
        """The two positions of every pair; whole numbers whatever ``dtype``.

        Raises:
            TypeError: Positions are not integers.
            ValueError: A position reaches 2^56.
        """
        return both_positions(q_positions, k_positions)

    def query_features(
        self, hidden: Float[Tensor, "*batch q_len dim"]
    ) -> Float[Tensor, "*batch q_len heads"]:
        """F (silu(G x) ⊙ C x): where each token says that it stands, for every head."""
        checked_hidden("RePo", self.dim, hidden)
        x = hidden.to(working_dtype(hidden.dtype))
        return products(F.silu(products(x, self.gate)) * products(x, self.content), self.final)

    def key_features(
        self, hidden: Float[Tensor, "*batch k_len dim"]
    ) -> Float[Tensor, "*batch k_len heads"]:
        """The same, of keys."""
        return self.query_features(hidden)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows 2 q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
        q_features: Float[Tensor, "*batch q_len heads"] | None = None,
        k_features: Float[Tensor, "*batch k_len heads"] | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """Scores of ``q`` and ``k`` rotated to where their tokens say that they stand."""
        width = self.rotary.head_dim
        checked_content("RePo", self.heads, scores, q=(q, width), k=(k, width))
        checked_features("RePo", self.heads, scores, q_features=q_features, k_features=k_features)
        assert q is not None
        assert k is not None
        assert q_features is not None
        assert k_features is not None
        wide, group = working_dtype(scores.dtype), self.heads // k.shape[-3]
        queries, keys = of_each(table)
        there_q = self._rotated(q.to(wide), q_features, queries)
        keys_of_heads = k.to(wide).repeat_interleave(group, dim=-3)
        there_k = self._rotated(keys_of_heads, k_features, keys)
        return (products(there_q, there_k) * scale_of(scale, width)).to(scores.dtype)

    def _rotated(self, x: Tensor, features: Tensor, positions: Tensor) -> Tensor:
        """``x`` rotated, each head by positions of its own."""
        learned, places = in_float64(features), in_float64(positions)
        stands = (1 - self.blend) * learned + self.blend * places[..., None]
        radians = [turn * 2.0**-TURN_BITS * 2 * pi for turn in self.rotary.sincos.turns]
        frequencies = torch.tensor(radians, dtype=torch.float64, device=stands.device)
        angles = stands.mT.unsqueeze(-1) * frequencies
        factor = self.rotary.frequencies.attention_factor
        both = angles.cos(), angles.sin()
        cos, sin = ((part * factor).to(x.dtype).to(x.device) for part in both)
        return rotate(x, cos, sin, pairing=self.rotary.pairing, rotated=self.rotary.rotated)

    def extra_repr(self) -> str:
        """The arguments besides the rotation."""
        return f"heads={self.heads}, dim={self.dim}, hidden={self.hidden}, blend={self.blend}"
