"""``posenc check``: its exit status, its formats, its figure, and what it refuses."""

import json
import os

import pytest

from posenc.cli.main import main

MODULE = """
import torch

def half(x):
    "Adds to the batch axis of [batch, seq, dim]."
    return x + torch.arange(x.shape[0]).view(-1, 1, 1).to(x.dtype)

def plain(x):
    from posenc import Sinusoidal
    return Sinusoidal(x.shape[-1], arithmetic="float32")(x)

def coarse(x):
    from posenc import Sinusoidal
    return x + Sinusoidal(x.shape[-1])(0 * x).bfloat16().to(x.dtype)

def loud(x):
    import ctypes, os, subprocess, sys
    os.write(1, b"descriptor\\n")
    ctypes.CDLL(None).puts(b"puts")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return plain(x)

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(MODULE)
    return path


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("half --layout bsd", 1, "WRONG batch-axis-encoded"),
        ("plain", 0, "Nothing wrong was found"),
        ("coarse", 0, "LOSSY"),
        ("coarse --strict", 1, "LOSSY table-in-16-bits"),
        ("coarse --strict --ignore table-in-16-bits", 0, "Nothing wrong"),
    ],
)
def test_the_status_says_whether_something_is_wrong(run, file, words, status, said):
    ran = run("check", *f"{file}:{words}".split())
    assert (ran.status, ran.err) == (status, "")
    assert said in ran.out
    assert max(len(line) for line in ran.out.splitlines() if ">>>" not in line) <= 98


def test_json_and_sarif_are_for_machines(run, file):
    given = ["check", f"{file}:half", "--layout", "bsd", "--format"]
    report = json.loads(run(*given, "json").out)
    assert (report["ok"], report["kind"]) == (False, "added")
    assert {
        "name", "severity", "said", "number", "expected", "remedy", "reproduction",
    } == set(report["faults"][0])  # fmt: skip
    result = json.loads(run(*given, "sarif").out)["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("batch-axis-encoded", "error")
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == str(file)


def test_the_figure_shows_the_error_where_one_was_measured(run, file, tmp_path):
    picture = tmp_path / "error.svg"
    ran = run("check", f"{file}:half", "--layout", "bsd", "--figure", picture)
    assert ran.status == 1
    assert "is not drawn" in ran.err
    assert not picture.exists()
    assert run("check", f"{file}:plain", "--figure", picture).status == 0
    assert "largest error" in picture.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["theirs"], "names nothing"),
        (["theirs.py:absent"], "could not be imported"),
        (["theirs.py:plain", "--ignore", "cast_breaks_it"], "did you mean cast-breaks-it"),
        (["theirs.py:plain", "--format", "junit"], "junit"),
    ],
)
def test_what_cannot_be_checked_is_refused(refused, file, monkeypatch, words, said):
    monkeypatch.chdir(file.parent)
    assert said in refused("check", *words)


def test_what_others_print_does_not_stand_in_the_document(capfd, file):
    """The descriptor is what it was afterwards."""
    options = ("--only", "encodes-the-sequence", "--as", "added", "--layout", "bsd", "--dim", "16")
    assert main(["check", f"{file}:loud", "--format", "json", *options]) == 0
    os.write(1, b"\nafterwards")
    printed = capfd.readouterr()
    document, _, rest = printed.out.rpartition("\n")
    assert rest == "afterwards"
    json.loads(document)
    assert all(f"{each}\n" in printed.err for each in ("descriptor", "puts", "child"))
