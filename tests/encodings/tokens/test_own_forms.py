"""Forms and conventions of one's own: what they say is checked where they are made."""

from dataclasses import replace
from math import cos, sin

import pytest
import torch

from posenc import AxialSinusoidal, LearnedGrid, Sinusoidal
from posenc.encodings.tokens.conventions import (
    CONVENTIONS,
    Halves,
    Interleaved,
    PerChannel,
    timestep,
)
from posenc.encodings.tokens.grid_forms import GRID_FORMS


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: replace(GRID_FORMS["mae"], order="forwards"), "order is 'forwards'"),
        (lambda: replace(GRID_FORMS["mae"], order=(0, 0)), "name each of 2 axes"),
        (lambda: replace(GRID_FORMS["mae"], shares=(3,)), "must have 2 numbers"),
        (lambda: replace(timestep(), first=1.5), "first is 1.5"),
        (lambda: replace(timestep(), odd="sine"), "has 'zero'"),
        (lambda: replace(CONVENTIONS["paper"], odd="zero"), "has 'sine'"),
        (lambda: PerChannel(step=0.5), "step is 0.5"),  # type: ignore[arg-type]
    ],
)
def test_what_would_be_read_otherwise_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_forms_of_ones_own_are_what_they_say():
    """A third of the width for rows and two for columns, sines first, columns before rows."""
    form = replace(
        GRID_FORMS["mae"], any_axes=False, order=(1, 0), shares=(2, 1), start=(3, 1),
        waveform=Interleaved(),
    )  # fmt: skip
    (row,) = AxialSinusoidal(6, form, base=16.0).table([[1, 2]], dtype=torch.float64).tolist()
    x, y = 2 + 3, 1 + 3
    wanted = [sin(x), cos(x), sin(x / 4), cos(x / 4), sin(y), cos(y)]
    assert row == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("shift", [0.5, -1, 1])
def test_any_shift_of_timesteps_is_that_of_diffusers(shift):
    made = Sinusoidal(8, base=100.0, convention=timestep(shift)).table([3], dtype=torch.float64)[0]
    assert made[:4].tolist() == pytest.approx(
        [cos(3 * 100 ** (-i / (4 - shift))) for i in range(4)], abs=1e-9
    )
    assert Halves(shift).odd == "zero"


@pytest.mark.parametrize("given", [{"size": (3, 2)}, {"size": (6,)}, {"prefix": 1, "size": (5,)}])
def test_the_shape_of_a_weight_is_not_contradicted(given):
    weight = torch.arange(24.0).view(1, 2, 3, 4)
    with pytest.raises(ValueError, match="weight has shape"):
        LearnedGrid.from_weight(weight, **given)
    assert LearnedGrid.from_weight(weight, size=(2, 3), prefix=0).size == (2, 3)
    assert LearnedGrid.from_weight(weight.flatten(1, -2), size=(3, 2)).size == (3, 2)
