"""Rotations of text, images and video: axes share the pairs of a head, or whole heads."""

from collections.abc import Sequence
from typing import get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_choice, check_positive_number, check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import Arrangement, AxisSinCos, of_each_axis, unturned
from posenc.encodings.queries_keys.rotary import AroundRotary, Rotary
from posenc.encodings.queries_keys.rotation import check_key_heads, check_rows, rotate_each_head
from posenc.encodings.shapes import CosSin, Dtype, Heads, Points
from posenc.frequencies import Geometric
from posenc.numerics.product import joined
from posenc.positions import Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class MultimodalRotary(AroundRotary):
    """Pair i turns by p[a_i] · ω_i, where a_i is one of time, height and width (M-RoPE).

    Positions are ``[*batch, seq, 3]`` with (t, h, w). Text has t = h = w, and then this is
    ``rotary`` bit for bit.

    Args:
        rotary: Frequencies, pairing, layout and arithmetic.
        sections: Number of pairs of each axis; together all pairs.
        arrangement: ``"contiguous"``: one run of pairs an axis (Qwen2-VL). ``"interleaved"``: dealt
            out t, h, w, t, h, w, …, the rest to t (Qwen3-VL); pairs of h or w beyond the last fall
            to t. Or the axis of every pair: ``(1, 2) * 24 + (0,) * 16`` (VideoRoPE; HoPE with
            ``Proportional(128, 0.75)``), (0, 0, 1, 2, 1, 2, 1, 2) again and again (MM-RoPE).

    Reference:
        Wang et al. 2024, "Qwen2-VL", section 2.1 (arXiv:2409.12191); Bai et al. 2025, "Qwen3-VL"
        (arXiv:2511.21631).

    Example:
        >>> import torch
        >>> encoding = MultimodalRotary(Rotary(128), (16, 24, 24))
        >>> encoding.table(torch.tensor([[0, 0, 0], [1, 1, 1], [1, 1, 2]])).shape
        torch.Size([3, 2, 64])
    """

    def __init__(
        self,
        rotary: Rotary,
        sections: Sequence[int] = (16, 24, 24),
        arrangement: Arrangement | Sequence[int] = "contiguous",
    ):
        super().__init__(rotary)
        self.axes = axes_of(sections, arrangement)
        self.sections = tuple(sections)
        self.arrangement = arrangement if isinstance(arrangement, str) else self.axes
        if 2 * len(self.axes) != rotary.rotated_dim:
            told = f"sections {self.sections} are {len(self.axes)} pairs"
            raise ValueError(f"{told}; rotary has {rotary.rotated_dim // 2}.")
        self._made = rotary.frequencies, self._sincos()

    @property
    def sincos(self) -> AxisSinCos:
        """The cosines and sines of the schedule that ``rotary`` has now."""
        if self._made[0] is not self.rotary.frequencies:
            self._made = self.rotary.frequencies, self._sincos()
        return self._made[1]

    def _sincos(self) -> AxisSinCos:
        schedules = of_each_axis(self.rotary.frequencies, self.axes)
        return AxisSinCos(schedules, self.axes, self.rotary.arithmetic)  # type: ignore[arg-type]

    def table(self, positions: Points, *, dtype: Dtype = None) -> CosSin:
        return self.sincos.table(positions, dtype)

    def extra_repr(self) -> str:
        return f"sections={self.sections}, arrangement={self.arrangement!r}"


def axes_of(sections: Sequence[int], arrangement: Arrangement | Sequence[int]) -> tuple[int, ...]:
    """The axis of each pair."""
    for count in sections:
        check_whole(section=count)
    if not isinstance(arrangement, str):
        counts = [list(arrangement).count(axis) for axis in range(len(sections))]
        if counts != list(sections) or len(arrangement) != sum(counts):
            told = f"arrangement {tuple(arrangement)} names the axes {counts} times"
            raise ValueError(f"{told}; sections are {tuple(sections)}.")
        return tuple(arrangement)
    check_choice(get_args(Arrangement), arrangement=arrangement)
    if arrangement == "contiguous":
        return tuple(axis for axis, count in enumerate(sections) for _ in range(count))
    axes = [0] * sum(sections)
    for axis, count in enumerate(sections[1:], start=1):
        for pair in range(axis, min(count * len(sections), len(axes)), len(sections)):
            axes[pair] = axis
    return tuple(axes)


class MHRoPE(AroundRotary):
    """Key head h turns by p[a_h] · ω_i in all of its pairs, where a_h is time, height or width.

    Query heads follow the key head that serves them. Key heads beyond the sections are not rotated.
    Text has t = h = w, and then this is ``rotary`` in the heads that are rotated.

    Args:
        rotary: Frequencies, pairing and layout; it must rotate whole heads.
        heads: Number of key heads.
        sections: Number of key heads of each axis, one after the other.

    Reference:
        Huang et al. 2025, "Revisiting Multimodal Positional Encoding in Vision-Language Models"
        (arXiv:2510.23095); ``freq_allocation/mhrope.py`` of JJJYmmm/Multimodal-RoPEs.

    Example:
        >>> encoding = MHRoPE(Rotary(128, base=5_000_000), heads=8)
        >>> encoding.table(torch.tensor([[0, 0, 0], [1, 1, 2]])).shape  # of each axis
        torch.Size([2, 2, 3, 64])
    """

    def __init__(self, rotary: Rotary, heads: int = 8, sections: Sequence[int] = (2, 3, 3)):
        super().__init__(rotary)
        for count in sections:
            check_whole(section=count)
        check_whole(sum(sections), heads=heads)
        if rotary.rotated_dim != rotary.head_dim:
            told = f"{rotary.rotated_dim} of {rotary.head_dim}"
            raise ValueError(f"rotary rotates {told} channels; it must rotate whole heads.")
        self.heads, self.sections = heads, tuple(sections)
        axes = [axis for axis, count in enumerate(self.sections) for _ in range(count)]
        self.axes_of_heads = (*axes, *[len(self.sections)] * (heads - len(axes)))

    def table(
        self, positions: Points, *, dtype: Dtype = None
    ) -> Float[Tensor, "*batch seq 2 axes pairs"]:
        axes = len(self.sections)
        points, nowhere = among_places(checked_points(positions, axes))
        along = [self.rotary.table(points[..., axis], dtype=dtype) for axis in range(axes)]
        return unturned(joined(along, -2, torch.stack), nowhere, heads=True)

    def encode_queries(  # type: ignore[override]  # nothing rotates in place
        self, q: Heads, table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Heads:
        group = q.shape[-3 if self.heads_first else -2] // self.heads
        still = torch.ones_like(table[..., :1, :])
        still[..., 1, :, :] = 0.0  # cos 1 and sin 0, for heads of no axis
        axes = [axis for axis in self.axes_of_heads for _ in range(group)]
        by_head = joined((table, still), -2)[..., axes, :]
        layout = {"pairing": self.rotary.pairing, "heads_first": self.heads_first}
        return rotate_each_head(q, by_head, **layout)

    def encode_keys(  # type: ignore[override]
        self, k: Heads, table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Heads:
        check_key_heads(k, self.heads, self.heads_first)
        return self.encode_queries(k, table)


AXES = 3


class VJEPA2Rotary(QueryKeyEncoding):
    """Channels 2i and 2i + 1 of an axis, mixed by two different angles.

    x_2i → x_2i cos φ_2i − x_2i+1 sin φ_2i,   x_2i+1 → x_2i+1 cos φ_2i+1 + x_2i sin φ_2i+1

    with φ_c = p · b^(−2(c mod n/2)/n) in the n channels of an axis. The published weights were
    trained so: the angles are repeated as for pairs of halves and applied to pairs of neighbors.
    That is no rotation. The rotation that was meant is ``AxialRotary(d, split=(n, n, n),
    form="wan")``.

    Positions are ``[*batch, seq, 3]`` with (t, h, w); n is 2⌊d/6⌋, and the rest of a head of width
    d stays.

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
