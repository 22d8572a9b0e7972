"""What is said while a grid runs: lines in a pipe, a live line on a terminal."""

import io

import pytest

from posenc.lab import planned
from posenc.lab.progress import Told
from posenc.lab.working import make


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_line_for_each_run_and_a_bar_on_a_terminal(tiny, store, monkeypatch, stream):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    plan = planned(tiny(), store)
    run = plan.runs[0]
    with Told(store, 1, stream) as told:
        told.changed(plan, 1)
        make(run.configuration, store)
        told.ended(run, "made")
        told.changed(plan, 0)
    text = stream.getvalue()
    assert f"{run.id} k_front · NoPE · seed 0: made in " in text
    if stream.isatty():
        assert "1 of 4 made, 0 running, 0 failed, 3 left" in text
    else:
        assert text.count("\n") == 1
        assert "\x1b" not in text
