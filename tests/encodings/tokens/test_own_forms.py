"""Forms and conventions of one's own: what they say is checked where they are made."""

from dataclasses import replace
from math import cos, sin

import pytest
import torch

from posenc import AxialSinusoidal
from posenc.encodings.tokens.conventions import Interleaved
from posenc.encodings.tokens.grid_forms import GRID_FORMS


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
