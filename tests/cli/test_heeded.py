"""Every option changes what is printed, or is refused where it would change nothing."""

import json

import numpy as np
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


def test_a_seed_is_refused_beside_vectors_of_ones_own(refused, tmp_path):
    vectors = tmp_path / "vectors.npy"
    np.save(vectors, np.zeros((20, 4), np.float32))
    assert "--seed draws vectors" in refused("encode", "a", "--embeddings", vectors, "--seed", 3)


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


@pytest.mark.parametrize("command", ["curves", "heatmap"])
@pytest.mark.parametrize("option", [("--theme", "dark"), ("--dpi", "50")])
def test_what_only_a_figure_has_is_refused_without_one(refused, command, option):
    for printed in ([], ["--format", "csv"]):
        said = refused(command, "--length", 3, "--dim", 4, *option, *printed)
        assert f"{option[0]} is of a figure, and none is drawn" in said


def test_a_resolution_without_a_figure_is_refused_by_check(refused):
    said = refused("check", "posenc:NoPE", "--dpi", 50)
    assert "--dpi is of a figure, and none is drawn" in said


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--length", 50), "--length is of rotary encodings along a sequence, and"),
        (("--dtype", "float16"), "--dtype is of rotary encodings along a sequence, and"),
    ],
)
def test_inspect_refuses_what_only_rotary_encodings_read(refused, tmp_path, option, said):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    assert said in refused("inspect", tmp_path, *option)


def test_inspect_refuses_a_dtype_without_a_length_to_lose_it_at(run, refused, tmp_path):
    config = {"model_type": "ours", "rope_theta": 1e4, "hidden_size": 16, "num_attention_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    given = ["inspect", tmp_path, "--dtype", "float16"]
    assert "gives none; give --length" in refused(*given)
    assert "in float16" in run(*given, "--length", 5000).out


def test_a_page_that_is_written_has_no_port(refused, tmp_path):
    page = tmp_path / "page.html"
    for words in (["--port", 8000], ["--no-browser"]):
        assert f"{words[0]} says nothing to --output" in refused("explore", "-o", page, *words)
    assert not page.exists()
