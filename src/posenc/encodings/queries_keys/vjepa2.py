"""V-JEPA 2's encoding of video: what was meant as an axial rotary encoding, as it was trained."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import AxisSinCos
from posenc.encodings.queries_keys.rotation import check_rows
from posenc.encodings.shapes import Dtype, Heads
from posenc.frequencies import Geometric
from posenc.numerics.joined import joined
from posenc.positions import Positions

AXES = 3


class VJEPA2Rotary(QueryKeyEncoding):
    """Channels 2i and 2i + 1 of an axis, mixed by two different angles.

    x_2i → x_2i cos φ_2i − x_2i+1 sin φ_2i,   x_2i+1 → x_2i+1 cos φ_2i+1 + x_2i sin φ_2i+1

    with φ_c = p · b^(−2(c mod n/2)/n) in the n channels of an axis. The published weights were
    trained so: the angles are repeated as for pairs of halves and applied to pairs of neighbors.
    That is no rotation. The rotation that was meant is ``AxialRotary(d, split=(n, n, n),
    form="wan")``.

    Positions are ``[*batch, seq, 3]`` with (t, h, w); n is 2⌊d/6⌋, and the rest of a head stays.

    Args:
        head_dim: d, 6 or more.

    Reference:
        Assran et al. 2025, "V-JEPA 2" (arXiv:2506.09985); ``rotate_queries_or_keys`` of
        facebookresearch/vjepa2, which names the slip and keeps it for its checkpoints.

    Example:
        >>> from posenc.positions import grid
        >>> VJEPA2Rotary(64).table(grid(8, 16, 16)).shape
        torch.Size([2048, 2, 30])
    """

    takes_reals = True

    def __init__(self, head_dim: int, base: float = 10_000.0, *, heads_first: bool = True):
        super().__init__()
        check_whole(6, head_dim=head_dim)
        check_positive_number(base=base)
        self.head_dim, self.base, self.heads_first = head_dim, base, heads_first
        self.width = 2 * (head_dim // 6)
        axes = [axis for axis in range(AXES) for _ in range(self.width // 2)]
        self.sincos = AxisSinCos((Geometric(self.width, base),) * AXES, axes)

    def table(
        self, positions: Int64[Tensor, "*batch seq 3"] | Positions, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch seq 2 angles"]:
        return self.sincos.table(positions, dtype)

    def encode_queries(self, q: Heads, table: Float[Tensor, "*rows 2 angles"]) -> Heads:
        check_rows(q, table, (2, AXES * self.width // 2), self.heads_first)
        # Each axis has half as many angles as channels: its first half takes them, then the second.
        table = table.unflatten(-1, (AXES, -1)).repeat_interleave(2, dim=-2).flatten(-2)
        cos, sin = table.unsqueeze(-4 if self.heads_first else -3).unbind(-2)
        rotated = AXES * self.width
        x = q[..., :rotated].to(torch.promote_types(q.dtype, cos.dtype))
        even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
        across = torch.stack((-odd, even), dim=-1).flatten(-2)
        mixed = (x * cos + across * sin).to(q.dtype)
        return joined((mixed, q[..., rotated:]), -1)
