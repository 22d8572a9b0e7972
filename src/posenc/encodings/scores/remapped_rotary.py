"""Rotary positions that depend on the pair, or on what a token says of itself."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from posenc.arguments import check_probability, check_whole
from posenc.encodings.base import QueryKeyEncoding, working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_together, rotation_table
from posenc.encodings.queries_keys.temperature import QueryTemperature, check_unrotated
from posenc.encodings.remapping.pairs import PairRemapping
from posenc.encodings.scores.content import Content, OfBothPositions, grouped_keys, of_each
from posenc.encodings.shapes import BothPositions, Device, Dtype, Scores
from posenc.encodings.told import Drawn
from posenc.frequencies import Linear
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.rotary.front import rotate
from posenc.numerics.product import products
from posenc.numerics.sincos import RADIANS, SinCos
from posenc.positions import in_float64


def check_rotary(rotary: Rotary) -> None:
    """``rotary`` is plainly frequencies and a layout."""
    if not isinstance(rotary, Rotary) or rotary.arithmetic != "exact":
        raise ValueError(f"rotary is {rotary!r}; it must be a Rotary with arithmetic='exact'.")


def radians(rotary: Rotary, device: torch.device) -> Float[Tensor, "pairs"]:
    """Its frequencies in float64."""
    own = [turn * 2.0**-TURN_BITS * RADIANS for turn in rotary.sincos.turns]
    return torch.tensor(own, dtype=torch.float64, device=device)


def rotated_by(
    rotary: Rotary,
    x: Float[Tensor, "*batch heads seq head_dim"],
    angles: Float[Tensor, "*batch heads seq pairs"],
    factor: float = 1.0,
) -> Float[Tensor, "*batch heads seq head_dim"]:
    """``x`` turned by ``angles`` of its own in the layout of ``rotary``, and times ``factor``."""
    both = angles.cos(), angles.sin()
    cos, sin = ((part * factor).to(x.dtype).to(x.device) for part in both)
    return rotate(x, cos, sin, pairing=rotary.pairing, rotated=rotary.rotated)


class RemappedRotary(OfBothPositions):
    """The scores of far pairs, computed anew at the distances of ``SelfExtend`` and its like.

    score(p, n) = (R(f(p) − p) q̂) · (R(g(n) − n) k̂) · scale  where (p, n) is taken for (f(p), g(n)),
    as it was elsewhere

    It stands beside the rotary encoding, whose rotated q̂ = R(p) q and k̂ = R(n) k it rotates
    further; a cache of rotated keys serves as it is. Scores of far pairs replace what came before,
    so it comes first among score encodings. In a ``Positional`` without a rotary encoding it takes
    queries and keys to be rotated already.

    Args:
        rotary: The rotary encoding of queries and keys.
        remapping: ``SelfExtend``, ``ReRoPE``, ``DualChunk``, ``CyclicOffset``, or any other
            ``PairRemapping``.

    Reference:
        Jin et al. 2024, "Self-Extend" (arXiv:2401.01325), where two sets of scores are merged.

    Example:
        >>> from posenc import Positional, SelfExtend
        >>> rotary = Rotary(64)
        >>> longer = RemappedRotary(8, rotary, SelfExtend(group=4, window=512))
        >>> positional = Positional(queries_keys=rotary, scores=longer)
    """

    is_pairwise = makes_anew = True

    def __init__(self, heads: int, rotary: Rotary, remapping: PairRemapping):
        super().__init__()
        check_whole(heads=heads)
        check_rotary(rotary)
        self.heads, self.rotary, self.remapping = heads, rotary, remapping
        self.is_relative = remapping.is_relative
        parts = remapping.parts
        self.sincos = rotary.sincos if parts == 1 else SinCos(Linear(rotary.frequencies, parts))

    def check_beside(
        self, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
    ) -> None:
        rotations = [each for each in queries_keys if not isinstance(each, QueryTemperature)]
        if not rotations and rotated_before:
            return
        if [_rotation(each) for each in rotations] != [_rotation(self.rotary)]:
            raise ValueError(
                f"RemappedRotary rotates further what {self.rotary!r} rotated; queries and keys "
                f"are changed by {' and '.join(map(repr, rotations)) or 'nothing'}."
            )

    def changed(self, scores: Scores, table: BothPositions, content: Content) -> Scores:
        parts, (queries, keys) = self.remapping.parts, of_each(table)
        for pairs in self.remapping.remapped_pairs(queries, keys):
            there_q = self._rotated(content.q, pairs.queries - parts * queries)
            there_k = self._rotated(content.k, pairs.keys - parts * keys)
            there = products(there_q, grouped_keys(there_k, self.heads)) * content.scale
            scores = torch.where(pairs.where.unsqueeze(-3), there, scores)
        return scores

    def _rotated(self, x: Tensor, steps: Tensor) -> Tensor:
        """``x`` rotated by so many steps of the remapping."""
        # Without the attention factor of the schedule: the first rotation had it.
        layout = replace(self.rotary.layout, heads_first=True)
        return rotate_together((x,), rotation_table(self.sincos, steps, x.dtype), None, layout)[0]


def _rotation(encoding: QueryKeyEncoding) -> tuple[object, ...]:
    """All that says how a rotary encoding turns heads; of another, its kind alone."""
    names = ("frequencies", "head_dim", "rotated_dim", "pairing", "rotated", "arithmetic")
    return (type(encoding), *(getattr(encoding, name, None) for name in names))


class RePo(Drawn, OfBothPositions):
    """score_ij = (R(z_i) q_i) · (R(z_j) k_j) · scale,  z = (1 − β) F (silu(G x) ⊙ C x) + β p

    where x is the hidden state of a token, p its position, and z a real number for each head.
    Scores are computed anew from unrotated queries and keys, so it comes first among encodings of
    scores, without a rotary encoding. The authors let the blend fall to 0 in training: set
    ``blend``. At 0 positions are not seen. A cache keeps what tokens said beside unrotated keys.
    Angles are float64.

    Args:
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
