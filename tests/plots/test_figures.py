"""Figures draw the table they are given: data, limits, labels, and text that stays text."""

import io

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from posenc import Sinusoidal
from posenc.plots import curves, heatmap, save
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


def test_cells_smaller_than_a_pixel_become_means_and_are_said_so():
    _, ax = plt.subplots(figsize=(2, 2))
    values = table(1000, 512, 10_000.0).astype(np.float64)
    heatmap(values, ax=ax)
    assert "each pixel is the mean of 7 rows by 5 columns" in ax.get_xlabel()
    (image,) = ax.images
    shown = np.asarray(image.get_array())
    box = ax.get_window_extent()
    assert shown.shape[0] <= box.height
    assert shown.shape[1] <= box.width
    np.testing.assert_allclose(shown[3, 5], values[21:28, 25:30].mean(), atol=1e-12)
    np.testing.assert_allclose(shown[-1, -1], values[994:, 510:].mean(), atol=1e-12)
    assert image.get_extent() == [-0.5, 511.5, 999.5, -0.5]


def test_a_wave_shorter_than_a_pixel_leaves_no_pattern():
    """Every n-th row alone would show one: sin p at every 22nd position turns slowly."""
    length = 44_000
    (image,) = heatmap(table(length, 2, 10_000.0)).images
    shown = np.asarray(image.get_array())
    each = -(-length // len(shown))
    assert each > 10
    # The sum of n sines of one step is at most 1 / sin(1/2).
    assert np.abs(shown[:-1]).max() < 2.1 / each + 1e-9


def test_each_of_several_positions_a_row_is_counted():
    ax = heatmap(np.zeros((10, 4)), start=100, each=25)
    assert "each pixel is the mean of 25 rows" in ax.get_xlabel()
    assert ax.images[0].get_extent() == [-0.5, 3.5, 349.5, 99.5]


def test_limits_follow_numbers_that_have_no_bound():
    assert heatmap([[0.0, -3.0]], limit=None).images[0].get_clim() == (-3.0, 3.0)
    assert heatmap([[0.0, 0.0]], limit=None).images[0].get_clim() == (-1.0, 1.0)


def test_a_finer_figure_keeps_whole_pixels():
    for dpi in (100, 150, 300):
        ax = heatmap(table(50, 128, 10_000.0), dpi=dpi)
        box = ax.get_window_extent()
        assert abs(box.width / 128 - round(box.width / 128)) < 1e-6
        assert abs(box.height / 50 - round(box.height / 50)) < 1e-6
        assert box.width >= 6 * 128 * dpi / 100 - 64


@pytest.mark.parametrize("title", ["short", "a title of very many words " * 6])
@pytest.mark.parametrize("shape", [(3, 4), (60, 8), (300, 500)])
def test_no_word_of_a_figure_is_cut_off(shape, title):
    ax = heatmap(np.zeros(shape), start=123_456, title=title)
    ax.figure.canvas.draw()
    whole, inside = ax.figure.bbox, ax.get_window_extent().expanded(1.01, 1.01)
    down = [t for t in ax.get_yticklabels() if inside.containsy(t.get_window_extent().y0 + 7)]
    across = [t for t in ax.get_xticklabels() if inside.containsx(t.get_window_extent().x0 + 4)]
    assert len(down) > 1
    assert len(across) > 1
    for text in [*down, *across, ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title]:
        box = text.get_window_extent()
        assert box.x0 >= whole.x0 - 1, text
        assert box.x1 <= whole.x1 + 1, text
        assert box.y1 <= whole.y1 + 1, text


def test_only_kinds_that_are_known_are_saved():
    with pytest.raises(ValueError, match="kind is 'gif'; it must be one of png, svg, pdf"):
        save(heatmap([[0.0]]).figure, io.BytesIO(), "gif")


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
