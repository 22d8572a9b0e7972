"""MHRoPE: whole heads for time, height and width, each with all frequencies."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_whole, is_row
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import unturned
from posenc.encodings.queries_keys.by_profile import refuse_profile
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.queries_keys.rotation import check_rows, rotate_each_head
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

    Raises:
        TypeError: ``rotary`` is none.
        ValueError: The sections are more than all heads, or ``rotary`` rotates parts of heads.

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
        if not isinstance(rotary, Rotary):
            raise TypeError(f"rotary is {rotary!r}; pass a Rotary, as Rotary(128).")
        refuse_profile("MHRoPE", rotary)
        check_whole(heads=heads)
        if not is_row(sections) or not sections:
            raise ValueError(f"sections are {sections!r}; give the key heads of each axis.")
        for count in sections:
            check_whole(**{"A section": count})
        if sum(sections) > heads:
            raise ValueError(
                f"sections are {tuple(sections)}, {sum(sections)} heads; there are {heads} key "
                f"heads."
            )
        if rotary.rotated_dim != rotary.head_dim:
            raise ValueError(
                f"rotary rotates {rotary.rotated_dim} of {rotary.head_dim} channels; MHRoPE "
                f"rotates whole heads."
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
        """cos and sin along each axis, float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are neither integers nor coordinates.
            ValueError: They do not have one coordinate an axis.
        """
        axes = len(self.sections)
        points, nowhere = among_places(checked_points(positions, axes))
        along = [self.rotary.table(points[..., axis], dtype=dtype) for axis in range(axes)]
        return unturned(joined(along, -2, torch.stack), nowhere, heads=True)

    def encode_queries(
        self, q: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated, each head as the key head that serves it.

        Raises:
            ValueError: The number of heads is no multiple of the key heads.
        """
        heads = q.shape[-3 if self.heads_first else -2]
        if heads % self.heads:
            raise ValueError(
                f"MHRoPE was built for {self.heads} key heads; content has {heads} heads. Build "
                f"MHRoPE(rotary, heads) with the number of key heads."
            )
        return self._rotate(q, table, heads // self.heads)

    def encode_keys(
        self, k: Float[Tensor, "*batch _ _ head_dim"], table: Float[Tensor, "*rows 2 axes pairs"]
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated, each head by its axis.

        Raises:
            ValueError: There are more or fewer key heads.
        """
        heads = k.shape[-3 if self.heads_first else -2]
        if heads != self.heads:
            raise ValueError(
                f"MHRoPE was built for {self.heads} key heads; content has {heads}. Build "
                f"MHRoPE(rotary, heads={heads})."
            )
        return self._rotate(k, table, 1)

    def _rotate(self, x: Tensor, table: Tensor, group: int) -> Tensor:
        pairs = self.head_dim // 2
        check_rows(table, 2, len(self.sections), pairs, name="MHRoPE")
        still = torch.ones_like(table[..., :1, :])
        still[..., 1, :, :] = 0.0  # cos 1 and sin 0, for heads of no axis
        chosen = [axis for axis in self.axes_of_heads for _ in range(group)]
        by_head = joined((table, still), -2)[..., chosen, :]
        return rotate_each_head(
            x,
            by_head,
            name="MHRoPE",
            built=self.heads * group,
            head_dim=self.head_dim,
            pairing=self.rotary.pairing,
            heads_first=self.heads_first,
        )

    def extra_repr(self) -> str:
        """Key heads and their shares."""
        return f"heads={self.heads}, sections={self.sections}"
