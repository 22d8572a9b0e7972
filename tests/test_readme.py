"""What README and the pages that it leads to promise: commands, parts, names, a true tree."""

import importlib
import inspect
import re
import runpy
from pathlib import Path

import pytest

import posenc

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ENCODINGS = (ROOT / "docs/encodings.md").read_text()


def typed(text: str) -> list[str]:
    """The lines of the blocks that go into a shell."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.S)
    return [line for block in blocks for line in block.splitlines()]


def test_exactly_two_commands_set_everything_up():
    commands = [line for line in typed(README) if "pip install" in line]
    assert len(commands) == 2
    assert all("-c constraints.txt" in command for command in commands)
    assert "posenc" in commands[0].split("&&")[-1]
    assert "pytest" in commands[1].split("&&")[-1]


PLACES = {
    "tokens": "posenc.encodings.tokens",
    "queries and keys": "posenc.encodings.queries_keys",
    "scores": "posenc.encodings.scores",
    "positions": "posenc.encodings.remapping",
    "graphs": "posenc.encodings.graphs",
    "frequencies": "posenc.frequencies",
}
PARTS = {"AxialForm", "Graph"}
"""What encodings are made of, or read."""


@pytest.mark.parametrize("place", PLACES)
def test_every_encoding_stands_in_the_row_of_its_place(place):
    """A method that somebody added is found by the name that its field uses."""
    row = re.search(rf"^\| {place} \| (.*) \|$", ENCODINGS, flags=re.M)
    assert row, place
    names = set(re.findall(r"`(\w+)(?:\(\))?`", row[1])) - {"Positional"}
    module = importlib.import_module(PLACES[place])
    everywhere = posenc if module is not posenc.frequencies else module
    public = {
        name: value
        for name, value in inspect.getmembers(everywhere, inspect.isclass)
        if value.__module__.startswith(module.__name__) and not inspect.isabstract(value)
    }
    assert public.keys() - PARTS - names == set()
    assert names - {n for n in dir(everywhere) if not n.startswith("_")} == set()


def test_what_fields_look_for_is_there_by_the_name_it_has_here():
    """The last cell of a row by field names what can be had: whole objects, methods, recipes."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]*) \|$", ENCODINGS.partition("## By the word")[2], re.M)
    spans = {span for row in rows for span in re.findall(r"`([^`]+)`", row)}
    assert len(spans) > 80
    for span in spans:
        of = posenc
        for name in re.match(r"[\w.]+", span)[0].split("."):
            assert hasattr(of, name), span
            of = getattr(of, name)


def test_every_command_is_in_the_table():
    from posenc.cli.main import COMMANDS

    table = (ROOT / "docs/command-line.md").read_text()
    rows = "\n".join(re.findall(r"^\| ([^|]*) \|", table, flags=re.M))
    assert set(COMMANDS) - set(re.findall(r"`(?:posenc )?(\w+)", rows)) == set()


def test_the_drawing_is_the_one_that_its_script_makes():
    found = runpy.run_path(str(ROOT / "docs/make_drawing.py"))
    assert found["DRAWING"].read_text() == found["drawing"]()
