"""``posenc heatmap`` and ``posenc curves``: in files, and in the terminal."""

import os
import pty
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "posenc.cli.command_line"]


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_files_are_of_their_kind(run, tmp_path, command):
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    for file in (png, svg):
        ran = run(command, "--length", 20, "--dim", 8, "--output", file)
        assert ran.status == 0, ran
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text()
    assert "position (token)" in text


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_a_pipe_gets_plain_characters(run, command):
    out = run(command, "--length", 12, "--dim", 6).out
    assert out.isascii()
    assert "\x1b" not in out
    assert len(out.splitlines()) > 6


def in_a_terminal(*words: str, **environment: str) -> str:
    """What a command shows on a terminal of 80 columns."""
    mine, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
    settings.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=theirs, stderr=theirs, env=settings | environment
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:  # the other end has closed
            break
        if not part:
            break
        shown += part
    os.close(mine)
    assert process.wait(60) == 0
    return shown.decode()


def test_a_terminal_gets_colors_and_a_legend():
    shown = in_a_terminal("heatmap", "--length", "30", "--dim", "64")
    assert "\x1b[" in shown
    assert "▀" in shown or "▄" in shown
    assert "-1" in shown


def test_no_color_is_respected():
    shown = in_a_terminal("heatmap", "--length", "30", "--dim", "64", NO_COLOR="1")
    assert "\x1b[38" not in shown
    assert "\x1b[48" not in shown


def test_the_terminal_says_what_does_not_fit():
    shown = in_a_terminal("heatmap", "--length", "500", "--dim", "512")
    assert "512" in shown


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_what_cannot_be_drawn_is_one_line(refused, tmp_path, command):
    assert "--length is 0" in refused(command, "--length", 0)
    assert "convention is 'x'" in refused(command, "--convention", "x")
    assert "dim is 0" in refused(command, "--dim", 0)
    assert "out.gif" in refused(command, "--output", tmp_path / "out.gif")
