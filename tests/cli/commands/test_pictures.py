"""``posenc heatmap`` and ``posenc curves``: in files, and in the terminal."""

import contextlib
import os
import pty
import re
import struct
import sys
import threading
from pathlib import Path

import pytest

from posenc.cli.main import main


def pixels(png: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    return width, height


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_files_are_of_their_kind_and_text_stays_text(run, tmp_path, command):
    for kind in ("png", "svg", "pdf"):
        for name in ("a", "b"):
            file = tmp_path / f"{name}.{kind}"
            ran = run(command, "--length", 20, "--dim", 8, "--output", file)
            assert (ran.status, ran.out) == (0, f"wrote {file}\n"), ran
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert "position (token)" in (tmp_path / "a.svg").read_text()
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/TrueType" in pdf or b"/CIDFontType2" in pdf  # letters, not drawn outlines
    larger = tmp_path / "large.png"
    run(command, "--length", 20, "--dim", 8, "--output", larger, "--dpi", 200)
    assert pixels(larger) == tuple(2 * size for size in pixels(tmp_path / "a.png"))


@pytest.mark.parametrize(("dim", "left"), [(12, 0), (112, 100), (2000, 1990)])
@pytest.mark.parametrize("encoding", [None, "ALiBi(1)"])
def test_numbers_of_columns_stand_above_their_own(run, dim, left, encoding):
    words, first = ["--dim", dim, "--length", 2], left
    if encoding is not None:  # columns are keys at the positions of queries
        words, first = ["--encoding", encoding, "--start", 70, "--length", dim], left + 70
    out = run("heatmap", *words, "--first-dimension", left).out.splitlines()
    axis, gutter = out[1], len(re.match(r" *\d+ +", out[2])[0])
    found = list(re.finditer(r"\d+", axis))
    assert found
    assert len(axis) <= 120  # of a line in a pipe
    for number in found:
        assert number.start() - gutter + first == int(number[0])


def test_a_figure_of_too_many_positions_shows_means_and_says_so(run, tmp_path):
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    for file in (svg, png):
        assert run("heatmap", "--length", 20_000, "--dim", 4, "--output", file).status == 0
    assert "mean of 20 rows" in svg.read_text()
    assert 1000 < pixels(png)[1] < 1300


@pytest.mark.parametrize(
    ("command", "encoding", "said"),
    [
        ("heatmap", "ALiBi(4)", "query (position)"),
        ("curves", "T5Bias(4)", "seeded random"),
        ("curves", "Rotary(8)", "wavelength 6.283"),
    ],
)
def test_figures_of_other_encodings_name_what_they_show(run, tmp_path, command, encoding, said):
    file = tmp_path / "a.svg"
    assert run(command, "--encoding", encoding, "--length", 20, "--output", file).status == 0
    assert said in file.read_text()


@pytest.fixture
def in_a_terminal(monkeypatch):
    """Shows a command on a terminal of 80 columns and 40 lines, and gives what it wrote there."""
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)

    def shown(*words: object) -> str:
        mine, theirs = pty.openpty()
        written: list[bytes] = []

        def read() -> None:
            with contextlib.suppress(OSError):  # the other end has closed
                while part := os.read(mine, 65536):
                    written.append(part)

        reader = threading.Thread(target=read)
        reader.start()
        with os.fdopen(theirs, "w", encoding="utf-8") as screen:
            monkeypatch.setattr(sys, "stdout", screen)
            status = main([str(word) for word in words])
        reader.join(60)
        os.close(mine)
        assert status == 0
        return b"".join(written).decode()

    return shown


def test_a_terminal_gets_colors_a_legend_and_what_fits(in_a_terminal, monkeypatch):
    words = ("heatmap", "--length", 500, "--dim", 512)
    shown = in_a_terminal(*words)
    assert "\x1b[38" in shown
    assert "rows 0 to 65 of 500, columns 0 to" in " ".join(shown.split())
    assert max(line.count("▀") for line in shown.splitlines()) <= 80
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[[34]8", in_a_terminal(*words))


@pytest.mark.parametrize(
    "line",
    [
        *("table --dim 64", "encode one~two~three --dim 64", "curves", "distance", "binary"),
        *("shift --dim 32", "explain", "table --encoding Rotary(64)", "compare --length 20"),
        *("distance --encoding ALiBi(8)", "walk one~two --dim 64"),
    ],
)
def test_what_is_laid_out_fits_80_columns(in_a_terminal, line):
    words = [word.replace("~", " ") for word in line.split()]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", in_a_terminal(*words))
    assert max(map(len, shown.splitlines())) <= 80
