"""The data that figures draw stays as it was; run this file to write ``figures.json`` anew."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from tests.goldens.written import known, near, write

from posenc import ALiBi, Sinusoidal, plots
from posenc.frequencies import Geometric, Linear
from posenc.positions import consecutive

HELD = known("figures")
ROWS = Sinusoidal(8).table(consecutive(12)).numpy()
NEAR, FAR = consecutive(11, start=-5), consecutive(300, start=-150)
PLAIN, LONGER = (kind.wavelengths() for kind in (Geometric(8), Linear(Geometric(8), 4.0)))
GRID = np.arange(60.0).reshape(6, 10) / 50
BUCKETS = np.abs(np.stack((FAR // 40, FAR // -30 - 7))) * [[1.0], [-2.0]]
WORDS = ["your", "cat", "is"]

DRAWN = {
    "heatmap": lambda: plots.heatmap(ROWS, start=5, first_column=3),
    "heatmap small": lambda: plots.heatmap([[0.5, -2e-5], [3.0, np.nan]]),
    "heatmap free": lambda: plots.heatmap(9 * ROWS, limit=None, annotate=False, theme="dark"),
    "curves": lambda: plots.curves(2 * ROWS, start=7),
    "curves some": lambda: plots.curves(ROWS, dimensions=[7, 0], labels=["a", "b"]),
    "wavelengths": lambda: plots.wavelengths({"a": PLAIN}, trained_length=9, target_length=90),
    "scaling": lambda: plots.scaling(PLAIN, {"b": LONGER}, trained_length=64, factor=4.0),
    "bias": lambda: plots.bias(ALiBi(8).profile(NEAR), NEAR, title="ALiBi"),
    "bias buckets": lambda: plots.bias(BUCKETS, FAR, heads=[3, 1], random=True),
    "profile": lambda: plots.distance_profile({"a": [3.0, 2.0], "b": [1.0, 0.5, 0.2]}, first=4),
    "rotary score": lambda: plots.rotary_score([1.0, 0.5]),
    "similarity": lambda: plots.similarity_matrix(ROWS @ ROWS.T, start=4),
    "shift map": lambda: plots.shift_map(ROWS[:8], offset=3, residual=1e-16),
    "sum": lambda: plots.embedding_sum(ROWS[:3] * 2, ROWS[:3], tokens=WORDS),
    "binary": lambda: plots.binary_comparison(ROWS[:, ::2]),
    "attention": lambda: plots.attention(np.eye(3), np.full((3, 3), 1 / 3), tokens=WORDS),
    "directions": lambda: plots.directions({"a": [[1.0, 0.0], [0.1, 0.1]], "b": [[0.0, 3.0]]}),
    "phasors": lambda: plots.phasors([1.0, 0.0], [0.0, 2.0], position=3),
    "norms": lambda: plots.norms([3.0, 4.0, 5.0], [2.0, 2.0, 1.0], tokens=WORDS),
    "growth": lambda: plots.growth({"a": {8: 1.0, 2: 3.0}, "b": {4: 2.0}}, against="b"),
    "errors": lambda: plots.error_curve({"a": {0: 0.0, 10: 1e-6, 100: 0.0}}),
    "channels": lambda: plots.grid_channels(GRID, (2, 3), channels=[0, 9, 4], columns=2),
    "patches": lambda: plots.patch_similarity({"a": GRID, "b": -2 * GRID}, (1, 2), columns=1),
    "fan": lambda: plots.timestep_fan(ROWS[:, 1::2], ROWS[:, ::2], np.arange(12.0)),
    "lengths": lambda: plots.length_curve(
        {"a": {1: [0.9, 1.0], 8: [0.5]}, "b": {1: [0.8]}}, {"a": {1: (0.95, 0.9, 1)}}, chance=0.5
    ),
    "paired": lambda: plots.paired_differences({"a": [0.1, 0.3]}, {"a": (0.2, 0.1, 0.4)}),
    "losses": lambda: plots.loss_curves({"a": [[[1, 3.0], [2, 1.0]], [[1, 2.0], [3, 2.0]]]}),
    "costs": lambda: plots.costs({"a": [1.0, 5.0, 2.0], "b": [3.0]}, {"a": 0, "b": 96}),
}


def shown(ax):
    """What is drawn, as numbers and words."""
    bars = [bar for bar in ax.patches if hasattr(bar, "get_x")]
    data = {
        "lines": [dots(line) for line in ax.lines],
        "points": [each.get_offsets() for each in ax.collections if len(each.get_offsets())],
        "bars": [(*bar.get_xy(), bar.get_width(), bar.get_height()) for bar in bars],
        "pictures": [image.get_array().filled(-99) for image in ax.images],
        "ends": [(*image.get_extent(), *image.get_clim()) for image in ax.images],
        "axes": [ax.get_xlim() + ax.get_ylim()],
    }
    legend = ax.get_legend().get_texts() if ax.get_legend() else []
    words = [text.get_text() for text in (*ax.texts, *legend, ax.title)]
    words += [ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()]
    others = {each for outer in ax.figure.axes for each in (outer, *outer.child_axes)} - {ax}
    words += sorted(each.get_ylabel() for each in others)
    numbers = {
        k: [np.round(np.nan_to_num(v, nan=-99.0), 5).tolist() for v in data[k]] for k in data
    }
    return numbers | {"words": words}


def dots(line):
    """The points of a line, or those that have a dot where only some do."""
    every = line.get_markevery()
    return line.get_xydata()[:: every if isinstance(every, int) else 1]


@pytest.mark.parametrize("name", DRAWN)
def test_figures_draw_what_they_drew(name):
    drawn = shown(DRAWN[name]())
    plt.close("all")
    for key, values in HELD[name].items():
        assert near(drawn[key], values, relative=1e-7, absolute=2e-5), (key, drawn[key], values)


if __name__ == "__main__":
    write("figures", {name: shown(draw()) for name, draw in DRAWN.items()}, separators=(",", ":"))
