"""The fan of timesteps: angles that were given, as far as they tell timesteps apart."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from posenc import Sinusoidal, plots
from posenc.positions import Coordinates

RUN = [0.0, 0.5, 250.25, 999.75]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(theme="light"):
    cos, sin = Sinusoidal(256, convention="timestep").table(Coordinates(RUN)).chunk(2, dim=-1)
    return plots.timestep_fan(cos, sin, RUN, theme=theme)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_blade_is_at_its_angles(theme):
    ax = drawn(theme)
    speeds = 10_000.0 ** (-np.arange(128) / 128)
    assert len(ax.lines) == len(RUN)
    for line, time in zip(ax.lines, RUN, strict=True):
        x, y = line.get_data()
        shown = speeds[len(speeds) - len(x) :]
        radius = np.hypot(x, y)
        np.testing.assert_allclose(x, radius * np.cos(time * shown), atol=1e-6)
        np.testing.assert_allclose(y, radius * np.sin(time * shown), atol=1e-6)
        assert (np.diff(radius) > 0).all()
        assert radius[-1] == pytest.approx(1.0)


def test_a_blade_ends_after_one_turn():
    """t · ω < 2π for the innermost pair that is shown, and not for the next."""
    speeds = 10_000.0 ** (-np.arange(128) / 128)
    for line, time in zip(drawn().lines, RUN, strict=True):
        assert len(line.get_xdata()) == (time * speeds < 2 * np.pi).sum()


def test_colors_follow_time_in_any_order():
    ones, times = np.ones((3, 4)), [7.5, 0.0, 3.25]
    ax = plots.timestep_fan(ones, 0 * ones, times, title="run")
    colors = [line.get_color() for line in ax.lines]
    again = plots.timestep_fan(ones, 0 * ones, sorted(times)).lines
    assert [colors[i] for i in (1, 2, 0)] == [line.get_color() for line in again]
    assert ax.get_title() == "run"
    assert ax.figure.axes[-1].get_ylabel() == "timestep t"


def test_large_steps_from_pair_to_pair_are_not_followed():
    """Of two pairs a third of a turn apart nobody can say which way round they lie."""
    angles = np.array([[0.0, 2.1, 0.3, 0.1]])
    ax = plots.timestep_fan(np.cos(angles), np.sin(angles), [1.0])
    assert len(ax.lines[0].get_xdata()) == 2


@pytest.mark.parametrize(
    ("cos", "sin", "times", "text"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), [0, 1], r"cos has shape \[2, 3\], sin \[2, 4\]"),
        (np.ones((2, 3)), np.ones((2, 3)), [0, 1, 2], "there are 3 timesteps"),
        (np.ones(3), np.ones(3), [0], "cos has shape"),
        (np.ones((1, 3)), np.ones((1, 3)), [np.nan], "timesteps has shape"),
    ],
)
def test_what_cannot_be_drawn_is_refused(cos, sin, times, text):
    with pytest.raises(ValueError, match=text):
        plots.timestep_fan(cos, sin, times)
