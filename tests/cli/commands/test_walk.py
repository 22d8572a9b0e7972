"""``posenc walk``: the shapes and the sums of every stage, and what order does."""

import pytest
import torch


@pytest.fixture
def walked(told):
    """What JSON says of a walk."""

    def walked(*words, text="your cat is a lovely cat"):
        return told("walk", text, *words)

    return walked


@pytest.mark.parametrize(
    ("words", "apart"),
    [
        ([], True),
        (["--encoding", "Rotary(8)"], True),
        (["--encoding", "ALiBi(2)"], False),  # reversed, the distances are the same
        (["--encoding", "Positional()"], False),
    ],
)
def test_order_matters_with_an_encoding_and_not_without(walked, words, apart):
    order = walked(*words)["order"]
    assert order["sentences"] == ["lion kills tiger", "tiger kills lion"]
    assert order["without an encoding"]["output_difference"] < 1e-12
    assert (order["with the encoding"]["output_difference"] > 1e-3) is apart


@pytest.mark.parametrize(
    ("encoding", "equation", "factors"),
    [
        ("Sinusoidal(16)", "X = E + PE", [1.0]),
        ('Sinusoidal(16, scale="sqrt_dim")', "X = 4 · E + PE", [4.0]),
        ("Convolutional(16)", "X = E + PE", [1.0]),
        (
            "Positional(tokens=[Learned(16, 8), Sinusoidal(16, scale=0.5)])",
            "X = 0.5 · (E + PE₁) + PE₂",
            [1.0, 0.5],
        ),
    ],
)
def test_the_shown_sum_is_what_its_equation_says(walked, encoding, equation, factors):
    found = walked("--encoding", encoding)["stages"]
    added = [torch.tensor(each["values"]) for each in found if each["name"] == "encoding"]
    (total,) = (each for each in found if each["name"] == "sum")
    x = torch.tensor(found[0]["values"])
    for factor, table in zip(factors, added, strict=True):
        x = factor * x + table
    torch.testing.assert_close(torch.tensor(total["values"]), x)
    assert total["equation"] == equation


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("encoding", ["Sinusoidal(4)", "Rotary(2)"])
def test_equations_name_what_they_are_computed_from(walked, norm, encoding):
    words = ("--dim", 4, "--norm", norm, "--encoding", encoding)
    stages = walked(*words, text="a b c d e f g h i j")["stages"]
    held: dict[str, torch.Tensor] = {}
    linear = {}
    for stage in stages:  # each symbol stands for the last stage that was given this name
        values = torch.tensor(stage["values"], dtype=torch.float64)
        symbol, _, told = stage["equation"].rpartition(" = ")
        if symbol in ("Q", "K", "V"):
            linear[symbol] = held[told[0]], torch.cat(list(values), -1)
        if stage["name"] == "feed-forward: inner":
            linear["inner"] = held[told[0]], values
        if stage["name"] == "residual":
            torch.testing.assert_close(values, held[told[0]] + held[told.partition(" + ")[2]])
        held[symbol or stage["name"]] = values
    assert set(linear) == {"Q", "K", "V", "inner"}
    for source, mapped in linear.values():  # ten tokens of four numbers, by one map and one shift
        known = torch.cat([source, torch.ones(10, 1, dtype=torch.float64)], -1)
        found = torch.linalg.pinv(known, rtol=1e-9) @ mapped
        torch.testing.assert_close(known @ found, mapped)


def test_a_stage_is_shown_by_number_or_by_name(walked):
    stages = walked()["stages"]
    for asked in ("14", "softmax", "residual"):
        names = [(str(each["number"]), each["name"]) for each in stages]
        wanted = [each for each, name in zip(stages, names, strict=True) if asked in name]
        assert walked("--stage", asked)["stages"] == wanted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "no text"),
        (["hi", "--encoding", "Rotary(16)"], "head_dim 8"),
        (["hi", "--encoding", "PoSE(64)"], "encodes nothing by itself"),
        (["hi", "--stage", "sofmax"], "did you mean 'softmax'?"),
    ],
)
def test_what_cannot_be_walked_is_one_line(refused, words, said):
    assert said in refused("walk", *words)
