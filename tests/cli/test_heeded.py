"""Every option changes what is printed."""

import pytest

COMMON = {"--dim": "6", "--base": "50", "--convention": "double_exponent", "--format": "csv"}

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
    "table of a bias": (["--encoding", "T5Bias(2)"], {"--seed": "3"}),
    "heatmap of a bias": (["--encoding", "ALiBi(4)"], {"--head": "1"}),
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
    given = [command.split()[0], *given]
    usual = run(*given).out
    for name, value in options.items():
        words = [name] if value is None else [name, value]
        assert run(*given, *words).out != usual, f"{name} is not heeded"
