"""Figures: where things stand and what can be read. Goldens hold the data."""

import runpy
from functools import partial
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.text import Text
from tests.goldens.test_figures import DRAWN

from posenc import ALiBi, Sinusoidal, T5Bias, plots
from posenc.frequencies import FromCheckpoint, Geometric
from posenc.plots.style import LOOKS, look

ROOT = Path(__file__).parents[2]
LONG = "A title of many words, more than one line of a small figure holds, and so two"


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def table(length, dim, base=10_000.0):
    return Sinusoidal(dim, base).table(range(length)).numpy()


ROWS = table(12, 8)


@pytest.mark.slow("every figure", spares=6)
@pytest.mark.parametrize("case", sorted({*DRAWN} - {"bias", "heatmap free"}))  # own words
@pytest.mark.parametrize("theme", LOOKS)
def test_each_figure_draws_where_it_is_told_in_the_colors_of_the_theme(monkeypatch, case, theme):
    def drawn(**told):
        with monkeypatch.context() as patch:
            for name in set(plots.__all__) - {"save"}:
                patch.setattr(plots, name, partial(getattr(plots, name), theme=theme, **told))
            return DRAWN[case]()

    figure, ax = plt.subplots()
    assert drawn(ax=ax, title="A title") is ax
    assert ax.get_title().startswith("A title")
    assert ax.get_xlabel()
    assert ax.title.get_color() == ax.xaxis.label.get_color() == LOOKS[theme].ink
    own = drawn(title=LONG)
    assert own.figure is not figure
    assert own.get_facecolor() == mpl.colors.to_rgba(LOOKS[theme].ground)
    own.figure.canvas.draw()
    (title,) = (text for text in own.findobj(Text) if text.get_text()[:8] == "A title ")
    edges, box = title.get_window_extent(), own.figure.bbox
    assert box.x0 <= edges.x0 < edges.x1 <= box.x1
    assert box.y0 <= edges.y0 < edges.y1 <= box.y1 or case == "shift map"


@pytest.mark.parametrize("of", ["tests/goldens/test_figures.py", "docs/make_gallery.py"])
def test_every_function_is_drawn(of):
    text = (ROOT / of).read_text()
    assert [name for name in plots.__all__ if f"plots.{name}(" not in text and name != "save"] == []


@pytest.mark.parametrize("dpi", [None, 150, 300])
@pytest.mark.parametrize(("length", "dim"), [(10, 4), (1000, 512), (50, 128)])
def test_an_own_figure_gives_every_cell_whole_pixels(length, dim, dpi):
    ax = plots.heatmap(table(length, dim), dpi=dpi)
    box = ax.get_window_extent()
    for pixels, count in ((box.width, dim), (box.height, length)):
        assert pixels / count == pytest.approx(max(1, round(pixels / count)), abs=1e-6)


def test_a_wave_shorter_than_a_pixel_leaves_no_pattern():
    """Every n-th row alone would show one: sin p at every 22nd position turns slowly."""
    _, ax = plt.subplots(figsize=(2, 2))
    plots.heatmap(table(3000, 1), ax=ax)
    ax.figure.canvas.draw()
    drawn = np.asarray(ax.figure.canvas.buffer_rgba())[::-1, :, :3] / 255
    box = ax.get_window_extent()
    inside = drawn[int(box.y0) + 2 : int(box.y1) - 2, int(box.x0) + 2 : int(box.x1) - 2]
    zero = np.array(look("light").signed(0.5)[:3])
    assert zero.min() > 0.9
    assert np.abs(inside - zero).max() < 0.1


def test_a_shift_map_loses_no_weight_and_a_row_of_means_says_so():
    matrix, at = np.zeros((1024, 1024)), [(0, 0), (511, 3), (700, 701), (1023, 1023)]
    for sign, place in zip((1, -1, 1, -1), at, strict=True):
        matrix[place] = sign * 0.75
    ax = plots.shift_map(matrix, offset=1, residual=0.0)
    found = np.asarray(ax.images[0].get_array())
    assert [found[row // 4, column // 4] for row, column in at] == [0.75, -0.75, 0.75, -0.75]
    assert np.count_nonzero(found) == 4
    assert "4 rows by 4 columns" in ax.get_xlabel()
    ax = plots.heatmap(np.zeros((10, 4)), start=100, each=25)
    assert "mean of 25 rows" in ax.get_xlabel()
    assert ax.images[0].get_extent() == [-0.5, 3.5, 349.5, 99.5]


@pytest.mark.parametrize(
    ("values", "limit", "extend", "ends", "said"),
    [
        ([[0.5, -1.0]], 1.0, "neither", (-1.0, 0.5), "value"),
        ([[3.0, 1.0]], None, "neither", (1.0, 3.0), "value"),
        ([[0.5, -3.0]], 1.0, "min", (-1.0, 0.5), "value; from -3 to 0.5 in all"),
        ([[2.5, -3.0], [np.nan, 0.0]], 1.0, "both", (-1.0, 1.0), "value; from -3 to 2.5 in all"),
        ([[np.inf, 0.0]], 1.0, "max", (0.0, 1.0), "value; from 0 to inf in all"),
    ],
)
def test_a_color_bar_ends_where_values_end_and_says_what_it_does_not_reach(
    values, limit, extend, ends, said
):
    ax = plots.heatmap(values, limit=limit)
    scale = ax.figure.axes[1]._colorbar
    assert (scale.vmin, scale.vmax, scale.extend) == (*ends, extend)
    assert scale.ax.get_ylabel() == said
    picture, bar = ax.images[0], scale.mappable
    np.testing.assert_allclose(bar.to_rgba(ends), picture.to_rgba(ends))


@pytest.mark.parametrize("each", [1, 10])
def test_numbers_stand_at_the_positions_that_they_are_of(each):
    values = np.arange(8.0).reshape(4, 2)
    ax = plots.heatmap(values, start=5, first_column=3, each=each, annotate=True, limit=None)
    for text in ax.texts:
        column, middle = text.get_position()
        row = round((middle - 5 + 0.5) / each - 0.5)
        assert text.get_text() == f"{values[row, column - 3]:.2f}"


def test_curves_are_smooth_and_frames_follow_what_is_longer_than_one():
    line = plots.curves(table(40, 2), dimensions=[0]).lines[0]
    x, y = line.get_xydata().T
    np.testing.assert_allclose(y, np.sin(x), atol=0.03)
    assert len(plots.curves(table(500, 2)).lines[0].get_xdata()) == 500
    twice = 2.0 * np.array([[1.0, 0.0], [-0.5, 0.75]])
    for ax in (
        plots.curves(np.vstack((twice, [np.nan, np.inf]))),
        plots.timestep_fan(twice, twice[::-1], [1.0, 2.0]),
        plots.phasors(twice[0], twice[1], position=3),
    ):
        points = np.concatenate([np.column_stack(line.get_data()) for line in ax.lines[:2]])
        points = points[np.isfinite(points).all(axis=1)]
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
        assert (points[:, 1] >= low[1]).all()
        assert (points <= high).all()


@pytest.mark.parametrize(("trained", "target"), [(4096, 4096), (4096, 4100), (4100, 4096)])
def test_names_of_lengths_do_not_stand_on_each_other(trained, target):
    given = {"trained_length": trained, "target_length": target}
    ax = plots.wavelengths({"a": Geometric(64).wavelengths()}, **given)
    assert {line.get_ydata()[0] for line in ax.lines[1:]} == {trained, target}
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_pairs_that_turn_backwards_stand_where_others_of_their_size_do():
    signed, plain = (FromCheckpoint([1.0, sign * 0.5, 0.0]).wavelengths() for sign in (-1, 1))
    one, other = (plots.wavelengths({"of": lengths}).lines[0] for lengths in (signed, plain))
    np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    assert len(one.get_xdata()) == 2  # what does not turn is left out


def test_heads_and_buckets_stand_apart():
    distance = torch.arange(-150, 151)
    steep = plots.bias(ALiBi(8).profile(distance), distance)
    steep.figure.canvas.draw()
    ends = [steep.transData.transform((150, line.get_ydata()[-1]))[1] for line in steep.lines[1:]]
    assert np.diff(sorted(ends)).min() > 10  # pixels
    ax = plots.bias(T5Bias(3, std=1.0).profile(distance).detach(), distance, random=True)
    ax.figure.canvas.draw()
    at = [ax.transData.transform((place, 0))[0] for place in (0, 1, 2, 64, 128)]
    assert min(at[1] - at[0], at[2] - at[1]) > 5  # pixels; on a linear axis it would be 2
    assert at[4] - at[3] > 20
    assert "not learned" in ax.get_title()
    assert len({tuple(look("dark").told_apart(turn).values()) for turn in range(24)}) == 24


def test_attention_has_its_bars_beside_its_panels():
    words = ["your", "cat", "is", "lovely"]
    ax = plots.attention(np.full((4, 4), 0.25), np.eye(4), tokens=words)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == 3 * words
    panels = [image.get_window_extent() for image in ax.images]
    bars = {each.get_ylabel(): each.get_window_extent() for each in ax.child_axes}
    assert panels[1].x1 < bars["weight"].x0 < bars["weight"].x1 < panels[2].x0
    assert panels[2].x1 < bars["difference"].x0
    for bar in bars.values():
        assert (bar.y0, bar.y1) == pytest.approx((panels[0].y0, panels[0].y1), abs=2)


def test_a_blade_ends_after_one_turn_or_a_large_step():
    run, speeds = [0.5, 250.25, 999.75], 10_000.0 ** (-np.arange(128) / 128)
    angles = np.outer(run, speeds)
    blades = plots.timestep_fan(np.cos(angles), np.sin(angles), run).lines
    for line, time in zip(blades, run, strict=True):
        assert len(line.get_xdata()) == (time * speeds < 2 * np.pi).sum()
    steps = np.array([[0.0, 2.1, 0.3, 0.1]])
    assert len(plots.timestep_fan(np.cos(steps), np.sin(steps), [1.0]).lines[0].get_xdata()) == 2


def test_powers_are_straight_in_a_figure_of_growth_and_losses_have_their_median():
    costs = {"mine": {4: 8.0, 1: 0.5, 2: 2.0}, "peer": {2: 9.0}, "copy": {1: 1.0, 4: 4.0}}
    ax = plots.growth(costs, against="copy", dashed=["peer"])
    steps = np.diff(ax.transData.transform(ax.lines[0].get_xydata()), axis=0)
    np.testing.assert_allclose(steps[0], steps[1])
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", ":"]
    seeds = [[[2, 3.0], [3, 9.0]], [[2, 1.0], [4, 0.5]], [[2, 2.0], [4, 0.4]]]
    assert plots.loss_curves({"a": seeds}).lines[-1].get_xydata().tolist() == [[2.0, 2.0]]


@pytest.mark.parametrize("draw", [plots.heatmap, plots.curves, plots.similarity_matrix])
def test_tensors_that_train_are_drawn_in_any_dtype(draw):
    """numpy has no bfloat16, and takes no tensor of a graph."""
    draw(torch.eye(4, dtype=torch.bfloat16, requires_grad=True) * 1)
    with pytest.raises(TypeError, match="complex"):
        draw(torch.eye(4, dtype=torch.complex64))


def test_the_gallery_is_drawn_by_its_script_and_shown_on_its_page():
    made = runpy.run_path(str(ROOT / "docs/make_gallery.py"))["GALLERY"]
    page = (ROOT / "docs/gallery.md").read_text()
    for name in made:
        assert f"(pictures/{name}.png)" in page, name
        assert (ROOT / f"docs/pictures/{name}.png").is_file(), name
    made["phasors"]("dark")
