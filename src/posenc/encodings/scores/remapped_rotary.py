"""Rotary positions that depend on the pair: far tokens meet as if they stood elsewhere."""

from math import sqrt

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.encodings.base import ScoreEncoding, working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_heads, rotation_table
from posenc.encodings.remapping.remapped import Remapping
from posenc.encodings.scores.content import checked_content, products
from posenc.positions import checked


class RemappedRotary(ScoreEncoding):
    """The scores of far pairs, computed anew at the distances of ``SelfExtend`` and its like.

    score(p, n) = (R(f(p) − p) q̂) · (R(g(n) − n) k̂) · scale  where a pair moves to (f(p), g(n)),
    as it was elsewhere

    It stands beside the rotary encoding, whose rotated q̂ = R(p) q and k̂ = R(n) k it takes on from
    where they are, since R(f − p) R(p) = R(f). Phases are integers, so this costs one rounding and
    no more. A cache of rotated keys serves as it is. Near pairs keep their scores bit for bit;
    those of far pairs replace what came before, so it comes first among score encodings.

    Args:
        heads: Number of query heads.
        rotary: The rotary encoding of queries and keys.
        moves: ``SelfExtend``, ``ReRoPE``, ``DualChunk``, or anything that has their ``moves``.
        scale: What products of queries and keys are multiplied with; 1/√head_dim if not given.

    Raises:
        TypeError: ``rotary`` is no ``Rotary``, or ``moves`` moves nothing.
        ValueError: ``heads`` is not positive, ``rotary`` rounds its angles, or q or k are missing.

    Reference:
        Jin et al. 2024, "Self-Extend" (arXiv:2401.01325), where two sets of scores are merged.

    Example:
        >>> from posenc import Positional, SelfExtend
        >>> rotary = Rotary(64)
        >>> longer = RemappedRotary(8, rotary, SelfExtend(group=4, window=512))
        >>> positional = Positional(queries_keys=rotary, scores=longer)
    """

    def __init__(self, heads: int, rotary: Rotary, moves: Remapping, *, scale: float | None = None):
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads is {heads}; it must be 1 or more.")
        if not isinstance(rotary, Rotary):
            raise TypeError(
                f"rotary is a {type(rotary).__name__}; RemappedRotary turns on what a Rotary "
                f"encoded. Pass the one of Positional(queries_keys=...)."
            )
        if rotary.arithmetic != "exact":
            raise ValueError(
                f"arithmetic is {rotary.arithmetic!r}; rounded angles cannot be turned on exactly. "
                f"Build the Rotary with arithmetic='exact'."
            )
        if not isinstance(moves, Remapping):
            raise TypeError(
                f"moves is a {type(moves).__name__}; pass SelfExtend(...), ReRoPE(...) or "
                f"DualChunk(...), or what has their moves(q_positions, k_positions)."
            )
        self.heads, self.rotary, self.moves, self.scale = heads, rotary, moves, scale
        self.is_relative = moves.is_relative

    def table(
        self,
        q_positions: Int64[Tensor, "*batch q_len"],
        k_positions: Int64[Tensor, "*batch k_len"],
        *,
        dtype: torch.dtype | None = None,
    ) -> Int64[Tensor, "*batch 2 q_len k_len"]:
        """The two positions of every pair; whole numbers whatever ``dtype``.

        Raises:
            TypeError: Positions are not integers.
        """
        queries = checked(q_positions, "q_positions").unsqueeze(-1)
        keys = checked(k_positions, "k_positions").unsqueeze(-2)
        return torch.stack(torch.broadcast_tensors(queries, keys), dim=-3)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows 2 q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores``, with those of moved pairs computed anew from rotated ``q`` and ``k``."""
        width = self.rotary.head_dim
        checked_content("RemappedRotary", self.heads, scores, q=(q, width), k=(k, width))
        assert q is not None
        assert k is not None
        wide, group = working_dtype(scores.dtype), self.heads // k.shape[-3]
        scale = 1 / sqrt(width) if self.scale is None else self.scale
        # A sum over one entry, or over none where there are no keys or no queries.
        queries, keys = table[..., 0, :, :1].sum(-1), table[..., 1, :1, :].sum(-2)
        merged = scores.to(wide)
        for move in self.moves.moves(queries, keys):
            turned_q = self._turned(q.to(wide), move.queries - queries)
            turned_k = self._turned(k.to(wide), move.keys - keys).repeat_interleave(group, dim=-3)
            far = products(turned_q, turned_k) * scale
            merged = torch.where(move.where.unsqueeze(-3), far, merged)
        return merged.to(scores.dtype)

    def _turned(self, x: Tensor, steps: Tensor) -> Tensor:
        # Without the attention factor of the schedule: the first rotation had it.
        return rotate_heads(
            x,
            rotation_table(self.rotary.sincos, steps, x.dtype),
            name="RemappedRotary",
            head_dim=self.rotary.head_dim,
            pairing=self.rotary.pairing,
            rotated=self.rotary.rotated,
        )

    def extra_repr(self) -> str:
        """The arguments besides the rotary encoding."""
        return f"heads={self.heads}, moves={self.moves}"
