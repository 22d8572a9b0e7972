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

CASES = [
    (lambda: replace(GRID_FORMS["mae"], order="forwards"), "order is 'forwards'"),
    (lambda: replace(GRID_FORMS["mae"], order=(0, 0), any_axes=False), "name each of 2 axes once"),
    (lambda: replace(GRID_FORMS["mae"], order=(1, 0)), "pass any_axes=False"),
    (lambda: replace(GRID_FORMS["mae"], shares=(3,)), "2 whole numbers, one an axis"),
    (lambda: replace(GRID_FORMS["mae"], shares=(3, 1)), "pass any_axes=False"),
    (lambda: replace(GRID_FORMS["mae"], normalized="no"), "normalized is 'no'"),
    (lambda: replace(GRID_FORMS["mae"], start=(1, 2)), "adds a whole number"),
    (lambda: replace(GRID_FORMS["mae"], start=(2, 2)), "adds a whole number"),
    (lambda: replace(GRID_FORMS["detr"], start=(1, 3)), "must divide 10\\^6"),
    (lambda: replace(GRID_FORMS["detr"], start=(1, 0)), r"start\[1\] is 0"),
    (lambda: replace(GRID_FORMS["positional_encodings"], shares=(1, 2)), "leave shares out"),
    (lambda: replace(timestep(), first=1.5), "first is 1.5"),
    (lambda: replace(timestep(), first=True), "first is True"),
    (lambda: replace(timestep(), odd="sine"), "called 'zero'"),
    (lambda: replace(CONVENTIONS["paper"], odd="zero"), "called 'sine'"),
    (lambda: replace(CONVENTIONS["per_dimension"], odd="zero"), "called 'unpaired'"),
    (lambda: timestep(flip="no"), "flip is 'no'"),  # type: ignore[arg-type]
    (lambda: timestep(shift=True), "shift is True"),
    (lambda: PerChannel(step=0.5), "step is 0.5"),  # type: ignore[arg-type]
    (lambda: PerChannel(first=-1), "first is -1"),
]


@pytest.mark.parametrize(("make", "said"), CASES, ids=[said for _, said in CASES])
def test_what_would_be_read_otherwise_is_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_a_waveform_is_one():
    with pytest.raises(
        TypeError, match="waveform is 'halves'; it must be Interleaved, Halves or Per"
    ):
        replace(timestep(), waveform="halves")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="it must be Halves or Interleaved"):
        replace(GRID_FORMS["mae"], waveform=PerChannel())  # type: ignore[arg-type]


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
    with pytest.raises(ValueError, match="a grid of \\(2, 3\\) alone"):
        LearnedGrid.from_weight(weight, **given)
    assert LearnedGrid.from_weight(weight, size=(2, 3), prefix=0).size == (2, 3)
    assert LearnedGrid.from_weight(weight.flatten(1, -2), size=(3, 2)).size == (3, 2)
