"""What is said while a grid runs: lines in a pipe, a live line on a terminal."""

import io

from posenc.lab import planned
from posenc.lab.progress import Told, duration
from posenc.lab.working import machine, make


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(grid, store, stream) -> str:
    plan = planned(grid, store)
    with Told(store, machine()["host"], 1, stream) as told:
        told.changed(plan, 1)
        make(plan.runs[0].configuration, store)
        told.ended(plan.runs[0], "made")
        told.changed(plan, 0)
    return stream.getvalue()


def test_a_pipe_holds_a_line_for_each_run(tiny, store):
    text = said(tiny(), store, io.StringIO())
    run = planned(tiny(), store).runs[0]
    assert text.startswith(f"{run.id} k_front · NoPE · seed 0: made in ")
    assert text.count("\n") == 1
    assert "\x1b" not in text


def test_a_terminal_shows_what_is_made_and_left(tiny, store, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = said(tiny(), store, Terminal())
    assert "1 of 4 runs" in text
    assert "0 running · 0 failed · 3 left" in text
    assert "steps a second · about" in text


def test_times_are_said_as_people_say_them():
    assert [duration(s) for s in (0.4, 59, 90, 3600, 7260)] == [
        "0 s", "59 s", "2 min", "1 h 0 min", "2 h 1 min"
    ]  # fmt: skip
