"""The entry point, run in this process, with what it printed."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from posenc.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys) -> Callable[..., Ran]:
    """Runs ``posenc`` with the words that are given."""

    def run(*words: object) -> Ran:
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return Ran(status, printed.out, printed.err)

    return run


@pytest.fixture
def told(run) -> Callable[..., dict]:
    """What a command says as JSON."""

    def told(*words: object) -> dict:
        ran = run(*words, "--format", "json")
        assert (ran.status, ran.err) == (0, "")
        return json.loads(ran.out)

    return told


@pytest.fixture
def refused(run) -> Callable[..., str]:
    """Runs a command that must be refused: status 2, nothing printed, one line or tyro's box."""

    def refused(*words: object) -> str:
        ran = run(*words)
        assert (ran.status, ran.out) == (2, ""), ran
        if "For full helptext" not in ran.err:
            assert ran.err.startswith("posenc: ")
            assert ran.err.count("\n") == 1
        return " ".join(ran.err.replace("│", " ").split())

    return refused
