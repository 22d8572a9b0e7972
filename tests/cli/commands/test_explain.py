"""``posenc explain``: the steps lead to the value, in every convention."""

import math
import re

import pytest
import torch

from posenc import ALiBi, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("dimension", [0, 3, 4, 7])
def test_steps_and_value_agree(told, convention, dimension):
    """The last step, computed from the one before it, is the number in the table."""
    about = told(
        *("explain", "--position", 11, "--dimension", dimension, "--dim", 8),
        *("--convention", convention, "--base", 100),
    )
    angle, last = about["steps"][-2:]
    function = getattr(math, last["formula"].partition("(")[0])
    assert function(angle["value"]) == pytest.approx(about["value"], abs=1e-12)
    table = Sinusoidal(8, 100.0, convention).table(torch.tensor([11]), dtype=torch.float64)
    assert about["value"] == pytest.approx(table[0, dimension].item(), rel=2**-50)
    named = {step["name"]: step["value"] for step in about["steps"]}
    by_formula = function(named.get("count", 11) / 100 ** named["exponent"])
    assert about["value"] == pytest.approx(by_formula, abs=1e-14)


@pytest.mark.parametrize("position", [3, -(2**40), 2**62])
def test_a_number_is_correctly_rounded_at_any_position(told, oracle, position):
    """An expression and the options give the same number, which is that of 90 digits."""
    options = ("explain", "--position", position)
    value = told(*options)["value"]
    assert value == told(*options, "--encoding", "Sinusoidal(6)")["value"]
    truth = oracle.cos_sin(position, oracle.frequency(10_000.0, 2, 6))[1]
    assert value == oracle.nearest(truth, torch.float64)


@pytest.mark.parametrize(
    "arguments", ["1", "6", "8", "12", "6, slopes='geometric'", "5, alibi_bias_max=4.5"]
)
def test_a_slope_of_alibi_is_the_power_that_is_told(told, arguments):
    """For heads that are no power of two, the authors' recipe takes those of the powers beside."""
    slopes = eval(f"ALiBi({arguments})", {"ALiBi": ALiBi}).slopes
    for head, slope in enumerate(slopes):
        words = ["--encoding", f"ALiBi({arguments})", "--dimension", head]
        numbers, _, of = told("explain", *words)["steps"][0]["numbers"].partition(", ")
        most, nth, heads = map(float, re.fullmatch(r"2\^\(-(.+) · (.+) / (.+)\)", numbers).groups())
        assert 2 ** (-most * nth / heads) == slope
        assert of == ("" if heads == len(slopes) else f"as of {heads:g} heads")
