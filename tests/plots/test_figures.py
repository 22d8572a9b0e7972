"""Figures draw the table they are given: data, limits, labels, and text that stays text."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from posenc import Sinusoidal
from posenc.plots import curves, heatmap
from posenc.positions import consecutive

SOURCE_FIGURES = [(10, 4, 100.0), (1000, 512, 10_000.0), (50, 128, 10_000.0)]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def table(length, dim, base):
    return Sinusoidal(dim, base).table(consecutive(length)).numpy()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("length", "dim", "base"), SOURCE_FIGURES)
def test_the_heatmaps_of_the_source_documents(length, dim, base, theme):
    values = table(length, dim, base)
    ax = heatmap(values, theme=theme)
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), values)
    assert image.get_clim() == (-1.0, 1.0)
    assert ax.get_xlabel() == "dimension (index)"
    assert ax.get_ylabel() == "position (token)"
    # Row 0, dimension 0 stands at the top left.
    left, right, bottom, top = image.get_extent()
    assert left < right
    assert top < bottom


def test_zero_is_the_middle_of_the_colors():
    (image,) = heatmap(table(10, 4, 100.0)).images
    low, middle, high = image.cmap(image.norm([-1.0, 0.0, 1.0]))[:, :3]
    assert middle.min() > 0.9
    assert low[2] > low[0]
    assert high[0] > high[2]


def test_an_own_figure_gives_every_cell_a_pixel():
    ax = heatmap(table(1000, 512, 10_000.0))
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    assert box.width >= 512
    assert box.height >= 1000


def test_cells_smaller_than_a_pixel_are_said_so():
    _, ax = plt.subplots(figsize=(2, 2))
    heatmap(table(1000, 512, 10_000.0), ax=ax)
    ax.figure.canvas.draw()
    said = " ".join(text.get_text() for text in [*ax.texts, *ax.figure.texts, ax.xaxis.label])
    assert "pixel" in said


def test_curves_are_columns_of_the_table():
    values = table(50, 128, 10_000.0)
    ax = curves(values, dimensions=[0, 1, 40], start=7)
    handles, names = ax.get_legend_handles_labels()
    assert names == ["dimension 0", "dimension 1", "dimension 40"]
    for line, column in zip(handles, (0, 1, 40), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), np.arange(7, 57))
        np.testing.assert_array_equal(line.get_ydata(), values[:, column].astype(np.float64))
    low, high = ax.get_ylim()
    assert low < -1 < 1 < high


def test_figures_draw_where_they_are_told():
    _, ax = plt.subplots()
    assert heatmap(table(10, 4, 100.0), ax=ax) is ax
    assert curves(table(10, 4, 100.0), ax=ax) is ax


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match=r"table has shape \[3\]; expected \[positions, dim\]"):
        heatmap([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="dimension 9 is not in the table"):
        curves(table(10, 4, 100.0), dimensions=[9])
