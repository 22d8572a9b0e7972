"""M-RoPE: time, height and width share the pairs of one rotary encoding."""

from collections.abc import Sequence
from typing import get_args

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from posenc.arguments import check_choice, check_whole, is_row
from posenc.encodings.base import QueryKeyEncoding
from posenc.encodings.queries_keys.axes import Arrangement, AxisSinCos, of_each_axis
from posenc.encodings.queries_keys.by_profile import refuse_profile
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.positions import Positions


class MultimodalRotary(QueryKeyEncoding):
    """Pair i turns by p[a_i] · ω_i, where a_i is one of time, height and width.

    Positions are ``[*batch, seq, 3]`` with (t, h, w). Text has t = h = w, and then this is the
    rotary encoding that it holds, bit for bit.

    Args:
        rotary: Frequencies, pairing, layout and arithmetic.
        sections: Number of pairs of each axis; together all pairs.
        arrangement: ``"contiguous"`` gives each axis one run of pairs (Qwen2-VL);
            ``"interleaved"`` deals them out t, h, w, t, h, w, … while there are any of h and w, and
            leaves the rest to t (Qwen3-VL). Where h or w has more pairs than t, those that would
            fall beyond the last are left to t too, as in transformers. Any other order is given
            as the axis of every pair: ``(1, 2) * 24 + (0,) * 16`` for h, w, h, w, … and t in the
            slowest (VideoRoPE, and HoPE where these do not turn: ``Proportional(128, 0.75)``);
            (0, 0, 1, 2, 1, 2, 1, 2) again and again (MM-RoPE).

    Raises:
        ValueError: The sections are not all pairs.

    Reference:
        Wang et al. 2024, "Qwen2-VL", section 2.1 (arXiv:2409.12191); Bai et al. 2025, "Qwen3-VL"
        (arXiv:2511.21631).

    Example:
        >>> encoding = MultimodalRotary(Rotary(128), (16, 24, 24))
        >>> thw = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 1, 2]])
        >>> encoding.table(thw).shape
        torch.Size([3, 2, 64])
    """

    is_relative = True
    takes_reals = True

    def __init__(
        self,
        rotary: Rotary,
        sections: Sequence[int] = (16, 24, 24),
        arrangement: Arrangement | Sequence[int] = "contiguous",
    ):
        super().__init__()
        if not isinstance(rotary, Rotary):
            raise TypeError(f"rotary is {rotary!r}; pass a Rotary, as Rotary(128).")
        refuse_profile("MultimodalRotary", rotary)
        axes = axes_of(sections, arrangement)  # refuses what are no sections
        self.rotary = rotary
        self.sections = tuple(sections)
        self.arrangement = arrangement if isinstance(arrangement, str) else axes
        self.head_dim, self.heads_first = rotary.head_dim, rotary.heads_first
        if len(axes) != len(rotary.sincos):
            raise ValueError(
                f"sections {self.sections} are {len(axes)} pairs; the rotary encoding has "
                f"{len(rotary.sincos)}. They must be as many, half of the rotated width."
            )
        schedules = of_each_axis(rotary.frequencies, axes)
        self.sincos = AxisSinCos(schedules, axes, rotary.arithmetic)  # type: ignore[arg-type]

    def table(
        self,
        positions: Int64[Tensor, "*batch seq axes"] | Positions,
        *,
        dtype: torch.dtype | None = None,
    ) -> Float[Tensor, "*batch seq 2 pairs"]:
        """cos and sin at ``positions``, as (t, h, w), float32 unless another dtype is asked for.

        Raises:
            TypeError: ``positions`` are not integers.
            ValueError: They do not have one coordinate an axis.
        """
        return self.sincos.table(positions, dtype)

    def encode_queries(
        self,
        q: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``q`` rotated; ``out=q`` rotates it in place."""
        return self.rotary.encode_queries(q, table, out=out)

    def encode_keys(
        self,
        k: Float[Tensor, "*batch _ _ head_dim"],
        table: Float[Tensor, "*rows 2 pairs"],
        *,
        out: Tensor | None = None,
    ) -> Float[Tensor, "*batch _ _ head_dim"]:
        """``k`` rotated as queries are."""
        return self.rotary.encode_keys(k, table, out=out)

    def extra_repr(self) -> str:
        """The sections and their arrangement."""
        return f"sections={self.sections}, arrangement={self.arrangement!r}"


def axes_of(sections: Sequence[int], arrangement: Arrangement | Sequence[int]) -> tuple[int, ...]:
    """The axis of each pair.

    Raises:
        ValueError: No such arrangement, one of other sections, or an axis without a pair.

    Example:
        >>> axes_of((2, 1, 1), "contiguous"), axes_of((2, 1, 1), "interleaved")
        ((0, 0, 1, 2), (0, 1, 2, 0))
    """
    named = isinstance(arrangement, str) or not isinstance(arrangement, Sequence)
    if named:
        check_choice(get_args(Arrangement), arrangement=arrangement)
    if not is_row(sections) or not sections:
        raise ValueError(f"sections are {sections!r}; give the number of pairs of each axis.")
    for count in sections:
        check_whole(**{"A section": count})
    if not isinstance(arrangement, str):
        return _checked_axes(arrangement, sections)
    if arrangement == "contiguous":
        return tuple(axis for axis, count in enumerate(sections) for _ in range(count))
    axes = [0] * sum(sections)
    for axis, count in enumerate(sections[1:], start=1):
        for pair in range(axis, min(count * len(sections), len(axes)), len(sections)):
            axes[pair] = axis
    return tuple(axes)


def _checked_axes(axes: Sequence[int], sections: Sequence[int]) -> tuple[int, ...]:
    for axis in axes:
        check_whole(0, **{"An axis of arrangement": axis})
    counts = [list(axes).count(axis) for axis in range(len(sections))]
    if counts != list(sections) or len(axes) != sum(counts):
        raise ValueError(
            f"arrangement is {tuple(axes)}; it gives the axes {counts} pairs, and sections are "
            f"{tuple(sections)}. Name the axis of every pair, from 0 on, as often as its section."
        )
    return tuple(int(axis) for axis in axes)
