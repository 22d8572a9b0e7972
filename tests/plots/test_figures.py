"""Figures draw the table they are given: data, limits, labels, and text that stays text."""

import io

import matplotlib as mpl
import numpy as np
import pytest
import torch

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.text import Text

from posenc import Sinusoidal, plots
from posenc.plots import (
    binary_comparison,
    curves,
    grid_channels,
    heatmap,
    phasors,
    save,
    shift_map,
    timestep_fan,
)
from posenc.plots.cells import Notes
from posenc.plots.style import look
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


@pytest.mark.parametrize("limit", [-1.0, 0.0, float("nan"), float("inf")])
def test_an_end_of_colors_that_would_turn_them_over_is_refused(limit):
    with pytest.raises(ValueError, match="positive and finite"):
        heatmap(table(4, 4, 100.0), limit=limit)
    with pytest.raises(ValueError, match="positive and finite"):
        grid_channels(table(4, 4, 100.0), (2, 2), limit=limit)


def test_cells_smaller_than_a_pixel_become_means_and_are_said_so():
    _, ax = plt.subplots(figsize=(2, 2))
    values = table(1000, 512, 10_000.0).astype(np.float64)
    heatmap(values, ax=ax)
    assert "each pixel is the mean of 7 rows by 4 columns" in ax.get_xlabel()
    (image,) = ax.images
    shown = np.asarray(image.get_array())
    box = ax.get_window_extent()
    assert shown.shape[0] <= box.height
    assert shown.shape[1] <= box.width
    np.testing.assert_allclose(shown[3, 5], values[21:28, 20:24].mean(), atol=1e-12)
    np.testing.assert_allclose(shown[-1, -1], values[994:, 508:].mean(), atol=1e-12)
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


@pytest.mark.slow("every figure", spares=3)
@pytest.mark.parametrize(
    ("values", "ends", "said"),
    [
        ([[0.5, -1.0]], "neither", "value"),
        ([[0.5, -3.0]], "min", "value; from -3 to 0.5 in all"),
        ([[2.5, -1.0]], "max", "value; from -1 to 2.5 in all"),
        ([[2.5, -3.0], [np.nan, 0.0]], "both", "value; from -3 to 2.5 in all"),
        ([[np.inf, 0.0]], "max", "value; from 0 to inf in all"),
        ([[np.nan, np.nan]], "neither", "value"),
    ],
)
@pytest.mark.parametrize("own", [True, False])
def test_what_the_colors_do_not_reach_is_said(values, ends, said, own):
    ax = heatmap(values, ax=None if own else plt.subplots()[1])
    scale = next(each for each in ax.figure.axes if each is not ax)
    assert scale.get_ylabel() == said
    assert scale._colorbar.extend == ends
    ax.figure.canvas.draw()
    box, whole = scale.yaxis.label.get_window_extent(), ax.figure.bbox
    assert whole.y0 <= box.y0 < box.y1 <= whole.y1
    assert box.x1 <= whole.x1


@pytest.mark.parametrize(("rows", "each", "down"), [(4, 1, 1), (4, 10, 1), (1500, 1, 2)])
def test_numbers_stand_at_the_positions_that_they_are_of(rows, each, down):
    """In the middle of the rows of which a number is the mean."""
    values = np.arange(2.0 * rows).reshape(rows, 2) / rows
    ax = heatmap(values, start=5, first_column=3, each=each, annotate=True)
    assert len(ax.texts) == 2 * rows // down
    for text in (ax.texts[0], ax.texts[3], ax.texts[-1]):
        column, middle = text.get_position()
        row = (middle - 5 + 0.5) / each - down / 2
        meant = values[round(row) : round(row) + down, round(column) - 3].mean()
        assert text.get_text() == f"{meant:.2f}"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([[1e-5, 2e-5]], ["1.0e-05", "2.0e-05"]),
        ([[-1e-3, 0.05]], ["-1.0e-03", "5.0e-02"]),
        ([[-0.0, 0.0]], ["0.00", "0.00"]),
        ([[-0.001, 1.0]], ["0.00", "1.00"]),
        ([[-0.0, 3e7]], ["0", "3.0e+07"]),
        ([[float("nan"), -0.25]], ["nan", "-0.25"]),
    ],
)
def test_numbers_tell_the_largest_and_zero_has_no_sign(values, said):
    ax = heatmap(values, limit=None)
    assert [text.get_text() for text in ax.texts] == said


def test_channels_say_what_their_colors_do_not_reach():
    for limit, said in ((1.0, "value; from 0 to 2 in all"), (None, "value"), (2.0, "value")):
        ax = grid_channels([[0.0, 1.0], [2.0, 0.5]], (1, 2), limit=limit)
        assert ax.figure.axes[1].get_ylabel() == said


def test_frames_follow_what_is_longer_than_one():
    """An attention factor makes cosines and sines longer; learned rows have no bound."""
    twice = 2.0 * np.array([[1.0, 0.0], [-0.5, 0.75]])
    drawn = (
        curves(twice),
        curves(np.vstack((twice, [np.nan, np.inf]))),
        timestep_fan(twice, twice[::-1], [1.0, 2.0]),
        phasors(twice[0], twice[1], position=3),
    )
    for ax in drawn:
        points = np.concatenate([np.column_stack(line.get_data()) for line in ax.lines[:2]])
        points = points[np.isfinite(points).all(axis=1)]
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
        assert (points[:, 1] >= low[1]).all()
        assert (points <= high).all()
    assert curves(twice / 2).get_ylim() == curves(twice / 100).get_ylim() == (-1.08, 1.08)
    assert curves(twice, dimensions=[1]).get_ylim() == (-1.62, 1.62)


def test_colors_follow_weights_and_waves_above_one():
    assert shift_map(np.diag([3.0, -4.0]), offset=1, residual=0.0).images[0].get_clim() == (-4, 4)
    assert shift_map(np.eye(2) / 2, offset=1, residual=0.0).images[0].get_clim() == (-1, 1)
    assert binary_comparison([[0.0], [-5.0]]).images[1].get_clim() == (-5, 5)
    assert binary_comparison([[0.0], [0.5]]).images[1].get_clim() == (-1, 1)


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


@pytest.mark.slow("every figure", spares=3)
@pytest.mark.parametrize("draw", [heatmap, curves])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("words", [1, 8, 40])
def test_a_title_has_the_color_of_text_and_stays_inside(draw, theme, words):
    """A long one too, wherever it begins and in however many lines it is written."""
    ax = draw(table(40, 8, 100.0), title=" ".join(["geometric"] * words), theme=theme)
    ax.figure.canvas.draw()
    (title,) = (text for text in ax.findobj(Text) if text.get_text().startswith("geometric"))
    assert title.get_color() == look(theme).ink
    edges, box = title.get_window_extent(), ax.figure.bbox
    assert box.x0 <= edges.x0 < edges.x1 <= box.x1
    assert box.y0 <= edges.y0 < edges.y1 <= box.y1


def test_figures_draw_where_they_are_told():
    _, ax = plt.subplots()
    assert heatmap(table(10, 4, 100.0), ax=ax) is ax
    assert curves(table(10, 4, 100.0), ax=ax) is ax


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match=r"table has shape \[3\]; expected \[positions, dim\]"):
        heatmap([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="dimension 9 is not in the table"):
        curves(table(10, 4, 100.0), dimensions=[9])
    with pytest.raises(ValueError, match="dimensions is empty, and there is nothing to draw"):
        curves(table(10, 4, 100.0), dimensions=[])


LONG = "A title of many words, more than one line of any figure holds, " * 3
TITLED = {
    "bias": lambda: plots.bias(np.zeros((2, 5)), range(5), random=True, title=LONG),
    "binary": lambda: plots.binary_comparison(table(10, 4, 100.0), title=LONG),
    "curves": lambda: curves(table(10, 4, 100.0), title=LONG),
    "matrix": lambda: plots.similarity_matrix(np.eye(4), title=LONG),
    "norms": lambda: plots.norms(np.ones(4), np.ones(4), title=LONG),
    "wavelengths": lambda: plots.wavelengths({"a": [6.3, 63.0]}, title=LONG),
}


@pytest.mark.slow("every figure", spares=3)
@pytest.mark.parametrize("name", TITLED)
def test_a_long_title_stays_within_the_figure(name):
    ax = TITLED[name]()
    ax.figure.canvas.draw()
    title, figure = ax.title.get_window_extent(), ax.figure.bbox
    assert figure.x0 <= title.x0 < title.x1 <= figure.x1
    assert figure.y0 <= title.y0 < title.y1 <= figure.y1


@pytest.mark.parametrize("draw", [heatmap, curves])
def test_axes_tell_far_positions_or_refuse_them(draw):
    values, far = np.zeros((20, 4)), 10**14 - 19
    axes = draw(values, start=far)
    axes.figure.canvas.draw()
    axis = axes.yaxis if draw is heatmap else axes.xaxis
    low, high = sorted(axis.get_view_interval())
    assert far - 2 < low < high < far + 21
    before = int(float(axis.get_offset_text().get_text().replace("−", "-") or 0))
    for mark, label in zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True):
        assert before + int(label.get_text().replace("−", "-")) == mark
    plt.close(axes.figure)
    for start in (far + 1, 10**17, -(10**17)):
        with pytest.raises(ValueError, match="an axis tells them apart up to"):
            draw(values, start=start)
    with pytest.raises(ValueError, match="an axis tells them apart up to"):
        plots.bias([[0.0, 1.0]], [10**17, 10**17 + 1])


@pytest.mark.parametrize("draw", [plots.heatmap, plots.curves, plots.similarity_matrix])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tensors_that_train_are_drawn_in_any_dtype(draw, dtype):
    """numpy has no bfloat16, and takes no tensor of a graph."""
    table = torch.eye(4, dtype=dtype, requires_grad=True)
    draw(table)
    draw(table * 1)
    with pytest.raises(TypeError, match="Complex numbers have two parts"):
        draw(torch.eye(4, dtype=torch.complex64))


def shown(ax, **options):
    """What each picture of ``ax`` is made of once it is saved, and its room in pixels."""
    ax.figure.savefig(io.BytesIO(), **options)
    images = [np.asarray(image.get_array()) for image in ax.images]
    corners = [
        ax.transData.transform([image.get_extent()[::2], image.get_extent()[1::2]])
        for image in ax.images
    ]
    return images, [np.abs(b - a)[::-1] for a, b in corners]


def test_a_shift_map_loses_no_weight():
    """Single weights of any place, and each where it is."""
    dim, at = 1024, [(0, 0), (511, 3), (700, 701), (1023, 1023)]
    matrix = np.zeros((dim, dim))
    for sign, place in zip((1, -1, 1, -1), at, strict=True):
        matrix[place] = sign * 0.75
    ax = shift_map(matrix, offset=1, residual=0.0)
    (image,), ((high, wide),) = shown(ax)
    count = -(-dim // image.shape[0])
    assert count > 1
    assert image.shape[0] <= high + 0.5
    assert image.shape[1] <= wide + 0.5
    assert f"each pixel is the largest by size of {count} rows by {count} col" in ax.get_xlabel()
    for sign, (row, column) in zip((1, -1, 1, -1), at, strict=True):
        assert image[row // count, column // count] == sign * 0.75
    assert np.count_nonzero(image) == len(at)


SQUARE = np.random.default_rng(0).normal(size=(900, 900))
MEANS = {
    "similarity": lambda: plots.similarity_matrix(SQUARE),
    "sum": lambda: plots.embedding_sum(SQUARE[:8], SQUARE[:8]),
    "bits": lambda: binary_comparison(SQUARE[:8]),
    "attention": lambda: plots.attention(SQUARE[:8] ** 2, SQUARE[:8] ** 2),
    "patches": lambda: plots.patch_similarity({"A": SQUARE, "B": SQUARE}, (0, 0)),
    "channels": lambda: grid_channels(SQUARE[:, :8].repeat(40, 0), (180, 200)),
}


@pytest.mark.slow("every figure", spares=3)
@pytest.mark.parametrize("make", MEANS.values(), ids=MEANS)
def test_pictures_of_more_cells_than_pixels_show_means_and_say_so(make):
    ax = make()
    ax.figure.draw_without_rendering()
    before = ax.get_xlabel()
    assert "each pixel is the mean of " in before
    images, rooms = shown(ax, dpi=ax.figure.dpi)
    assert ax.get_xlabel() == before
    for image, room in zip(images, rooms, strict=True):
        assert (np.array(image.shape) <= room + 0.5).all()
    finer, _ = shown(ax, dpi=4 * ax.figure.dpi)
    assert all(len(many) >= len(few) for many, few in zip(finer, images, strict=True))
    assert finer[-1].shape[1] > images[-1].shape[1]


def test_a_mean_is_that_of_its_cells():
    (image,) = plots.similarity_matrix(SQUARE).images
    found = np.asarray(image.get_array())
    count = -(-900 // len(found))
    expected = SQUARE[count : 2 * count, 2 * count : 3 * count].mean()
    assert found[1, 2] == pytest.approx(expected, abs=1e-12)


def test_pictures_are_fitted_to_what_a_layout_leaves_of_their_axes():
    """By the layout of the whole figure, and by what comes into it afterwards."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.8, 2.6), layout="constrained")
    values = Sinusoidal(200).table(range(195))
    heatmap(values, ax=left, title="a title\nof two lines")
    heatmap(values, ax=right)
    figure.draw_without_rendering()
    assert "each pixel is the mean of 2 rows" in left.get_xlabel()
    right.set_title("\n".join(["a title of many lines"] * 5))
    for ax in (left, right):
        (image,), (room,) = shown(ax, dpi=figure.dpi)
        assert (np.array(image.shape) <= room + 0.5).all()
        each = -(-195 // image.shape[0])
        assert f"mean of {each} rows" in ax.get_xlabel()
        assert ax.get_xlabel().count("each pixel") == 1
        ax.set_xlabel("token")
        figure.draw_without_rendering()
        assert ax.get_xlabel().startswith(f"token\neach pixel is the mean of {each} rows")


def test_a_picture_lays_out_no_figure(monkeypatch):
    """Each of many would lay out all of them again, and draw what others have not finished."""
    figure, axes = plt.subplots(2, 2, layout="constrained")
    monkeypatch.setattr(type(figure), "draw_without_rendering", lambda _: pytest.fail("drawn"))
    for ax in axes.flat:
        heatmap(Sinusoidal(200).table(range(195)), ax=ax)
        plots.similarity_matrix(SQUARE, ax=ax)


@pytest.mark.slow("every figure", spares=3)
@pytest.mark.parametrize(
    "draw",
    [lambda figure: figure.savefig(io.BytesIO()), lambda figure: figure.canvas.draw()],
    ids=["saved", "shown"],
)
@pytest.mark.parametrize(
    ("rows", "columns", "size", "count", "layout"),
    [
        (1, 2, (6.8, 2.6), 180, "constrained"),
        (1, 2, (6.8, 2.6), 180, "tight"),
        (1, 3, (8, 3), 128, "constrained"),
        (2, 1, (6.8, 5.0), 165, "constrained"),
    ],
)
def test_the_first_picture_has_room_for_what_a_pixel_is(rows, columns, size, count, layout, draw):
    figure, axes = plt.subplots(rows, columns, figsize=size, layout=layout, squeeze=False)
    for ax in axes.flat:
        heatmap(Sinusoidal(128).table(range(count)), ax=ax, title="a title\nof two lines")
    draw(figure)
    renderer = figure.canvas.get_renderer()
    for ax in axes.flat:
        assert "each pixel is the mean of 2 " in ax.get_xlabel()
    assert min(ax.xaxis.label.get_window_extent(renderer).y0 for ax in axes.flat) > 0


@pytest.mark.parametrize(("rows", "columns", "size"), [(1, 2, (6.8, 2.6)), (2, 2, (6.4, 4.8))])
def test_a_layout_by_hand_cuts_no_note_off(rows, columns, size):
    """It cannot know what a pixel is in the axes that it leaves."""
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for ax in axes.flat:
        heatmap(Sinusoidal(128).table(range(150)), ax=ax, title="a title\nof two lines")
    assert "each pixel" not in axes[0, 0].get_xlabel()
    plt.tight_layout()
    figure.canvas.draw()
    renderer, placed = figure.canvas.get_renderer(), axes[-1, 0].get_position().bounds
    assert "each pixel is the mean of 2 " in axes[-1, 0].get_xlabel()
    assert min(ax.xaxis.label.get_window_extent(renderer).y0 for ax in axes.flat) >= 0
    figure.canvas.draw()
    assert axes[-1, 0].get_position().bounds == placed


def test_room_that_one_row_takes_from_the_next_is_looked_at_again():
    figure, axes = plt.subplots(2, 1, figsize=(4, 4.2), layout="constrained")
    for ax, count in zip(axes, (130, 120), strict=True):
        heatmap(Sinusoidal(128).table(range(count)), ax=ax, title="a title\nof two lines")
    figure.savefig(io.BytesIO())
    renderer = figure.canvas.get_renderer()
    assert all("each pixel is the mean of" in ax.get_xlabel() for ax in axes)
    assert min(ax.xaxis.label.get_window_extent(renderer).y0 for ax in axes) > 0


@pytest.mark.filterwarnings("ignore:.*not compatible with tight_layout")
@pytest.mark.parametrize("layout", ["constrained", "tight"])
def test_a_picture_within_axes_has_room_for_what_a_pixel_is(layout):
    figure, outer = plt.subplots(figsize=(4, 2.6), layout=layout)
    outer.axis("off")
    outer.set_title("two\nlines\nof title\nand more")
    ax = outer.inset_axes([0, 0, 1, 1])
    heatmap(Sinusoidal(128).table(range(150)), ax=ax, title="a title\nof two lines")
    figure.savefig(io.BytesIO())
    assert "each pixel is the mean of" in ax.get_xlabel()
    assert ax.xaxis.label.get_window_extent(figure.canvas.get_renderer()).y0 > 0


def test_nothing_but_pictures_takes_room_in_a_file_that_is_cut_to_them():
    figure = plt.figure(figsize=(4, 4))
    heatmap(Sinusoidal(8).table(range(10)), ax=figure.add_axes((0.5, 0.5, 0.2, 0.2)))
    (note,) = [artist for artist in figure.artists if isinstance(artist, Notes)]
    box = figure.get_tightbbox(figure.canvas.get_renderer())
    note.remove()
    assert box.bounds == figure.get_tightbbox(figure.canvas.get_renderer()).bounds


def test_a_layout_is_made_again_only_where_a_label_changed(monkeypatch):
    figure, axes = plt.subplots(1, 2, figsize=(6.8, 2.6), layout="constrained")
    for ax in axes:
        heatmap(Sinusoidal(128).table(range(180)), ax=ax)
    engine, made = figure.get_layout_engine(), []
    execute = engine.execute
    monkeypatch.setattr(engine, "execute", lambda root: (made.append(1), execute(root)))
    figure.draw_without_rendering()
    first = len(made)
    figure.draw_without_rendering()
    assert first <= 3
    assert len(made) == first + 1


def test_the_note_leaves_a_label_where_it_stands():
    figure, ax = plt.subplots(figsize=(4, 2.6), layout="constrained")
    heatmap(Sinusoidal(8).table(range(150)), ax=ax)
    ax.set_xlabel("token", loc="right")
    place = ax.xaxis.label.get_position()[0], ax.xaxis.label.get_horizontalalignment()
    figure.set_size_inches(4, 1.4)
    figure.draw_without_rendering()
    assert "token\neach pixel is the mean of" in ax.get_xlabel()
    assert (ax.xaxis.label.get_position()[0], ax.xaxis.label.get_horizontalalignment()) == place
    assert place == (1.0, "right")
