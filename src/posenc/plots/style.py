"""One visual language: colors of signed values and of lines, two grounds, text that stays text."""

from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypedDict, Unpack, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

Theme = Literal["light", "dark"]
MARKS = "os^DvpPX"
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Look:
    """The colors of one ground."""

    ground: str
    ink: str  # text and frame
    faint: str  # grid lines
    signed: LinearSegmentedColormap  # −1 to +1; zero is near the ground, so size reads as strength
    lines: tuple[str, ...]  # curves; told apart without red or green (Okabe and Ito 2008)

    def line(self, turn: int) -> str:
        """The color of the ``turn``-th curve; after the last one they begin again."""
        return self.lines[turn % len(self.lines)]

    def dashed(self, turn: int) -> dict[str, Any]:
        """Color and dashes of the ``turn``-th of few curves, which differ in both."""
        return {"color": self.line(turn), "linestyle": DASHES[turn % 4]}

    def told_apart(self, turn: int) -> dict[str, Any]:
        """Color and dashes of one of many curves; no two of the first 24 are alike."""
        return {"color": self.line(turn), "linestyle": DASHES[turn // len(self.lines) % 4]}


SIGNED_STOPS = {
    "light": ("#0b3c6f", "#3b7fb8", "#a9cce3", "#f7f5f0", "#f2b999", "#d0623e", "#7d1d12"),
    "dark": ("#9ed0ff", "#4b93d1", "#27507a", "#17181c", "#7a3a28", "#dc7148", "#ffc9a3"),
}
SIGNED = {n: LinearSegmentedColormap.from_list(n, stops) for n, stops in SIGNED_STOPS.items()}
LINES = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b"),
    "dark": ("#56b4e9", "#e69f00", "#2fc59b", "#e39ac5", "#8fd0ff", "#f0e442"),
}
LOOKS = {
    "light": Look("#ffffff", "#1d1f24", "#d9dbe0", SIGNED["light"], LINES["light"]),
    "dark": Look("#17181c", "#e8e9ed", "#3a3c43", SIGNED["dark"], LINES["dark"]),
}


def look(theme: Theme) -> Look:
    """The colors of ``theme``."""
    if theme not in LOOKS:
        raise ValueError(f"theme is {theme!r}; expected one of {', '.join(LOOKS)}.")
    return LOOKS[theme]


class Shown(TypedDict, total=False):
    """The keywords that every figure takes."""

    title: str | None  #: a line above the picture
    ax: Axes | None  #: where to draw; a new figure if not given
    theme: Theme  #: light if not given


@dataclass(frozen=True)
class Drawing:
    """Axes with what is drawn on them in the colors of a theme."""

    ax: Axes
    colors: Look
    title: str | None = None

    def finished(self, xlabel: str, ylabel: str = "", **options: Any) -> Axes:
        """Labels the axes, and gives ground, frame and text the colors of the theme."""
        ax, ink = self.ax, self.colors.ink
        ax.set_xlabel(xlabel, color=ink)
        ax.set_ylabel(ylabel, color=ink)
        if self.title:
            how = {"fontsize": "medium", "wrap": True, "color": ink}
            ax.set_title(self.title, **how | options)
        if legend := ax.get_legend():
            for text in legend.get_texts():
                text.set_color(ink)
        ax.set_facecolor(self.colors.ground)
        ax.tick_params(colors=ink, which="both")
        for spine in ax.spines.values():
            spine.set_color(self.colors.faint)
        return ax

    def without_frame(self) -> None:
        """Takes ticks and frame away, where a picture has no axes."""
        self.ax.set(xticks=[], yticks=[])
        self.ax.spines[:].set_visible(False)

    def legend(self, **options: Any) -> None:
        """A legend without a frame."""
        self.ax.legend(frameon=False, **options)

    def legend_beside(self, **options: Any) -> None:
        """A legend at the right of the axes."""
        self.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), **options)

    def write(self, x: float, y: float, text: str, **options: Any) -> None:
        """Small words in the picture, centered at a point."""
        how: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
        how["color"] = self.colors.ink
        self.ax.text(x, y, text, **how | options)

    def picture(
        self,
        values: np.ndarray,
        limits: tuple[float, float],
        extent: tuple[float, float, float, float],
        cmap: Colormap | str | None = None,
        aspect: Literal["equal", "auto"] = "equal",
    ) -> AxesImage:
        """Adds a matrix; where cells are more than pixels, matplotlib smooths the numbers."""
        how: dict[str, Any] = {"interpolation_stage": "data", "extent": extent, "aspect": aspect}
        scale = Normalize(*limits)
        return self.ax.imshow(values, cmap or self.colors.signed, scale, **how)

    def bar(
        self, image: ScalarMappable, label: str, values: ArrayLike = (), cax: Axes | None = None
    ) -> None:
        """A color bar with its label, beside the picture or in axes of its own, ``cax``.

        It ends where ``values`` end; beyond the colors it is pointed, and says how far they go.
        """
        low, high = cast("tuple[float, float]", image.get_clim())
        known = in_float64(values)
        known = known[~np.isnan(known)]
        least, most = (known.min(), known.max()) if known.size else (low, high)
        hair = 1e-6 * (high - low)  # as rounding brings a cosine beyond 1; no shade is as fine
        ends = ("neither", "max", "min", "both")[2 * (least < low - hair) + (most > high + hair)]
        if ends != "neither":
            label += f"; from {least:.4g} to {most:.4g} in all"
        # An end that is nearly reached stays, for the sake of its number.
        near = 0.05 * (high - low)
        bottom = low if least < low + near else least
        top = high if most > high - near else most
        if top - bottom > near:
            shades = ListedColormap(image.to_rgba(np.linspace(bottom, top, 256)))
            image = ScalarMappable(Normalize(bottom, top), shades)
        figure = cast(Figure, self.ax.figure)
        scale = figure.colorbar(image, cax=cax, ax=self.ax, pad=0.02, extend=ends)
        scale.set_label(label, color=self.colors.ink)
        scale.ax.tick_params(colors=self.colors.ink)
        scale.outline.set_edgecolor(self.colors.faint)  # type: ignore[operator]


def opened(width: float, height: float, **shown: Unpack[Shown]) -> tuple[Axes, Look, Drawing]:
    """The axes asked for, or new ones of so many inches, the colors, and what draws with both."""
    colors, ax = look(shown.get("theme", "light")), shown.get("ax")
    if ax is None:
        size = (width, height)
        _, ax = plt.subplots(figsize=size, facecolor=colors.ground, layout="constrained")
    return ax, colors, Drawing(ax, colors, shown.get("title"))


def in_float64(values: ArrayLike) -> np.ndarray:
    """Numbers to draw, those of tensors of any device, dtype and graph too."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        values = (values if values.is_complex() else values.double()).numpy()
    if np.iscomplexobj(values):
        raise TypeError("The numbers are complex; draw x.real and x.imag.")
    return np.asarray(values, dtype=np.float64)


def numbers(values: ArrayLike, name: str, dimensions: int) -> np.ndarray:
    """``values`` as finite float64 numbers with so many axes."""
    made = in_float64(values)
    if made.ndim != dimensions or made.size == 0 or not np.isfinite(made).all():
        expected = f"expected {dimensions} axes of finite numbers."
        raise ValueError(f"{name} has shape {list(made.shape)}; {expected}")
    return made


def reach(values: ArrayLike) -> float:
    """The largest size of any finite number, and 1 at least: how far a frame must go."""
    known = in_float64(values)
    return float(np.abs(known[np.isfinite(known)]).max(initial=1.0))


# The formats, and what each calls the date that is left out.
DATES = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
# Letters as letters: in an SVG by name, in a PDF with the font beside them.
TEXT: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "posenc", "pdf.fonttype": 42}


def save(figure: Figure, file: BinaryIO, kind: str, *, dpi: int | None = None) -> None:
    """Writes ``figure`` as ``png``, ``svg`` or ``pdf``, with text that can be searched.

    The same numbers give the same bytes: no date and no random names are written.

    Args:
        figure: What is written.
        file: Takes bytes.
        kind: The format.
        dpi: Pixels per inch of a ``png``; those of the figure if not given.

    Example:
        >>> import io
        >>> from posenc.plots import heatmap
        >>> file = io.BytesIO()
        >>> save(heatmap([[0.0, 1.0]]).figure, file, "svg")
        >>> b"dimension (index)" in file.getvalue()
        True
    """
    if kind not in DATES:
        raise ValueError(f"kind is {kind!r}; expected one of {', '.join(DATES)}.")
    shown = {"metadata": DATES[kind], "facecolor": figure.get_facecolor(), "bbox_inches": None}
    with mpl.rc_context(TEXT):
        figure.savefig(file, format=kind, dpi="figure" if dpi is None else dpi, **shown)
