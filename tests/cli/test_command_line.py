"""Finding the command, help, mistakes, pipes and the end of a process."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from posenc.cli.command_line import COMMANDS, module_of

COMMAND = [sys.executable, "-m", "posenc.cli.command_line"]
HEAVY = {"torch", "numpy", "matplotlib", "rich", "tokenizers", "safetensors", "transformers"}


def test_help_names_every_command(run):
    for words in ((), ("--help",), ("help",)):
        ran = run(*words)
        assert ran.status == 0
        for command in COMMANDS:
            assert f"  {command}" in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(run, command):
    ran = run(command, "--help")
    assert ran.status == 0
    assert f"usage: posenc {command}" in ran.out
    assert ran.err == ""


def test_version_is_that_of_the_package(run):
    from importlib.metadata import version

    assert run("--version").out == f"posenc {version('posenc')}\n"


SHARED = [f"posenc.cli.{name}" for name in ("command_line", "errors", "options")]


@pytest.mark.parametrize("name", [*SHARED, *map(module_of, COMMANDS)])
def test_arguments_are_read_without_heavy_imports(name):
    """What is imported before a command runs is what help has to wait for."""
    module = import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text())
    imported = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module).split(".")[0])
            if str(node.module).startswith("posenc"):
                assert node.module in ("posenc.cli.errors", "posenc.cli.options")
    assert not imported & HEAVY


def test_an_unknown_command_names_the_known_ones(refused):
    assert "'walkk' is no command; expected one of encode, table" in refused("walkk")


def test_an_unknown_option_is_one_line_with_the_way_to_help(refused):
    said = refused("table", "--lenght", "4")
    assert "--lenght" in said
    assert "posenc table --help" in said


def test_a_word_for_a_number_is_one_line(refused):
    assert "'four'" in refused("table", "--length", "four")


def test_the_conventions_in_the_help_are_those_of_the_library(run):
    from posenc.encodings.tokens.conventions import CONVENTIONS

    said = " ".join(run("table", "--help").out.replace("│", " ").split())
    for name in CONVENTIONS:
        assert name in said


def test_a_reader_who_leaves_hears_no_complaint():
    table = subprocess.Popen(
        [*COMMAND, "table", "--length", "100000", "--dim", "16", "--format", "csv"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert table.stdout is not None
    assert table.stdout.readline().startswith(b"position,dim_0")
    table.stdout.close()
    assert table.stderr is not None
    assert table.stderr.read() == b""
    assert table.wait(60) == 141


def test_info_names_versions_and_what_is_compiled(run):
    import json

    import torch

    ran = run("info")
    assert torch.__version__.split("+")[0] in ran.out
    assert "native C: built for" in ran.out or "pure torch: " in ran.out
    facts = json.loads(run("info", "--format", "json").out)
    assert facts["optional"]["matplotlib"]
