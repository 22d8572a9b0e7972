"""One visual language: a palette for signed values, one for lines, a light and a dark ground."""

from dataclasses import dataclass
from typing import Any, Literal, TypedDict, cast

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.image import AxesImage
from numpy.typing import ArrayLike

Theme = Literal["light", "dark"]
MARKS = ("o", "s", "^", "D")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Look:
    """The colors of one ground."""

    ground: str
    ink: str  # text and frame
    faint: str  # grid lines
    signed: LinearSegmentedColormap  # −1 to +1; zero is near the ground, so size reads as strength
    lines: tuple[str, ...]  # curves; told apart without red or green (Okabe and Ito 2008)


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
    """What every figure takes."""

    title: str | None  #: a line above the picture
    ax: Axes | None  #: where to draw; a new figure if not given
    theme: Theme  #: light if not given


def opened(
    width: float,
    height: float,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    theme: Theme = "light",
) -> tuple[Axes, Look, str | None]:
    """``ax``, or axes in a figure of their own of so many inches, the colors, and the title."""
    colors = look(theme)
    if ax is None:
        size = (width, height)
        _, ax = plt.subplots(figsize=size, facecolor=colors.ground, layout="constrained")
    return ax, colors, title


def finished(
    ax: Axes, colors: Look, title: str | None, xlabel: str, ylabel: str = "", **options: Any
) -> Axes:
    """Labels ``ax``, and gives ground, frame and text the colors of the theme."""
    ax.set_xlabel(xlabel, color=colors.ink)
    ax.set_ylabel(ylabel, color=colors.ink)
    if title:
        ax.set_title(title, fontsize="medium", wrap=True, color=colors.ink, **options)
    if legend := ax.get_legend():
        for text in legend.get_texts():
            text.set_color(colors.ink)
    ax.set_facecolor(colors.ground)
    ax.tick_params(colors=colors.ink, which="both")
    for spine in ax.spines.values():
        spine.set_color(colors.faint)
    return ax


def without_frame(ax: Axes) -> None:
    """Takes ticks and frame away, where a picture has no axes."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def key(ax: Axes, **options: Any) -> None:
    """The legend of ``ax``, without a frame."""
    ax.legend(frameon=False, **options)


def beside(ax: Axes, **options: Any) -> None:
    """The legend of ``ax``, at its right."""
    key(ax, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5), **options)


def write(ax: Axes, x: float, y: float, text: str, colors: Look, **options: Any) -> None:
    """Small words in the picture, centered at a point."""
    how = {"ha": "center", "va": "center", "fontsize": "small", "color": colors.ink}
    ax.text(x, y, text, **{**how, **options})


def picture(
    ax: Axes,
    values: np.ndarray,
    cmap: Colormap | str,
    limits: tuple[float, float],
    extent: tuple[float, float, float, float],
    aspect: Literal["equal", "auto"] = "equal",
) -> AxesImage:
    """Adds a matrix to ``ax``; where cells are more than pixels, matplotlib smooths the numbers."""
    how = {"interpolation": "auto", "interpolation_stage": "data", "extent": extent}
    return ax.imshow(values, cmap, aspect=aspect, vmin=limits[0], vmax=limits[1], **how)


def bar(
    image: ScalarMappable,
    label: str,
    colors: Look,
    values: ArrayLike = (),
    *,
    ax: Axes | None = None,
    cax: Axes | None = None,
) -> None:
    """A color bar with its label, beside the axes ``ax`` or in axes of its own, ``cax``.

    It ends where ``values`` end. Where they go beyond the colors, it is pointed and says how far.
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
    where: dict[str, Any] = {"ax": ax, "pad": 0.02} if cax is None else {"cax": cax}
    scale = (cax or ax).figure.colorbar(image, extend=ends, **where)  # type: ignore[union-attr]
    scale.set_label(label, color=colors.ink)
    scale.ax.tick_params(colors=colors.ink)
    scale.outline.set_edgecolor(colors.faint)  # type: ignore[operator]


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


def told_apart(turn: int, colors: Look) -> dict[str, Any]:
    """Color, marker and dashes of one of many curves; no two of the first 24 are alike."""
    count = len(colors.lines)
    more = turn // count % len(MARKS)
    return {"color": colors.lines[turn % count], "marker": MARKS[more], "linestyle": DASHES[more]}


def dashed(turn: int, colors: Look) -> dict[str, Any]:
    """Color and dashes of the ``turn``-th of few curves, which differ in both."""
    return {"color": colors.lines[turn % len(colors.lines)], "linestyle": DASHES[turn % 4]}
