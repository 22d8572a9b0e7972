"""The published ways to lay sines and cosines of a grid's axes over the channels, by name."""

from dataclasses import dataclass

from posenc.encodings.tokens.conventions import Halves, Interleaved, SinCosChannels

MILLION = 10**6
"""DETR's ε is one millionth."""


@dataclass(frozen=True)
class GridForm:
    """One published way to encode points of a grid.

    Attributes:
        formula: Which sines and cosines go where; e is the width that an axis has.
        used_by: Who uses it.
        waveform: How one axis lays them over its channels.
        axes: The usual number of axes.
        any_axes: Whether it is defined for other numbers too.
        order: The axes in the order of their channels; ``forward`` or ``backward`` for any number.
        shares: What of the width each axis gets, in the order of ``order``; equal shares if none.
        sines_first: Whether the sines of all axes stand before the cosines of all.
        cut: Whether axes get as much as they need to be even, and the end is cut off.
        normalized: Whether coordinates are (y, x, rows, columns) as of ``masked_grid``, and
            2π · (y + start) / (rows + 10^−6) is what counts.
        start: What is added to y and x; 1/2, given as (1, 2), in normalized forms alone.
    """

    name: str
    formula: str
    used_by: str
    waveform: Halves | Interleaved
    axes: int = 2
    any_axes: bool = True
    order: tuple[int, ...] | str = "forward"
    shares: tuple[int, ...] | None = None
    sines_first: bool = False
    cut: bool = False
    normalized: bool = False
    start: tuple[int, int] = (0, 1)

    def ordered(self, axes: int) -> tuple[int, ...]:
        """The axes in the order of their channels."""
        if isinstance(self.order, tuple):
            return self.order
        return tuple(range(axes) if self.order == "forward" else reversed(range(axes)))

    def blocks(self, dim: int, axes: int, base: float) -> list[tuple[int, SinCosChannels]]:
        """The axes in the order of their channels, each with its sines and cosines."""
        return [
            (axis, self.waveform(width, base))
            for axis, width in zip(self.ordered(axes), self._widths(dim, axes), strict=True)
        ]

    def _widths(self, dim: int, axes: int) -> list[int]:
        if self.cut:
            return [2 * -(-dim // (2 * axes))] * axes
        shares = self.shares or (1,) * axes
        whole = 2 * sum(shares)
        if dim % whole:
            told = f"dim is {dim}; form {self.name!r} shares it among {axes} axes"
            raise ValueError(f"{told}, so it must be a multiple of {whole}.")
        return [dim // sum(shares) * share for share in shares]


ALL = (
    GridForm(
        name="mae",
        formula="[sin x | cos x | sin y | cos y], each at n^(−2i/e), i < e/2, e = d/2",
        used_by="MAE, DiT, PixArt, Stable Diffusion 3, AIMv2: the last axis first in all",
        waveform=Halves(),
        order="backward",
    ),
    GridForm(
        name="rt_detr",
        formula="[sin y | cos y | sin x | cos x], each at n^(−2i/e), i < e/2, e = d/2",
        used_by="RT-DETR, D-FINE, transformers; timm with interleave_sin_cos",
        waveform=Halves(),
    ),
    GridForm(
        name="timm",
        formula="[sin y | sin x | cos y | cos x], each at n^(−2i/e), i < e/2, e = d/2",
        used_by="timm's build_sincos2d_pos_embed",
        waveform=Halves(),
        sines_first=True,
    ),
    GridForm(
        name="detr",
        formula="[y | x], sin and cos of 2π (y + 1) / (H + 10^−6) / n^(2i/e) in turn, e = d/2",
        used_by="DETR, Conditional DETR, DAB-DETR (n = 20), Mask2Former, SAM 2 and 3",
        waveform=Interleaved(),
        any_axes=False,
        normalized=True,
        start=(1, 1),
    ),
    GridForm(
        name="deformable_detr",
        formula="[y | x], sin and cos of 2π (y + 1/2) / (H + 10^−6) / n^(2i/e) in turn, e = d/2",
        used_by="Deformable DETR",
        waveform=Interleaved(),
        any_axes=False,
        normalized=True,
        start=(1, 2),
    ),
    GridForm(
        name="detr_unnormalized",
        formula="[y | x], sin and cos of (y + 1) / n^(2i/e) in turn, e = d/2",
        used_by="transformers' DetrSinePositionEmbedding unless it is told to normalize",
        waveform=Interleaved(),
        start=(1, 1),
    ),
    GridForm(
        name="cogvideox",
        formula="[t | x | y], [sin | cos] at n^(−2i/e) each, e = d/4 for t, 3d/8 for x and for y",
        used_by="CogVideoX, Allegro, diffusers' get_3d_sincos_pos_embed",
        waveform=Halves(),
        axes=3,
        any_axes=False,
        order=(0, 2, 1),
        shares=(2, 3, 3),
    ),
    GridForm(
        name="positional_encodings",
        formula="axis after axis, sin and cos at n^(−2i/e), e = 2⌈d/2a⌉ for a axes, cut at d",
        used_by="the package positional-encodings",
        waveform=Interleaved(),
        cut=True,
    ),
)
GRID_FORMS = {form.name: form for form in ALL}
"""Every form by its name."""
