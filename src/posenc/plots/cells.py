"""Pictures of matrices that lose no cell: where pixels are fewer, each stands for several."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import Colormap, Normalize
from matplotlib.image import AxesImage
from matplotlib.layout_engine import PlaceHolderLayoutEngine


@dataclass(frozen=True)
class Summary:
    """What is shown of several cells.

    Attributes:
        name: In words.
        of: Every ``count`` rows (axis 0) or columns (axis 1) as one; the last may be of fewer.
    """

    name: str
    of: Callable[[np.ndarray, int, int], np.ndarray]


def means(values: np.ndarray, count: int, axis: int) -> np.ndarray:
    """The mean of every ``count`` rows or columns.

    Example:
        >>> means(np.array([[1.0], [3.0], [5.0]]), 2, axis=0)
        array([[2.],
               [5.]])
    """
    if count == 1:
        return values
    starts = np.arange(0, values.shape[axis], count)
    sizes = np.diff(np.append(starts, values.shape[axis]))
    return np.add.reduceat(values, starts, axis=axis) / np.expand_dims(sizes, 1 - axis)


def largest(values: np.ndarray, count: int, axis: int) -> np.ndarray:
    """Of every ``count`` rows or columns the number that is farthest from zero, with its sign.

    Example:
        >>> largest(np.array([[1.0], [-3.0], [0.0]]), 2, axis=0)
        array([[-3.],
               [ 0.]])
    """
    starts = np.arange(0, values.shape[axis], count)
    high, low = (f.reduceat(values, starts, axis=axis) for f in (np.maximum, np.minimum))
    return np.where(high >= -low, high, low)


MEAN = Summary("the mean", means)
LARGEST = Summary("the largest by size", largest)


class Cells(AxesImage):
    """An image that is made for its pixels when it is drawn, whatever these have become by then.

    The label of the x axis says what a pixel is where it stands for several cells.
    """

    def __init__(self, ax: Axes, values: np.ndarray, summary: Summary, each: int, **look: Any):
        super().__init__(ax, interpolation="none", **look)
        self.values, self.summary, self.each = values, summary, each
        self.counts, self.shown = (0, 0), values
        self.set_data(values)

    @property
    def note(self) -> str:
        """What a pixel is; nothing where it is a cell."""
        down, across = self.counts[0] * self.each, self.counts[1]
        named = ((down, "rows"), (across, "columns"))
        parts = [f"{count:,} {name}" for count, name in named if count > 1]
        return f"{self.summary.name} of {' by '.join(parts)}" if parts else ""

    def fit(self, magnification: float) -> None:
        """Takes so many rows and columns together that none of them is smaller than a pixel."""
        left, right, bottom, top = self.get_extent()
        corners = self.axes.transData.transform([(left, bottom), (right, top)])  # type: ignore[union-attr]
        wide, high = np.abs(corners[1] - corners[0]) * magnification
        # What rounding leaves of a whole pixel is one.
        room = (max(1, int(pixels + 1e-3)) for pixels in (high, wide))
        down, across = (
            -(-count // pixels) for count, pixels in zip(self.values.shape, room, strict=True)
        )
        if (down, across) != self.counts:
            self.counts = down, across
            self.shown = self.summary.of(self.summary.of(self.values, down, 0), across, 1)
            self.set_data(self.shown)

    def draw(self, renderer: RendererBase) -> None:
        """Draws what the pixels of this time have room for."""
        _fit(self.axes, renderer.get_image_magnification())  # type: ignore[arg-type]
        super().draw(renderer)


class Notes(Artist):
    """Lays a figure out again, before it is drawn, where its layout changes what a pixel is.

    A layout cannot leave room for a label that is known when it is done. The figure draws this
    first of its artists, so that one drawing has its labels, and the room for them. After a
    ``tight_layout()`` by hand, whose margins nobody knows, axes are lifted until no label is cut.
    """

    def __init__(self):
        super().__init__()
        self.set_zorder(-np.inf)

    def draw(self, renderer: RendererBase) -> None:
        """Draws nothing."""
        root = self.get_figure(root=True)
        engine = root.get_layout_engine()  # type: ignore[union-attr]
        if engine is None or not self.get_visible():
            return
        for _ in range(ROUNDS):
            if not self._changed(renderer):
                return
            with suppress(ValueError):  # as the figure does, of windows without room
                if isinstance(engine, PlaceHolderLayoutEngine):
                    self._lift(renderer)
                else:
                    engine.execute(root)  # type: ignore[arg-type]

    def _changed(self, renderer: RendererBase) -> bool:
        """Whether any label is another one, now that axes are where the layout left them."""
        changed = False
        for ax in self._with_pictures():
            locator, before = ax.get_axes_locator(), ax.get_xlabel()
            ax.apply_aspect(locator(ax, renderer) if locator else None)  # type: ignore[arg-type]
            _fit(ax, renderer.get_image_magnification())  # type: ignore[arg-type]
            changed |= ax.get_xlabel() != before
        return changed

    def _lift(self, renderer: RendererBase) -> None:
        """Raises what a layout by hand has placed by as much as a label is below the figure."""
        root: Any = self.get_figure(root=True)
        boxes = (ax.xaxis.get_tightbbox(renderer) for ax in self._with_pictures())
        lowest = min((box.y0 for box in boxes if box is not None), default=0.0)
        if lowest < 0 and root.get_layout_engine().adjust_compatible:
            root.subplots_adjust(bottom=root.subplotpars.bottom - lowest / root.bbox.height)

    def _with_pictures(self) -> list[Axes]:
        """The axes that hold any."""
        found = self.get_figure(root=True).axes  # type: ignore[union-attr]
        every = [ax for outer in found for ax in (outer, *outer.child_axes)]
        return [ax for ax in every if any(isinstance(image, Cells) for image in ax.images)]  # type: ignore[misc]


ROUNDS = 4
"""Layouts after the first: one row's new line takes room from the next row, and so on."""


def cells(
    ax: Axes,
    values: np.ndarray,
    cmap: Colormap | str,
    limits: tuple[float, float],
    extent: Sequence[float],
    *,
    aspect: str = "equal",
    summary: Summary = MEAN,
    each: int = 1,
) -> Cells:
    """Adds a matrix to ``ax``, as ``ax.imshow`` does; ``fitted`` follows when all is there.

    Args:
        ax: Where to draw.
        values: [rows, columns].
        cmap: The colors, or their name.
        limits: The numbers at their ends.
        extent: (left, right, bottom, top), in the units of the axes.
        aspect: ``equal`` or ``auto``.
        summary: What is shown of several cells.
        each: How many rows a row stands for already.
    """
    ax.set_aspect(aspect)  # type: ignore[arg-type]
    norm = Normalize(*limits)
    image = Cells(ax, values, summary, each, cmap=cmap, norm=norm, extent=tuple(extent))
    image.set_clip_path(ax.patch)
    image.set_extent(image.get_extent())
    ax.add_image(image)
    return image


def fitted(ax: Axes) -> None:
    """Fits the pictures of ``ax`` to its pixels, as far as these are known before a layout.

    What a layout of the figure makes of the pixels is looked at again when the figure is drawn.
    """
    ax.apply_aspect()
    _fit(ax, 1.0)
    root = ax.figure.canvas.figure
    if not any(isinstance(artist, Notes) for artist in root.artists):
        root.add_artist(Notes())


def _fit(ax: Axes, magnification: float) -> None:
    images = [image for image in ax.images if isinstance(image, Cells)]
    before = _note(images)
    for image in images:
        image.fit(magnification)
    label, after = ax.get_xlabel(), _note(images)
    if after != before or not label.endswith(after):  # somebody set another label since
        ax.xaxis.set_label_text(label.removesuffix(before) + after)  # where it stands


def _note(images: Sequence[Cells]) -> str:
    notes = dict.fromkeys(image.note for image in images if image.note)
    return f"\neach pixel is {' or '.join(notes)}" if notes else ""
