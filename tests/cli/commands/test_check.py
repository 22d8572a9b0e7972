"""``posenc check``: its exit status, its JSON, its figure, and what it refuses."""

import json

import pytest

MODULE = """
import torch

def half(x):
    "Adds to the batch axis."
    return x + torch.arange(x.shape[0]).view(-1, 1, 1).to(x.dtype)

def fine():
    from posenc import Sinusoidal
    return Sinusoidal(16)

def plain(x):
    from posenc import Sinusoidal
    return Sinusoidal(x.shape[-1], arithmetic="float32")(x)

number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(MODULE)
    return path


def test_faults_give_status_1_and_none_give_0(run, file):
    wrong = run("check", f"{file}:half")
    assert wrong.status == 1
    assert "FAULT encodes the batch axis" in wrong.out
    assert max(map(len, wrong.out.splitlines())) <= 98
    right = run("check", f"{file}:fine")
    assert (right.status, right.err) == (0, "")
    assert "no fault found" in right.out


def test_json_is_for_machines(run, file):
    ran = run("check", f"{file}:half", "--format", "json")
    report = json.loads(ran.out)
    assert report["ok"] is False
    assert report["kind"] == "tokens"
    assert {"name", "said", "number", "expected"} == set(report["faults"][0])


def test_the_figure_shows_the_error(run, file, tmp_path):
    picture = tmp_path / "error.svg"
    assert run("check", f"{file}:plain", "--figure", picture).status == 1
    assert "largest error" in picture.read_text()


def test_what_cannot_be_checked_is_refused(refused, file, tmp_path):
    assert "names nothing to check" in refused("check", "theirs")
    assert "is no file" in refused("check", f"{tmp_path}/none.py:x")
    assert "has no absent" in refused("check", f"{file}:absent")
    assert "fits no signature" in refused("check", f"{file}:number")
    assert "--arguments is no JSON" in refused("check", f"{file}:half", "--arguments", "{")
    assert "must end in one of .png, .svg, .pdf" in refused(
        "check", f"{file}:plain", "--figure", "a.gif"
    )
    assert "could not be imported" in refused("check", "no_such_module_here:x")
