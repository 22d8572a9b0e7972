"""``posenc explain``: the steps lead to the value, in every convention."""

import json
import math
import re

import pytest
import torch

from posenc import ALiBi, Sinusoidal
from posenc.encodings.tokens.conventions import CONVENTIONS

BY_HAND = [0.84147, 0.5403, 0.0464, 0.99892, 0.00215, 0.99999]


@pytest.mark.parametrize(("dimension", "value"), list(enumerate(BY_HAND)))
def test_the_row_worked_by_hand(run, dimension, value):
    ran = run("explain", "--position", 1, "--dimension", dimension, "--dim", 6, "--format", "json")
    assert json.loads(ran.out)["value"] == pytest.approx(value, abs=1e-5)


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("dimension", [0, 3, 4, 7])
def test_steps_and_value_agree(run, convention, dimension):
    """The last step, computed from the one before it, is the number in the table."""
    ran = run(
        *("explain", "--position", 11, "--dimension", dimension, "--dim", 8),
        *("--convention", convention, "--base", 100, "--format", "json"),
    )
    about = json.loads(ran.out)
    angle, last = about["steps"][-2:]
    function = math.sin if last["formula"].startswith("sin") else math.cos
    assert function(angle["value"]) == pytest.approx(about["value"], abs=1e-12)
    table = Sinusoidal(8, 100.0, convention).table(torch.tensor([11]), dtype=torch.float64)
    assert about["value"] == pytest.approx(table[0, dimension].item(), rel=2**-50)
    assert about["value"] == pytest.approx(by_formula(about), abs=1e-14)


def by_formula(about) -> float:
    """The number by the formula that is printed: function(t / n^e)."""
    named = {step["name"]: step["value"] for step in about["steps"]}
    angle = named.get("count", about["position"]) / about["base"] ** named["exponent"]
    return getattr(math, about["steps"][-1]["formula"].partition("(")[0])(angle)


@pytest.mark.parametrize("position", [3, 10**6, -(2**40), 2**62])
def test_a_number_is_correctly_rounded_at_any_position(run, oracle, position):
    """An expression and the options give the same number, which is that of 90 digits."""
    options = ("explain", "--position", position, "--format", "json")
    told = json.loads(run(*options).out)["value"]
    assert told == json.loads(run(*options, "--encoding", "Sinusoidal(6)").out)["value"]
    truth = oracle.cos_sin(position, oracle.frequency(10_000.0, 2, 6))[1]
    assert told == oracle.nearest(truth, torch.float64)


def test_the_text_puts_the_numbers_in(run):
    out = run("explain", "--position", 3, "--dimension", 2, "--dim", 6).out
    assert "PE(p, 2i) = sin(p / n^(2i/d))" in out
    assert "10000^(1/3)" in out
    assert "3 / 21.5443469" in out
    assert "= 0.1387981011" in out


def test_what_is_not_there_is_one_line(refused):
    assert "dimension is 9; with dim 6 it must be one of 0 … 5" in refused(
        "explain", "--dimension", 9
    )
    assert "dim is 0" in refused("explain", "--dim", 0)
    assert "convention is 'x'" in refused("explain", "--convention", "x")


@pytest.mark.parametrize("command", ["table", "curves", "distance"])
def test_a_distance_has_one_number_however_many_are_asked_for(run, command):
    """FIRE's depends on the query's place, which was that of the farthest beside it."""
    bias = ["--encoding", "FIRE(2, threshold=4.0)"]
    start = ["--start", 0] if command == "curves" else []
    lines = [
        next(line for line in run(command, *bias, *start, "--length", length, "--format", "csv")
             .out.splitlines() if line.startswith("2,"))
        for length in (3, 20, 1500)
    ]  # fmt: skip
    words = ["explain", *bias, "--position", 2, "--dimension", 0, "--format", "json"]
    told = json.loads(run(*words).out)
    assert "the key at 0" in told["steps"][-1]["numbers"]
    shown = [float(line.split(",")[1]) for line in lines]
    assert shown == pytest.approx([told["value"]] * 3, rel=1e-5)


def test_an_equation_is_not_said_to_give_what_it_does_not(run):
    """XPos's ζ is positive, and no column of its table."""
    told = json.loads(
        run("explain", "--encoding", "XPos(Rotary(8))", "--position", 2, "--dimension", 0,
            "--format", "json").out
    )  # fmt: skip
    assert told["value"] < 0
    assert "ζ" not in told["steps"][-1]["formula"]


@pytest.mark.parametrize(
    "arguments",
    [
        "1",
        "3",
        "6",
        "8",
        "12",
        "6, slopes='geometric'",
        "4, alibi_bias_max=16",
        "5, alibi_bias_max=4.5",
    ],
)
def test_a_slope_of_alibi_is_the_power_that_is_told(run, arguments):
    """For heads that are no power of two, the authors' recipe takes those of the powers beside."""
    slopes = eval(f"ALiBi({arguments})", {"ALiBi": ALiBi}).slopes
    for head, slope in enumerate(slopes):
        words = ["--encoding", f"ALiBi({arguments})", "--dimension", head, "--format", "json"]
        told, _, of = json.loads(run("explain", *words).out)["steps"][0]["numbers"].partition(", ")
        most, nth, heads = map(float, re.fullmatch(r"2\^\(-(.+) · (.+) / (.+)\)", told).groups())
        assert 2 ** (-most * nth / heads) == slope
        assert of == ("" if heads == len(slopes) else f"as of {heads:g} heads")


@pytest.mark.parametrize(("head", "slope"), list(enumerate([0.3, 0.0, -0.5])))
def test_slopes_of_ones_own_are_told_as_given(run, head, slope):
    words = ["--encoding", "ALiBi(3, slopes=[0.3, 0.0, -0.5])", "--dimension", head]
    steps = json.loads(run("explain", *words, "--position", 3, "--format", "json").out)["steps"]
    assert steps[0]["numbers"] == f"slopes[{head}], as given"
    assert [step["value"] for step in steps] == [slope, pytest.approx(-3 * slope)]
