"""The figures of the gallery draw the numbers they are given, labeled with units, where asked."""

import runpy
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
import torch

import posenc.plots as plots
from posenc import ALiBi, Sinusoidal, T5Bias
from posenc.frequencies import Geometric, Linear
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
    "phasors": lambda **o: plots.phasors([1.0, 0.0], [0.0, 1.0], position=3, **o),
    "norms": lambda **o: plots.norms([3.0, 4.0], [2.0, 2.0], **o),
    "error_curve": lambda **o: plots.error_curve({"mine": {10: 1e-6, 100: 1e-5}}, **o),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
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


def test_a_bias_is_one_line_a_head():
    profile = T5Bias(3, std=1.0).profile(DISTANCE).detach().numpy()
    ax = plots.bias(profile, DISTANCE)
    drawn = [line.get_ydata() for line in ax.lines if line.get_label().startswith("head")]
    np.testing.assert_array_equal(drawn, profile)


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
        (lambda: plots.norms([1.0], [1.0, 2.0]), "1 embeddings, 2 encodings"),
        (lambda: plots.scaling([1.0], {}, trained_length=3), "for all 1 pairs"),
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
    for name in ("phasors", "scaling"):
        made["GALLERY"][name]("dark").figure.savefig(tmp_path / f"{name}.png")
