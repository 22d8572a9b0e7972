"""``posenc heatmap`` and ``posenc curves``: in files, and in the terminal."""

import contextlib
import os
import pty
import re
import struct
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from posenc.cli.main import main


def pixels(png: Path) -> tuple[int, int]:
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    return width, height


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_files_are_of_their_kind_and_text_stays_text(run, tmp_path, command):
    files = {kind: tmp_path / f"a.{kind}" for kind in ("png", "svg", "pdf")}
    for file in files.values():
        ran = run(command, "--length", 20, "--dim", 8, "--output", file)
        assert (ran.status, ran.out) == (0, f"wrote {file}\n"), ran
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    svg = ElementTree.parse(files["svg"])
    words = [each.text for each in svg.iterfind(".//{http://www.w3.org/2000/svg}text")]
    assert "position (token)" in words
    assert not [word for word in words if word and "no unit" in word]
    pdf = files["pdf"].read_bytes()
    assert pdf.startswith(b"%PDF")
    assert b"/TrueType" in pdf or b"/CIDFontType2" in pdf  # letters, not drawn outlines
    assert b"/Type3" not in pdf


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_the_same_numbers_give_the_same_bytes(run, tmp_path, command):
    for kind in ("svg", "pdf"):
        for name in ("a", "b"):
            run(command, "--length", 5, "--dim", 4, "--output", tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_dpi_makes_more_pixels(run, refused, tmp_path, command):
    sizes = []
    for dpi in (100, 200):
        file = tmp_path / f"{dpi}.png"
        assert run(command, "--length", 20, "--dim", 8, "--output", file, "--dpi", dpi).status == 0
        sizes.append(pixels(file))
    assert sizes[1] == tuple(2 * size for size in sizes[0])
    assert "a .svg has none" in refused(command, "--output", tmp_path / "a.svg", "--dpi", 300)
    assert "--dpi is 5" in refused(command, "--output", tmp_path / "a.png", "--dpi", 5)


@pytest.mark.parametrize(("dim", "left"), [(12, 0), (14, 2), (112, 100), (106, 101), (2000, 1990)])
def test_numbers_of_columns_stand_above_their_own(run, dim, left):
    out = run("heatmap", "--dim", dim, "--first-dimension", left, "--length", 2).out.splitlines()
    axis, gutter = out[1], len(re.match(r"\d+ +", out[2])[0])
    found = list(re.finditer(r"\d+", axis))
    assert found
    for number in found:
        assert number.start() - gutter + left == int(number[0])


@pytest.mark.parametrize("left", [96, 97, 98, 99])
def test_no_number_of_a_column_stands_beyond_the_line(run, left):
    out = run("heatmap", "--dim", 300, "--first-dimension", left, "--length", 300).out
    axis, row = out.splitlines()[1:3]
    assert "200" in axis
    assert len(axis) <= 120  # of a line in a pipe
    assert len(row) > 115


@pytest.mark.parametrize("start", [0, 7, 100, 12_345_678_901])
@pytest.mark.parametrize(("length", "left"), [(5, 0), (12, 3), (40, 0), (40, 21)])
def test_keys_of_a_bias_are_numbered_as_its_queries(run, start, length, left):
    words = ("--start", start, "--first-dimension", left, "--length", length)
    out = run("heatmap", "--encoding", "ALiBi(1)", *words).out.splitlines()
    gutter = len(re.match(r" *\d+ +", out[2])[0])
    found = list(re.finditer(r"\d+", out[1]))
    assert found
    for number in found:
        assert number.start() - gutter + left + start == int(number[0])


def test_a_bias_that_is_cut_names_queries_and_keys(run):
    out = run("heatmap", "--encoding", "ALiBi(1)", "--start", 100, "--length", 300).out
    shown = len(out.splitlines()[2].split()[1])
    assert "queries 100 to 399 of 300" in out
    assert f"columns 0 to {shown - 1} of 300 (keys 100 to {100 + shown - 1})" in out


@pytest.mark.parametrize(("start", "length", "said"), [
    (0, 1, "0"), (0, 3, "0 2"), (1000, 3, "1000 to 1002"), (1000, 20, "1000            1019"),
])  # fmt: skip
def test_curves_name_their_ends(run, start, length, said):
    out = run("curves", "--start", start, "--length", length).out
    assert out.splitlines()[-2].removeprefix("position").strip() == said


def test_a_figure_of_too_many_positions_shows_means_and_says_so(run, tmp_path):
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    for file in (svg, png):
        assert run("heatmap", "--length", 20_000, "--dim", 4, "--output", file).status == 0
    assert "each pixel is the mean of 20 rows" in svg.read_text()
    assert 1000 < pixels(png)[1] < 1300
    few = tmp_path / "few.svg"
    run("heatmap", "--length", 100, "--dim", 4, "--output", few)
    assert "mean" not in few.read_text()


@pytest.mark.parametrize(
    ("command", "encoding", "said"),
    [
        ("heatmap", "ALiBi(4)", "query (position)"),
        ("heatmap", "Rotary(8)", "cos, sin of pair 0"),
        ("curves", "T5Bias(4)", "seeded random numbers, not learned"),
        ("curves", "ALiBi(4)", "distance query − key (positions)"),
        ("curves", "Rotary(8)", "wavelength 6.283"),
    ],
)
def test_figures_of_other_encodings_name_their_axes(run, tmp_path, command, encoding, said):
    file = tmp_path / "a.svg"
    assert run(command, "--encoding", encoding, "--length", 20, "--output", file).status == 0
    assert said in file.read_text()


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_a_pipe_gets_plain_characters(run, command):
    out = run(command, "--length", 12, "--dim", 6).out
    assert out.isascii()
    assert "\x1b" not in out
    assert len(out.splitlines()) > 6


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


def test_a_terminal_gets_colors_a_legend_and_what_fits(in_a_terminal):
    shown = in_a_terminal("heatmap", "--length", 500, "--dim", 512)
    assert "\x1b[38" in shown
    assert "▀" in shown
    assert "-1 " in shown
    assert "positions 0 to 65 of 500, columns 0 to" in " ".join(shown.split())
    pictured = [line for line in shown.splitlines() if "▀" in line]
    assert max(line.count("▀") for line in pictured) <= 80


def test_no_color_is_respected(in_a_terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    shown = in_a_terminal("heatmap", "--length", 30, "--dim", 64)
    assert "\x1b[38" not in shown
    assert "\x1b[48" not in shown


@pytest.mark.parametrize(
    "words",
    [("table", "--dim", 64), ("encode", "your cat is a lovely cat", "--dim", 64),
     ("curves",), ("distance",), ("binary",), ("shift", "--dim", 32), ("explain",),
     ("table", "--encoding", "Rotary(64)"), ("distance", "--encoding", "ALiBi(8)")],
    ids=lambda words: " ".join(map(str, words)),
)  # fmt: skip
def test_what_is_laid_out_fits_80_columns(in_a_terminal, words):
    shown = re.sub(r"\x1b\[[0-9;]*m", "", in_a_terminal(*words))
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", ["heatmap", "curves"])
def test_what_cannot_be_drawn_is_one_line(refused, tmp_path, command):
    assert "--length is 0" in refused(command, "--length", 0)
    assert "convention is 'x'" in refused(command, "--convention", "x")
    assert "dim is 0" in refused(command, "--dim", 0)
    assert "must end in one of .png, .svg, .pdf" in refused(
        command, "--output", tmp_path / "out.gif"
    )


def test_curves_of_a_learned_table_say_that_they_are_random(run, tmp_path):
    words = ("curves", "--encoding", "Learned(8, 4)", "--length", 4)
    assert "seeded random here" in run(*words).out
    run(*words, "--output", tmp_path / "learned.svg")
    assert "(seeded random, not learned)" in (tmp_path / "learned.svg").read_text()
    assert "random" not in run("curves", "--encoding", "Rotary(8)", "--length", 4).out
