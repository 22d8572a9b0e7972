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

def fine():
    from posenc import Sinusoidal
    return Sinusoidal(16)

def plain(x):
    from posenc import Sinusoidal
    return Sinusoidal(x.shape[-1], arithmetic="float32")(x)

def coarse(x):
    from posenc import Sinusoidal
    return x + Sinusoidal(x.shape[-1])(0 * x).bfloat16().to(x.dtype)

def odd(position_table, q):
    return q * position_table

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(MODULE)
    return path


def test_faults_give_status_1_and_none_give_0(run, file):
    wrong = run("check", f"{file}:half", "--layout", "bsd")
    assert wrong.status == 1
    assert "WRONG batch-axis-encoded" in wrong.out
    shown = [line for line in wrong.out.splitlines() if ">>>" not in line]
    assert max(map(len, shown)) <= 98
    right = run("check", f"{file}:plain")
    assert (right.status, right.err) == (0, "")
    assert "convention paper" in right.out
    assert "Nothing wrong was found" in right.out


def test_what_is_lossy_counts_if_strict(run, file):
    assert run("check", f"{file}:coarse").status == 0
    assert run("check", f"{file}:coarse", "--strict").status == 1
    ignoring = run("check", f"{file}:coarse", "--strict", "--ignore", "table-in-16-bits")
    assert ignoring.status == 0
    assert "LOSSY" not in ignoring.out
    assert "found and ignored: table-in-16-bits" in " ".join(ignoring.out.split())


def test_nothing_essential_gives_status_2(run, file):
    ran = run("check", f"{file}:plain", "--only", "padding-moves-nothing")
    assert ran.status == 2
    assert "Nothing was learned" in ran.out


def test_json_is_for_machines(run, file):
    ran = run("check", f"{file}:half", "--format", "json", "--layout", "bsd")
    report = json.loads(ran.out)
    assert report["ok"] is False
    assert report["kind"] == "added"
    assert {
        "name", "severity", "said", "number", "expected", "remedy", "reproduction",
    } == set(report["faults"][0])  # fmt: skip
    assert all(each["why"] for each in report["not_asked"])
    assert all(each["measured"] for each in report["passed"])


def test_junit_is_left_to_pytest(refused, file):
    assert "junit is gone" in refused("check", f"{file}:plain", "--format", "junit")


def test_sarif_names_the_file(run, file):
    ran = run("check", f"{file}:half", "--format", "sarif", "--layout", "bsd")
    result = json.loads(ran.out)["runs"][0]["results"][0]
    assert (result["ruleId"], result["level"]) == ("batch-axis-encoded", "error")
    location = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location["uri"] == str(file)


def test_the_figure_shows_the_error(run, file, tmp_path):
    picture = tmp_path / "error.svg"
    assert run("check", f"{file}:plain", "--figure", picture).status == 0
    assert "largest error" in picture.read_text()


def test_a_verdict_counts_where_nothing_can_be_drawn(run, file, tmp_path):
    picture = tmp_path / "error.svg"
    ran = run("check", f"{file}:half", "--layout", "bsd", "--figure", picture)
    assert ran.status == 1
    assert "WRONG batch-axis-encoded" in ran.out
    assert "is not drawn: no error over the position was measured" in ran.err
    assert not picture.exists()


def test_a_configuration_is_built_and_asked(run, tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 128, "num_attention_heads": 2,
        "num_hidden_layers": 1, "rope_theta": 500000.0, "vocab_size": 8, "intermediate_size": 8,
    }  # fmt: skip
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    ran = run("check", f"model:{path}")
    assert ran.status == 0, ran
    assert "half pairing, base 500,000" in " ".join(ran.out.split())
    assert run("check", f"model:{path}", "--strict").status == 1  # a cast breaks it


def test_the_forms_that_are_known_are_listed_line_by_line(run, file):
    ran = run("check", f"{file}:number")
    first, *listed = ran.err.splitlines()
    assert ran.status == 2
    assert first.startswith("posenc: could not check ")
    assert first.endswith("it fits no form that is known here. Accepted are")
    kinds = [
        line.split(":")[0].strip() for line in listed if line.startswith("  ") and ": " in line
    ]
    assert kinds == ["added", "rotary", "bias"]
    assert listed[-1].startswith('call="subject(')


def test_what_cannot_be_checked_is_refused(refused, file, tmp_path):
    assert "names nothing to check" in refused("check", "theirs")
    assert "is no file" in refused("check", f"{tmp_path}/none.py:x")
    assert "is no file" in refused("check", f"model:{tmp_path}/none.json")
    assert "has no absent" in refused("check", f"{file}:absent")
    assert "--arguments is no JSON" in refused("check", f"{file}:half", "--arguments", "{")
    assert "must end in .png or .svg or .pdf" in refused(
        "check", f"{file}:plain", "--figure", "a.gif"
    )
    assert "could not be imported" in refused("check", "no_such_module_here:x")
    assert "'clamp' is no fault" in refused("check", f"{file}:plain", "--ignore", "clamp")
    assert "did you mean cast-breaks-it" in refused(
        "check", f"{file}:plain", "--ignore", "cast_breaks_it"
    )
    assert "'x' is no question" in refused("check", f"{file}:plain", "--only", "x")
    assert "uses w; it may use" in refused("check", f"{file}:plain", "--call", "subject(w)")


def test_what_c_code_prints_does_not_stand_in_the_document(capfd, file):
    """Nor what a child process does; the descriptor is what it was afterwards."""
    prints = """
import ctypes, os, subprocess, sys

def loud(x):
    os.write(1, b"descriptor\\n")
    if hasattr(os, "fork"):
        ctypes.CDLL(None).puts(b"puts")
    subprocess.run([sys.executable, "-c", "print('child')"], check=True)
    return plain(x)
"""
    file.write_text(f"{MODULE}\n{prints}")
    options = ("--only", "encodes-the-sequence", "--as", "added", "--layout", "bsd", "--dim", "16")
    assert main(["check", f"{file}:loud", "--format", "json", *options]) == 0
    os.write(1, b"\nafterwards")
    printed = capfd.readouterr()
    document, _, rest = printed.out.rpartition("\n")
    assert rest == "afterwards"
    json.loads(document)
    for each in ("descriptor", "puts", "child") if hasattr(os, "fork") else ("descriptor", "child"):
        assert f"{each}\n" in printed.err
