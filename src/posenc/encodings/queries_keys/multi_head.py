"""MHRoPE: whole heads for time, height and width, each with all frequencies."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import unturned
from posenc.encodings.queries_keys.rotary import Rotary, check_rotary
from posenc.encodings.queries_keys.rotation import check_key_heads, rotate_each_head
from posenc.numerics.joined import joined
from posenc.positions import Positions
from posenc.positions.checks import checked_points
from posenc.positions.placeless import among_places


class MHRoPE(QueryKeyEncoding):
    """Key head h turns by p[a_h] · ω_i in all of its pairs, where a_h is time, height or width.

    So each axis has all frequencies, but in some heads alone; query heads follow the key head that
    serves them. Key heads beyond the sections are not rotated. Text has t = h = w, and then this is
    the rotary encoding that it holds, in the heads that are rotated.

    Args:
        rotary: Frequencies, pairing and layout; it must rotate whole heads.
        heads: Number of key heads.
        sections: Number of key heads of each axis, one after the other.

    Reference:
        Huang et al. 2025, "Revisiting Multimodal Positional Encoding in Vision-Language Models"
        (arXiv:2510.23095); ``freq_allocation/mhrope.py`` of JJJYmmm/Multimodal-RoPEs.

    Example:
        >>> encoding = MHRoPE(Rotary(128, base=5_000_000), heads=8)
        >>> thw = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 1, 2]])
        >>> encoding.table(thw).shape  # of each axis; heads choose theirs
        torch.Size([3, 2, 3, 64])
    """

    is_relative = True
    takes_reals = True

    def __init__(self, rotary: Rotary, heads: int = 8, sections: Sequence[int] = (2, 3, 3)):
        super().__init__()
        check_rotary(rotary)
        for count in sections:
            check_whole(section=count)
        check_whole(sum(sections), heads=heads)
        if rotary.rotated_dim != rotary.head_dim:
            raise ValueError(
                f"rotary rotates {rotary.rotated_dim} of {rotary.head_dim} channels; it must "
                f"rotate whole heads."
            )
        self.rotary, self.heads, self.sections = rotary, heads, tuple(sections)
        self.head_dim, self.heads_first = rotary.head_dim, rotary.heads_first
        axes = [axis for axis, count in enumerate(self.sections) for _ in range(count)]
        self.axes_of_heads = (*axes, *[len(self.sections)] * (heads - len(axes)))

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 axes pairs"]:
        """cos and sin along each axis, float32 unless another dtype is asked for."""
        axes = len(self.sections)
        points, nowhere = among_places(checked_points(positions, axes))
        along = [self.rotary.table(points[..., axis], dtype=dtype) for axis in range(axes)]
        return unturned(joined(along, -2, torch.stack), nowhere, heads=True)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated, each head as the key head that serves it."""
        group = q.shape[-3 if self.heads_first else -2] // self.heads
        still = torch.ones_like(table[..., :1, :])
        still[..., 1, :, :] = 0.0  # cos 1 and sin 0, for heads of no axis
        axes = [axis for axis in self.axes_of_heads for _ in range(group)]
        by_head = joined((table, still), -2)[..., axes, :]
        layout = {"pairing": self.rotary.pairing, "heads_first": self.heads_first}
        return rotate_each_head(q, by_head, **layout)

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated, each head by its axis."""
        check_key_heads(k, self.heads, self.heads_first)
        return self.encode_queries(k, table)
