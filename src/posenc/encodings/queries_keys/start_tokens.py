"""The first tokens of a text turn by frequencies of their own."""

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.queries_keys.rotary import AroundRotary, Rotary
from posenc.encodings.shapes import CosSin, CosSinRows, Dtype, Heads, Row
from posenc.positions import checked

ALIKE = ("head_dim", "rotated_dim", "pairing", "rotated", "heads_first", "profile")


class StartTokenRotary(AroundRotary):
    """Rows of ``start`` for positions below ``count``, and of ``rotary`` from there on.

    LongRoPE leaves the first n̂ tokens unscaled, without the attention factor.

    Args:
        rotary: The encoding of all later tokens, extended.
        start: That of the first tokens, with other frequencies and nothing else.
        count: n̂, the number of first tokens.

    Reference:
        Ding et al. 2024, "LongRoPE", equation 2 with n̂ (arXiv:2402.13753);
        ``MixedLongRoPEScaledRotaryEmbedding`` of microsoft/LongRoPE.

    Example:
        >>> from posenc.frequencies import Geometric, LongRoPE
        >>> plain = Geometric(4)
        >>> longrope = LongRoPE(plain, (1.0, 1.0), (1.0, 32.0), 4096, factor=32.0)
        >>> extended = StartTokenRotary(Rotary(longrope.at(9000)), Rotary(plain), count=4)
        >>> torch.equal(extended.table([3]), Rotary(plain).table([3]))
        True
    """

    is_relative = False
    reads_rows = True

    def __init__(self, rotary: Rotary, start: Rotary, count: int):
        super().__init__(rotary)
        check_whole(0, count=count)
        differ = [name for name in ALIKE if getattr(rotary, name) != getattr(start, name)]
        if differ:
            names = ", ".join(differ)
            raise ValueError(f"{rotary} and {start} differ in {names}; frequencies alone may.")
        self.start, self.count = start, count

    def table(self, positions: Row, *, dtype: Dtype = None) -> CosSin:
        positions = checked(positions, reals=True)
        first = (positions < self.count)[..., None, None]
        near = self.start.table(positions, dtype=dtype)
        return torch.where(first, near, self.rotary.table(positions, dtype=dtype))

    def encode_both(
        self,
        q: Heads,
        k: Heads,
        table: CosSinRows,
        positions: Int64[Tensor, "..."] | None = None,
        *,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        return self.rotary.encode_both(q, k, table, positions, out=out)
