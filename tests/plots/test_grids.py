"""Figures of grids: the numbers that were given, in their places."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from posenc import AxialSinusoidal, plots
from posenc.positions import grid


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_channel_is_a_map_of_its_grid(theme):
    table = AxialSinusoidal(16).table(grid(3, 5)).numpy()
    ax = plots.grid_channels(table, (3, 5), channels=[0, 9, 15], columns=2, theme=theme)
    for image, channel in zip(ax.images, (0, 9, 15), strict=True):
        np.testing.assert_array_equal(image.get_array(), table[:, channel].reshape(3, 5))
        assert image.get_clim() == (-1.0, 1.0)
    assert [text.get_text() for text in ax.texts] == ["channel 0", "9", "15"]
    assert ax.get_xlabel() == "3 rows by 5 columns of patches each"
    # Row 0 stands at the top; the third map stands under the first.
    (left, right, bottom, top), below = (ax.images[i].get_extent() for i in (0, 2))
    assert right - left == 5
    assert bottom - top == 3
    assert (below[0], below[3] > bottom) == (left, True)


def test_many_channels_are_spread_evenly():
    ax = plots.grid_channels(np.arange(2 * 100.0).reshape(2, 100), (1, 2), limit=None)
    shown = [image.get_array()[0, 0] for image in ax.images]
    assert shown == list(range(0, 100, 4))
    assert ax.images[0].get_clim() == (-196.0, 196.0)


def test_the_patch_is_marked_in_each_map():
    values = {"a": np.eye(4), "b": -np.eye(4)}
    ax = plots.patch_similarity(values, (1, 2), columns=1, title="alike")
    for image, given in zip(ax.images, values.values(), strict=True):
        np.testing.assert_array_equal(image.get_array(), given)
        assert image.get_clim() == (-1.0, 1.0)
    for line, image in zip(ax.lines, ax.images, strict=True):
        left, _, _, top = image.get_extent()
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (left + 2.5, top + 1.5)
    assert ax.get_xlabel() == "patch at row 1, column 2 of 4 by 4"
    assert ax.get_title() == "alike"
    assert ax.figure.axes[1].get_ylabel() == "cosine"
    ax = plots.patch_similarity({"rounded": (1 + 1e-7) * np.eye(4)}, (1, 2))
    assert ax.figure.axes[1].get_ylabel() == "cosine"
    ax = plots.patch_similarity({"products": 3 * np.eye(4)}, (1, 2))
    assert ax.figure.axes[1].get_ylabel() == "cosine; from 0 to 3 in all"


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda: plots.grid_channels(np.ones((5, 2)), (2, 2)), "table has 5 rows and size is"),
        (lambda: plots.grid_channels(np.ones((4, 2)), (2, 2), channels=[2]), "channels are .2."),
        (lambda: plots.patch_similarity({}, (0, 0)), "similarities have sizes"),
        (lambda: plots.patch_similarity({"a": np.eye(2)}, (2, 0)), "patch is .2, 0.; it must be"),
        (lambda: plots.patch_similarity({"a": np.eye(2), "b": np.eye(3)}, (0, 0)), "have sizes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, text):
    with pytest.raises(ValueError, match=text):
        draw()
