"""Every option changes what is printed, or is refused where it would change nothing."""

import pytest

COMMON = {"--dim": "6", "--base": "50", "--convention": "double_exponent", "--format": "csv"}
SEEDED = ["--encoding", "Learned(4, 300, std=1.0)"]
SHOWING = ["curves", "distance", "explain", "heatmap", "shift", "table"]

USUAL = {
    "binary": ([], {"--length": "5", "--dim": "4", "--base": "3", "--format": "csv"}),
    "compare": ([], {"--length": "30", "--dim": "8", "--base": "50", "--format": "csv"}),
    "curves": ([], COMMON | {"--length": "7", "--start": "3", "--dimensions": "1"}),
    "distance": ([], COMMON | {"--length": "7"}),
    "encode": (
        ["The cat sat on the mat"],
        {
            **{"--dim": "8", "--base": "50", "--convention": "concatenated", "--scale": None},
            **{"--vocabulary-size": "2", "--lowercase": None, "--seed": "3", "--format": "csv"},
        },
    ),
    "explain": ([], COMMON | {"--dim": "8", "--position": "5", "--dimension": "1"}),
    "heatmap": ([], COMMON | {"--length": "7", "--start": "3", "--first-dimension": "2"}),
    "shift": ([], COMMON | {"--offset": "3", "--length": "17"}),
    "table": ([], COMMON | {"--length": "5", "--start": "3", "--dtype": "bfloat16"}),
    "walk": (
        ["your cat"],
        {
            **{"--dim": "8", "--heads": "4", "--depth": "2", "--inner": "5", "--norm": "post"},
            **{"--causal": None, "--stage": "softmax", "--base": "50", "--seed": "3"},
            **{"--convention": "concatenated", "--format": "json"},
        },
    ),
}


@pytest.mark.parametrize("command", USUAL)
def test_every_option_is_heeded(run, command):
    given, options = USUAL[command]
    usual = run(command, *given).out
    for name, value in options.items():
        words = [name] if value is None else [name, value]
        assert run(command, *given, *words).out != usual, f"{name} is not heeded"


@pytest.mark.parametrize("command", SHOWING)
def test_a_seed_is_heeded_where_something_is_learned(run, refused, command):
    given = [command, *SEEDED, "--format", "json"]
    assert run(*given, "--seed", 3).out != run(*given).out
    assert "learns nothing" in refused(command, "--seed", 3)
    assert "learns nothing" in refused(command, "--encoding", "Rotary(8)", "--seed", 3)


@pytest.mark.parametrize("name", ["--dim", "--base", "--convention"])
def test_what_an_encoding_says_itself_is_refused_beside_it(refused, name):
    assert name in refused("table", *SEEDED, name, COMMON[name])


@pytest.mark.parametrize("encoding", ["Rotary(8)", "ALiBi(4)"])
def test_a_head_is_of_a_bias(run, refused, encoding):
    given = ["heatmap", "--encoding", encoding, "--head", 1]
    if encoding.startswith("ALiBi"):
        assert run(*given).out != run(*given[:3]).out
    else:
        assert "--head says nothing" in refused(*given)
