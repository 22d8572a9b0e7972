"""Every public class through the command line: a picture, or one line that says why not."""

import importlib
from pathlib import Path

import pytest
import torch
from tests.encodings.test_arguments import CLASSES

from posenc import (
    CAPE,
    Graph,
    LaplacianEncoding,
    Positional,
    QueryKeyEncoding,
    RandomWalkEncoding,
    ScoreBias,
    ScoreEncoding,
    SelfExtend,
    TokenEncoding,
    frequencies,
)
from posenc.cli.encodings import name_of
from posenc.cli.rows import rows_of
from posenc.encodings.expression import encoding_from
from posenc.testing import Case

COMMANDS = {
    "table": ("--length", 4),
    "heatmap": ("--length", 6),
    "curves": ("--length", 6),
    "distance": ("--length", 4),
    "shift": ("--offset", 2, "--length", 5),
    "explain": ("--position", 1, "--dimension", 0),
}
CASES = {
    f"{file.stem.removeprefix('test_')}-{name}": case
    for file in sorted((Path(__file__).parents[1] / "contracts").glob("test_*.py"))
    for name, case in importlib.import_module(f"tests.contracts.{file.stem}").CASES.items()
    if case.build in CLASSES
}
GRAPHS = {
    Graph: {"edge_index": torch.zeros(2, 1, dtype=torch.int64)},
    LaplacianEncoding: {"k": 2},
    RandomWalkEncoding: {"walk_length": 2},
}
OTHERS = {Positional: {}, CAPE: {}, SelfExtend: {}, frequencies.Geometric: {"dim": 8}, **GRAPHS}


def written(build, arguments) -> str:
    """A call as one would type it."""
    return f"{build.__name__}({', '.join(f'{k}={typed(v)}' for k, v in arguments.items())})"


def typed(value) -> str:
    if isinstance(value, torch.nn.Module):
        return name_of(value)
    return repr(value.tolist() if isinstance(value, torch.Tensor) else value)


def reason(case: Case) -> str:
    """Why an encoding has no rows along a line; empty where it has."""
    encoding = case.module()
    if isinstance(encoding, TokenEncoding) and not encoding.is_pointwise:
        return "makes its numbers of the embeddings around a token"
    if isinstance(encoding, ScoreEncoding) and not isinstance(encoding, ScoreBias):
        return "changes scores by their own content or size"
    return "" if case.lift is None else "cannot be shown along one line: "


@pytest.mark.slow("every encoding by every command", spares=3)
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", CASES)
def test_an_encoding_is_shown_or_its_reason_told(name, command, run, refused):
    case = CASES[name]
    words = (command, *COMMANDS[command], "--encoding", written(case.build, case.arguments))
    why = reason(case)
    if not why and (name, command) == ("methods-pope", "shift"):
        why = "changes keys by more than a linear map"
    if why:
        assert why in refused(*words)
        return
    ran = run(*words)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.strip()
    assert "nan" not in ran.out


@pytest.mark.parametrize("build", sorted(OTHERS, key=lambda each: each.__name__))
def test_what_is_no_encoding_says_what_it_is(build, refused):
    if build.__module__.startswith(frequencies.__name__):
        why = "is no encoding by itself"
    elif build in GRAPHS:
        why = "is no encoding"
    else:
        why = "no table of its own|is no encoding by itself"
    text = written(build, OTHERS[build])
    for command, options in COMMANDS.items():
        told = refused(command, *options, "--encoding", text)
        assert any(part in told for part in why.split("|")), told


def test_binary_compares_sines_alone(refused):
    assert "'--encoding' is no option of posenc binary" in refused("binary", "--encoding", "A(1)")


def test_columns_of_heads_are_those_of_the_table():
    encoding = encoding_from("FoPE(8, heads=2, trained_length=100)")
    rows, positions = rows_of(encoding), torch.arange(3)
    table, shown = encoding.table(positions), rows.at(positions, torch.float32)
    for head in range(2):
        for pair in range(4):
            for kind, word in enumerate(("cos", "sin")):
                column = rows.keys.index(f"head_{head}_{word}_{pair}")
                assert rows.columns[column] == f"head {head} {pair} {word}"
                assert torch.equal(shown[:, column], table[:, kind, head, pair])


def test_numbers_that_are_no_cosines_are_not_called_so():
    """GRAPE's table is sin t / s and (1 - cos t) / s², both 0 at the first position."""
    rows = rows_of(encoding_from("GRAPE(8, heads=2)"))
    assert rows.columns == ["0", "1", "2", "3"]


@pytest.mark.parametrize("layout", ["", ", heads_first=False"])
def test_scores_and_maps_are_those_of_each_head(layout, run):
    text = f"GRAPE(8, heads=2{layout})"
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        encoding = encoding_from(text)
    assert isinstance(encoding, QueryKeyEncoding)
    lines = run("distance", "--length", 3, "--encoding", text, "--format", "csv").out.split()
    assert lines[0] == "distance,head_0,head_1"
    last = encoding.table(torch.tensor([2]), dtype=torch.float64)
    first = encoding.table(torch.tensor([0]), dtype=torch.float64)
    one = torch.full((2, 1, 8) if encoding.heads_first else (1, 2, 8), 8**-0.5, dtype=torch.float64)
    with torch.no_grad():
        both = encoding.encode_queries(one, last), encoding.encode_keys(one, first)
    score = (both[0] * both[1]).sum(-1).flatten().tolist()
    assert [float(each) for each in lines[3].split(",")[1:]] == pytest.approx(score, abs=1e-12)
    shifted = run("shift", "--offset", 1, "--length", 3, "--encoding", text).out
    assert "This is head 0 of 2; each has a map of its own." in shifted
