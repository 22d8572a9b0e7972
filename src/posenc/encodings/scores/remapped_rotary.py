"""Rotary positions that depend on the pair: far tokens meet as if they stood elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import QueryKeyEncoding, ScoreEncoding, working_dtype
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_together, rotation_table
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.remapping.remapped import PairRemapping
from posenc.encodings.scores.both import both_positions, of_each
from posenc.encodings.scores.content import checked_content, products, scale_of
from posenc.frequencies import Linear
from posenc.numerics.sincos import SinCos
from posenc.positions import Integers


class RemappedRotary(ScoreEncoding):
    """The scores of far pairs, computed anew at the distances of ``SelfExtend`` and its like.

    score(p, n) = (R(f(p) − p) q̂) · (R(g(n) − n) k̂) · scale  where (p, n) is taken for (f(p), g(n)),
    as it was elsewhere

    It stands beside the rotary encoding, whose rotated q̂ = R(p) q and k̂ = R(n) k it takes on from
    where they are, since R(f − p) R(p) = R(f). Phases are integers, so this costs one rounding and
    no more. A cache of rotated keys serves as it is. Near pairs keep their scores bit for bit;
    those of far pairs replace what came before, so it comes first among score encodings. In a
    ``Positional`` without a rotary encoding it takes queries and keys to be rotated already.

    Args:
        heads: Number of query heads.
        rotary: The rotary encoding of queries and keys.
        remapping: ``SelfExtend``, ``ReRoPE``, ``DualChunk``, ``CyclicOffset``, or any other
            ``PairRemapping``.

    Raises:
        TypeError: ``rotary`` is no ``Rotary``, or ``remapping`` remaps no pairs.
        ValueError: ``heads`` is not positive, ``rotary`` rounds its angles, q or k are missing, or
            another rotary encoding stands beside it.

    Reference:
        Jin et al. 2024, "Self-Extend" (arXiv:2401.01325), where two sets of scores are merged.

    Example:
        >>> from posenc import Positional, SelfExtend
        >>> rotary = Rotary(64)
        >>> longer = RemappedRotary(8, rotary, SelfExtend(group=4, window=512))
        >>> positional = Positional(queries_keys=rotary, scores=longer)
    """

    is_pairwise = True
    makes_anew = True

    def __init__(self, heads: int, rotary: Rotary, remapping: PairRemapping):
        super().__init__()
        check_whole(heads=heads)
        if not isinstance(rotary, Rotary):
            raise TypeError(
                f"rotary is a {type(rotary).__name__}; RemappedRotary rotates further what a "
                f"Rotary encoded. Pass the one of Positional(queries_keys=...)."
            )
        if rotary.arithmetic != "exact":
            raise ValueError(
                f"arithmetic is {rotary.arithmetic!r}; rounded angles cannot be rotated further "
                f"exactly. Build the Rotary with arithmetic='exact'."
            )
        if not isinstance(remapping, PairRemapping):
            raise TypeError(
                f"remapping is a {type(remapping).__name__}; pass SelfExtend(...), ReRoPE(...) or "
                f"DualChunk(...), or what has their remapped_pairs(q_positions, k_positions)."
            )
        self.heads, self.rotary, self.remapping = heads, rotary, remapping
        self.is_relative = remapping.is_relative
        parts = remapping.parts
        self.sincos = rotary.sincos if parts == 1 else SinCos(Linear(rotary.frequencies, parts))

    def check_beside(
        self, queries_keys: Sequence[QueryKeyEncoding], *, rotated_before: bool = True
    ) -> None:
        """Refuse queries and keys that are not rotated as it takes them to be.

        Raises:
            ValueError: They are rotated otherwise, or nothing rotates them. A temperature may stand
                there besides.
        """
        rotations = [each for each in queries_keys if not isinstance(each, QueryTemperature)]
        if not rotations and rotated_before:
            return
        if [_rotation(each) for each in rotations] == [_rotation(self.rotary)]:
            return
        others = " and ".join(map(repr, rotations)) or "nothing"
        raise ValueError(
            f"RemappedRotary rotates further what {self.rotary!r} rotated, and queries and keys "
            f"are changed by {others}. Pass the same rotary encoding, and no other, as "
            f"queries_keys=."
        )

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
            ValueError: A position reaches 2^56 steps of the remapping, where remapped ones may
                leave int64.
        """
        return both_positions(q_positions, k_positions)

    def encode(
        self,
        scores: Float[Tensor, "*batch heads q_len k_len"],
        table: Int64[Tensor, "*rows 2 q_len k_len"],
        *,
        q: Float[Tensor, "*batch heads q_len head_dim"] | None = None,
        k: Float[Tensor, "*batch kv_heads k_len head_dim"] | None = None,
        scale: float | None = None,
    ) -> Float[Tensor, "*batch heads q_len k_len"]:
        """``scores``, with those of remapped pairs computed anew from rotated ``q`` and ``k``."""
        width = self.rotary.head_dim
        checked_content("RemappedRotary", self.heads, scores, q=(q, width), k=(k, width))
        assert q is not None
        assert k is not None
        wide, group = working_dtype(scores.dtype), self.heads // k.shape[-3]
        queries, keys = of_each(table)
        merged, parts = scores.to(wide), self.remapping.parts
        for pairs in self.remapping.remapped_pairs(queries, keys):
            there_q = self._rotated(q.to(wide), pairs.queries - parts * queries)
            there_k = self._rotated(k.to(wide), pairs.keys - parts * keys)
            there = products(there_q, there_k.repeat_interleave(group, dim=-3))
            there = there * scale_of(scale, width)
            merged = torch.where(pairs.where.unsqueeze(-3), there, merged)
        return merged.to(scores.dtype)

    def _rotated(self, x: Tensor, steps: Tensor) -> Tensor:
        """``x`` rotated by so many steps of the remapping."""
        # Without the attention factor of the schedule: the first rotation had it.
        layout = replace(self.rotary.layout, heads_first=True)
        return rotate_together((x,), rotation_table(self.sincos, steps, x.dtype), None, layout)[0]

    def extra_repr(self) -> str:
        """The arguments besides the rotary encoding."""
        return f"heads={self.heads}, remapping={self.remapping}"


def _rotation(encoding: QueryKeyEncoding) -> tuple[object, ...]:
    """All that says how a rotary encoding turns heads; of another, its kind alone."""
    names = ("frequencies", "head_dim", "rotated_dim", "pairing", "rotated", "arithmetic")
    return (type(encoding), *(getattr(encoding, name, None) for name in names))
