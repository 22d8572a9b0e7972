"""What a notebook shows of ``Rotary``, ``Positional`` and ``Encoder``."""

import pytest

from posenc import FIRE, ALiBi, PoSE, Positional, Rotary, Sinusoidal, T5Bias
from posenc.transformer import Encoder


@pytest.mark.parametrize(
    ("shown", "words", "lines"),
    [
        (Rotary(64), ("Geometric(dim=64", "6.283", "47,117"), 1),
        (Rotary([1.0, 0.0]), ("FromCheckpoint", "head_dim"), 0),  # one wavelength is no line
        (Positional(), ("tokens", "none"), 0),
        (Positional(Sinusoidal(8), scores=ALiBi(4)), ("Sinusoidal(8)", "-8", "head 3"), 1 + 4),
        (Positional(scores=[ALiBi(64), FIRE(64)], positions=PoSE(9)), ("FIRE", "head 54"), 11),
        (Encoder(8, 2, 1, positional=Positional(scores=T5Bias(2))), ("parameters", "T5Bias"), 2),
    ],
)
def test_a_table_and_the_picture_that_matters(shown, words, lines):
    html = shown._repr_html_()
    assert all(word in html for word in words)
    assert html.count("<polyline") == lines
    assert "nan" not in html
    assert "inf" not in html
