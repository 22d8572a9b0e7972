"""Rotary positions that depend on the pair: far tokens meet as if they stood elsewhere."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import rotate_together, rotation_table
from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.remapping.pairs import PairRemapping
from posenc.encodings.scores.content import Content, OfBothPositions, grouped_keys, of_each
from posenc.encodings.scores.rotated import check_rotary
from posenc.encodings.shapes import BothPositions, Scores
from posenc.frequencies import Linear
from posenc.numerics.product import products
from posenc.numerics.sincos import SinCos


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
