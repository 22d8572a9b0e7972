"""Every option changes what is printed, or is refused where it would change nothing."""

import pytest

COMMON = {"--dim": "6", "--base": "50", "--convention": "double_exponent", "--format": "csv"}
SEEDED = ["--encoding", "Learned(4, 300, std=1.0)"]

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
OF_ONE_KIND = {
    "curves": {"--dimensions": "1"},
    "heatmap": {"--head": "1"},
    "table": {"--start": "3"},
}
"""Options beside other encodings, where they are refused if they mean nothing."""


def words(options: dict[str, str | None]) -> list[str]:
    return [word for name, value in options.items() for word in (name, value) if word is not None]


@pytest.mark.parametrize("command", USUAL)
def test_every_option_is_heeded(run, command):
    given, options = USUAL[command]
    usual = run(command, *given).out
    for name, value in options.items():
        assert run(command, *given, *words({name: value})).out != usual, f"{name} is not heeded"


@pytest.mark.parametrize("command", ["curves", "distance", "explain", "heatmap", "shift", "table"])
def test_a_seed_is_heeded_where_numbers_are_drawn(run, command):
    given = [command, *SEEDED, "--format", "json"]
    assert run(*given, "--seed", 3).out != run(*given).out


@pytest.mark.parametrize("command", ["curves", "distance", "explain", "heatmap", "shift", "table"])
def test_a_seed_is_refused_where_nothing_is_drawn(refused, command):
    assert "--seed says nothing to Sinusoidal" in refused(command, "--seed", 3)
    given = ["--encoding", "Sinusoidal(4)" if command == "explain" else "Rotary(8)"]
    assert "of which nothing is random; leave it out" in refused(command, *given, "--seed", 3)


@pytest.mark.parametrize("command", ["curves", "distance", "explain", "heatmap", "table"])
@pytest.mark.parametrize("encoding", ["PoPE(8, 2)", "T5Bias(4, std=0.0)"])
def test_what_begins_with_the_same_numbers_is_not_called_random(run, refused, command, encoding):
    """As the phases of PoPE, which are zeros until they are learned."""
    given = [command, "--encoding", encoding]
    assert "of which nothing is random; leave it out" in refused(*given, "--seed", 3)
    for form in ("text", "json"):
        made = run(*given, "--format", form)
        assert made.status == 0
        assert "random" not in made.out
    if command in ("distance", "explain", "table"):
        assert "is not trained here" in " ".join(run(*given).out.split())


@pytest.mark.parametrize("command", ["curves", "distance", "explain", "heatmap", "shift", "table"])
@pytest.mark.parametrize("name", ["--dim", "--base", "--convention"])
def test_what_an_encoding_says_itself_is_refused_beside_it(refused, command, name):
    assert name in refused(command, *SEEDED, *words({name: COMMON[name]}))


@pytest.mark.parametrize("command", OF_ONE_KIND)
@pytest.mark.parametrize("encoding", ["Rotary(8)", "ALiBi(4)", "Learned(4, 300, std=1.0)"])
def test_what_is_of_one_kind_is_heeded_or_refused(run, refused, command, encoding):
    given = [command, "--encoding", encoding]
    for name, value in OF_ONE_KIND[command].items():
        made = run(*given, name, value)
        if made.status == 0:
            assert made.out != run(*given).out, f"{name} is not heeded"
        else:
            assert name in refused(*given, name, value)


def test_a_page_that_is_written_has_no_port(refused, tmp_path):
    page = tmp_path / "page.html"
    for words in (["--port", 8000], ["--no-browser"]):
        assert "--no-browser say nothing to --output" in refused("explore", "-o", page, *words)
    assert not page.exists()
