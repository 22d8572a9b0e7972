"""M-RoPE: time, height and width share the pairs of one rotary encoding."""

from collections.abc import Sequence
from typing import get_args

from jaxtyping import Float
from torch import Tensor

from posenc.arguments import check_choice, check_whole
from posenc.encodings.queries_keys.axes import (
    Arrangement,
    AxisSinCos,
    RotationOfAxes,
    of_each_axis,
)
from posenc.encodings.queries_keys.rotary import Rotary, check_rotary


class MultimodalRotary(RotationOfAxes):
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

    Reference:
        Wang et al. 2024, "Qwen2-VL", section 2.1 (arXiv:2409.12191); Bai et al. 2025, "Qwen3-VL"
        (arXiv:2511.21631).

    Example:
        >>> import torch
        >>> encoding = MultimodalRotary(Rotary(128), (16, 24, 24))
        >>> thw = torch.tensor([[0, 0, 0], [1, 1, 1], [1, 1, 2]])
        >>> encoding.table(thw).shape
        torch.Size([3, 2, 64])
    """

    def __init__(
        self,
        rotary: Rotary,
        sections: Sequence[int] = (16, 24, 24),
        arrangement: Arrangement | Sequence[int] = "contiguous",
    ):
        super().__init__()
        check_rotary(rotary)
        self.axes = axes_of(sections, arrangement)
        self.rotary, self.sections = rotary, tuple(sections)
        self.arrangement = arrangement if isinstance(arrangement, str) else self.axes
        self.head_dim, self.heads_first = rotary.head_dim, rotary.heads_first
        if 2 * len(self.axes) != rotary.rotated_dim:
            raise ValueError(
                f"sections {self.sections} are {len(self.axes)} pairs; rotary has "
                f"{rotary.rotated_dim // 2}."
            )
        self._made = rotary.frequencies, self._sincos()

    @property
    def sincos(self) -> AxisSinCos:  # type: ignore[override]
        """The cosines and sines of the schedule that ``rotary`` has now."""
        if self._made[0] is not self.rotary.frequencies:
            self._made = self.rotary.frequencies, self._sincos()
        return self._made[1]

    def _sincos(self) -> AxisSinCos:
        schedules = of_each_axis(self.rotary.frequencies, self.axes)
        return AxisSinCos(schedules, self.axes, self.rotary.arithmetic)  # type: ignore[arg-type]

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
        return self.rotary.encode_queries(k, table, out=out)

    def extra_repr(self) -> str:
        """The sections and their arrangement."""
        return f"sections={self.sections}, arrangement={self.arrangement!r}"


def axes_of(sections: Sequence[int], arrangement: Arrangement | Sequence[int]) -> tuple[int, ...]:
    """The axis of each pair.

    Example:
        >>> axes_of((2, 1, 1), "contiguous"), axes_of((2, 1, 1), "interleaved")
        ((0, 0, 1, 2), (0, 1, 2, 0))
    """
    for count in sections:
        check_whole(section=count)
    if not isinstance(arrangement, str):
        counts = [list(arrangement).count(axis) for axis in range(len(sections))]
        if counts != list(sections) or len(arrangement) != sum(counts):
            raise ValueError(
                f"arrangement {tuple(arrangement)} names the axes {counts} times; sections are "
                f"{tuple(sections)}."
            )
        return tuple(arrangement)
    check_choice(get_args(Arrangement), arrangement=arrangement)
    if arrangement == "contiguous":
        return tuple(axis for axis, count in enumerate(sections) for _ in range(count))
    axes = [0] * sum(sections)
    for axis, count in enumerate(sections[1:], start=1):
        for pair in range(axis, min(count * len(sections), len(axes)), len(sections)):
            axes[pair] = axis
    return tuple(axes)
