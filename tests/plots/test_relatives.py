"""The figures of the gallery draw the numbers they are given, labeled with units, where asked."""

import runpy
from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
import torch

import posenc.plots as plots
from posenc import ALiBi, Sinusoidal, T5Bias
from posenc.frequencies import FromCheckpoint, Geometric, Linear
from posenc.positions import consecutive

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


ROWS = Sinusoidal(8).table(consecutive(12)).numpy()
DISTANCE = torch.arange(-5, 6)

DRAWN = {
    "wavelengths": lambda **o: plots.wavelengths({"a": Geometric(8).wavelengths()}, **o),
    "scaling": lambda **o: plots.scaling(
        Geometric(8).wavelengths(),
        {"linear": Linear(Geometric(8), 4.0).wavelengths()},
        trained_length=64,
        **o,
    ),
    "bias": lambda **o: plots.bias(ALiBi(4).profile(DISTANCE), DISTANCE, **o),
    "distance_profile": lambda **o: plots.distance_profile([3.0, 2.0, 2.5], **o),
    "rotary_score": lambda **o: plots.rotary_score({"b": [1.0, 0.5]}, **o),
    "similarity_matrix": lambda **o: plots.similarity_matrix(ROWS @ ROWS.T, **o),
    "shift_map": lambda **o: plots.shift_map(np.eye(4), offset=3, residual=1e-16, **o),
    "embedding_sum": lambda **o: plots.embedding_sum(ROWS * 2, ROWS, **o),
    "binary_comparison": lambda **o: plots.binary_comparison(ROWS[:, ::2], **o),
    "attention": lambda **o: plots.attention(np.eye(3), np.full((3, 3), 1 / 3), **o),
    "directions": lambda **o: plots.directions({"a": [[1.0, 0.0], [0.1, 0.1]]}, **o),
    "phasors": lambda **o: plots.phasors([1.0, 0.0], [0.0, 1.0], position=3, **o),
    "norms": lambda **o: plots.norms([3.0, 4.0], [2.0, 2.0], **o),
    "growth": lambda **o: plots.growth({"mine": {512: 1.0, 2048: 3.0}}, **o),
    "error_curve": lambda **o: plots.error_curve({"mine": {10: 1e-6, 100: 1e-5}}, **o),
}


@pytest.mark.parametrize(
    "theme", ["light", pytest.param("dark", marks=pytest.mark.slow("every figure once more"))]
)
@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_each_figure_uses_the_axes_it_is_given_and_has_labels(draw, theme):
    figure, ax = plt.subplots()
    assert draw(ax=ax, theme=theme, title="A title") is ax
    assert ax.get_title() == "A title"
    assert ax.get_xlabel()
    figure.canvas.draw()
    own = draw(theme=theme)
    assert own.figure is not figure
    assert own.get_facecolor() == mpl.colors.to_rgba({"light": "#ffffff", "dark": "#17181c"}[theme])


def test_wavelengths_are_drawn_on_a_logarithmic_axis_with_both_lengths():
    lengths = Geometric(8).wavelengths()
    ax = plots.wavelengths({"a": lengths}, trained_length=100, target_length=800)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), lengths)
    assert [line.get_ydata()[0] for line in ax.lines[1:]] == [100, 800]
    assert [t.get_text() for t in ax.texts] == ["trained length 100", "target length 800"]
    flat = plots.wavelengths({"a": (6.0, float("inf"))})
    assert flat.lines[0].get_ydata().tolist() == [6.0]  # what does not turn is left out


@pytest.mark.parametrize(("trained", "target"), [(4096, 4096), (4096, 4100), (4100, 4096)])
def test_names_of_lengths_do_not_stand_on_each_other(trained, target):
    given = {"trained_length": trained, "target_length": target}
    ax = plots.wavelengths({"a": Geometric(64).wavelengths()}, **given)
    lines = {line.get_ydata()[0] for line in ax.lines[1:]}
    assert lines == {trained, target}
    assert len(ax.lines[1:]) == len(ax.texts) == len(lines)
    assert all(f"{length:,}" in "".join(t.get_text() for t in ax.texts) for length in lines)
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_pairs_that_turn_backwards_stand_where_others_of_their_size_do():
    """On a logarithmic axis a negative wavelength would be a stroke out of the picture."""
    signed, plain = (FromCheckpoint([1.0, sign * 0.5, 0.1]).wavelengths() for sign in (-1, 1))
    drawn = [
        plots.wavelengths({"of": lengths}).lines[0].get_xydata() for lengths in (signed, plain)
    ]
    np.testing.assert_array_equal(*drawn)
    halved = [length * 2 for length in signed]
    line = plots.scaling(signed, {"of": halved}, trained_length=100).lines[0]
    np.testing.assert_allclose(line.get_xdata(), [100 / length for length in plain])
    np.testing.assert_array_equal(line.get_ydata(), [2.0, 2.0, 2.0])
    with pytest.raises(ValueError, match="'other' has a wavelength of 0 or one whose sign is not"):
        plots.scaling(signed, {"other": plain}, trained_length=100)


def test_small_ratios_have_labels_that_differ():
    ax = plots.scaling([1.0, 1.0, 1.0], {"x": [1.0, 0.01, 0.0005]}, trained_length=100)
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert [float(text) for text in labels] == pytest.approx(ax.get_yticks(), rel=1e-5)


def test_a_bias_is_one_line_a_head():
    profile = T5Bias(3, std=1.0).profile(DISTANCE).detach().numpy()
    ax = plots.bias(profile, DISTANCE)
    drawn = [line.get_ydata() for line in ax.lines if line.get_label().startswith("head")]
    np.testing.assert_array_equal(drawn, profile)


def test_heads_whose_slopes_differ_by_much_stand_apart():
    distance = torch.arange(-20, 101)
    ax = plots.bias(ALiBi(8).profile(distance), distance)
    ax.figure.canvas.draw()
    ends = [ax.transData.transform((100, line.get_ydata()[-1]))[1] for line in ax.lines[1:]]
    apart = np.diff(sorted(ends))
    assert len(apart) == 7
    assert apart.min() > 10  # pixels
    assert "logarithmic" in ax.get_ylabel()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        f"head {h}" for h in reversed(range(8))
    ]  # in the order in which the lines end


def test_buckets_near_the_query_are_as_wide_as_far_ones():
    distance = torch.arange(-150, 151)
    ax = plots.bias(T5Bias(3, std=1.0).profile(distance).detach(), distance, random=True)
    ax.figure.canvas.draw()
    at = [ax.transData.transform((d, 0))[0] for d in (0, 1, 2, 64, 128)]
    assert at[1] - at[0] > 5  # pixels; on a linear axis it would be 2
    assert at[2] - at[1] > 5
    assert at[4] - at[3] > 20
    assert "seeded random numbers, not learned" in ax.get_title()
    assert "not learned" not in plots.bias(ALiBi(2).profile(distance), distance).get_title()


def test_attention_names_its_keys_and_has_its_bars_beside_its_panels():
    words = ["your", "cat", "is", "lovely"]
    off, on = np.full((4, 4), 0.25), np.eye(4)
    ax = plots.attention(off, on, tokens=words)
    ax.figure.canvas.draw()
    assert [label.get_text() for label in ax.get_xticklabels()] == 3 * words
    assert ax.get_xlabel() == "key"
    panels = [image.get_window_extent() for image in ax.images]
    bars = {each.get_ylabel(): each.get_window_extent() for each in ax.child_axes}
    assert set(bars) == {"weight", "difference"}
    assert panels[1].x1 < bars["weight"].x0 < bars["weight"].x1 < panels[2].x0
    assert panels[2].x1 < bars["difference"].x0
    for bar in bars.values():
        assert abs(bar.y0 - panels[0].y0) < 2
        assert abs(bar.y1 - panels[0].y1) < 2
    assert plots.attention(off, on).get_xlabel() == "key (each block from 0)"


def test_distances_are_query_minus_key_in_every_figure():
    for draw in (
        lambda: plots.bias(ALiBi(2).profile(DISTANCE), DISTANCE),
        lambda: plots.distance_profile([1.0, 0.5]),
        lambda: plots.rotary_score([1.0, 0.5]),
    ):
        assert draw().get_xlabel() == "distance query − key (positions)"


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_without_a_unit_are_not_said_to_have_none(name):
    ax = DRAWN[name](title="A title")
    texts = ax.figure.findobj(mpl.text.Text)
    assert not [text for text in texts if "no unit" in text.get_text()]


def test_sums_and_differences_are_what_they_say():
    ax = plots.embedding_sum(ROWS * 2, ROWS)
    arrays = [image.get_array() for image in ax.images]
    np.testing.assert_array_equal(arrays[2], arrays[0] + arrays[1])
    assert len({image.get_clim() for image in ax.images}) == 1  # one scale for all three
    ax = plots.attention(np.eye(3), np.full((3, 3), 1 / 3))
    np.testing.assert_allclose(ax.images[2].get_array(), 1 / 3 - np.eye(3))
    low, high = ax.images[2].get_clim()
    assert low == -high
    assert ax.images[0].get_cmap().name == "cividis"


def test_binary_digits_are_those_of_the_position():
    ax = plots.binary_comparison(ROWS[:, ::2])
    digits = (ax.images[0].get_array() + 1) / 2
    np.testing.assert_array_equal(digits @ 2 ** np.arange(4), np.arange(12))
    np.testing.assert_array_equal(ax.images[1].get_array(), ROWS[:, ::2])


def test_hands_point_to_cos_and_sin():
    ax = plots.phasors([0.6], [0.8], position=1)
    hand = next(line for line in ax.lines if line.get_linewidth() == 2.0)
    assert (hand.get_xdata()[1], hand.get_ydata()[1]) == (0.6, 0.8)


def test_directions_and_their_mirror_images_stand_where_pairs_look():
    vectors = np.array([[0.0, 1.0], [-0.01, 0.0], [0.1, 0.1], [0.0, 0.0]])  # (y, x)
    ax = plots.directions({"four": vectors})
    points, mirrored = (each.get_offsets() for each in ax.collections)
    np.testing.assert_allclose(points, -mirrored)
    np.testing.assert_allclose(points[:2], [[1.0, 0.0], [0.0, -0.25]])  # fastest, slowest
    assert points[2, 0] == points[2, 1]
    assert len(points) == 3
    bottom, top = ax.get_ylim()
    assert bottom > top  # y grows downward


def test_directions_of_heads_are_those_of_all_their_pairs():
    heads = np.array([[[0.0, 1.0], [0.1, 0.0]], [[0.1, 0.1], [0.5, 0.5]]])
    one, flat = (plots.directions({"a": each}) for each in (heads, heads.reshape(4, 2)))
    for got, want in zip(one.collections, flat.collections, strict=True):
        np.testing.assert_array_equal(got.get_offsets(), want.get_offsets())


def test_an_error_at_position_0_has_no_place_on_a_logarithmic_axis():
    ax = plots.error_curve({"mine": {0: 0.0, 1000: 1e-2, 10: 1e-4}, "start": {0: 1e-4}})
    mine, start = ax.get_lines()[:2]
    assert mine.get_xydata().tolist() == [[10, 1e-4], [1000, 1e-2]]
    assert not len(start.get_xydata())
    assert ax.get_ylim()[0] > 1e-9
    with pytest.raises(ValueError, match="a has an error of"):
        plots.error_curve({"a": {0: -0.5, 1: 0.0}})


@pytest.mark.parametrize(
    ("draw", "text"),
    [
        (lambda: plots.wavelengths({}), "schedules is empty"),
        (lambda: plots.bias(np.zeros((2, 3)), [1, 2]), "3 columns and there are 2 distances"),
        (lambda: plots.similarity_matrix(np.zeros((2, 3))), "expected a square"),
        (lambda: plots.embedding_sum(ROWS, ROWS[1:]), "they must be alike"),
        (lambda: plots.embedding_sum(ROWS, ROWS, tokens=["a"]), "1 tokens came for 12 rows"),
        (lambda: plots.phasors([1.0], [0.0, 1.0], position=0), "1 cosines and 2 sines"),
        (lambda: plots.distance_profile([float("nan")]), "finite numbers"),
        (lambda: plots.error_curve({}), "errors is empty"),
        (lambda: plots.error_curve({"a": {1: 0.0, 2: float("nan")}}), "errors of a has shape"),
        (lambda: plots.error_curve({"a": {1: -0.5}}), "a has an error of -0.5"),
        (lambda: plots.similarity_matrix(np.eye(3), start=10**14 - 1), "an axis tells them apart"),
        (lambda: plots.distance_profile([1.0, 0.5], first=10**17), "an axis tells them apart"),
        (lambda: plots.growth({}), "costs is empty"),
        (lambda: plots.growth({"a": {1: 1.0}}, against="b"), "against is 'b'; expected one of a"),
        (lambda: plots.growth({"a": {1: 1.0, 2: 0.0}}), "a has a size or a cost of 0 or less"),
        (lambda: plots.norms([1.0], [1.0, 2.0]), "1 embeddings, 2 encodings"),
        (lambda: plots.scaling([1.0], {}, trained_length=3), "for all 1 pairs"),
        (lambda: plots.directions({"a": np.ones((2, 2, 3))}), "3 axes; the plane has two"),
        (lambda: plots.directions({}), "vectors is empty"),
        (lambda: plots.directions({"a": np.zeros((3, 2))}), "No pair of a turns"),
        (lambda: plots.directions({"a": np.ones((3, 3))}), "3 axes; the plane has two"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, text):
    with pytest.raises(ValueError, match=text):
        draw()


def test_the_gallery_is_drawn_by_its_script_and_shown_on_its_page(tmp_path):
    made = runpy.run_path(str(ROOT / "docs/make_gallery.py"))
    page = (ROOT / "docs/gallery.md").read_text()
    for name in made["GALLERY"]:
        assert f"(pictures/{name}.png)" in page, name
        assert (ROOT / f"docs/pictures/{name}.png").is_file(), name
    script = (ROOT / "docs/make_gallery.py").read_text()
    unseen = [name for name in plots.__all__ if f"plots.{name}(" not in script]
    assert unseen == [], "every figure has its place in the gallery"
    for name in ("phasors", "scaling"):
        made["GALLERY"][name]("dark").figure.savefig(tmp_path / f"{name}.png")


def test_growth_is_drawn_over_sizes_in_their_order_and_powers_are_straight():
    costs = {"mine": {4: 8.0, 1: 0.5, 2: 2.0}, "peer": {2: 9.0}, "copy": {1: 1.0, 4: 4.0}}
    ax = plots.growth(costs, against="copy", dashed=["peer"])
    mine, peer, copy = ax.lines
    np.testing.assert_array_equal(mine.get_xydata(), [[1, 0.5], [2, 2.0], [4, 8.0]])
    seen = ax.transData.transform(mine.get_xydata())
    steps = np.diff(seen, axis=0)
    np.testing.assert_allclose(steps[0], steps[1])  # a square, on logarithmic axes
    assert [line.get_linestyle() for line in ax.lines] == ["-", "--", ":"]
    assert len({line.get_marker() for line in ax.lines}) == 3
    assert copy.get_color() == ax.title.get_color() != mine.get_color() != peer.get_color()
    with pytest.raises(ValueError, match="dashed has 'other'; expected names of mine, peer, copy"):
        plots.growth(costs, dashed=["other"])
