"""``posenc lab``: what it says, and what it refuses."""

import json

import pytest
from tests.lab.conftest import TINY

from posenc.lab import Store, grid_from, planned
from posenc.lab.working import make


@pytest.fixture
def grid(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TINY)
    return grid_from("tiny.toml")


def test_a_grid_from_plan_to_report(run, refused, grid, tmp_path):
    assert run("lab", "plan", "tiny.toml").out.splitlines() == [
        "tiny: 1 task × 2 encodings × 1 model × 2 seeds",
        "4 runs, 0 of them to choose learning rates",
        "0 made, 0 failed, 4 left",
        "time unknown until a run is made on this machine",
    ]
    assert "no results" in refused("lab", "report", "tiny.toml")
    store = Store(tmp_path / "lab-results")
    runs = planned(grid, store).runs
    for each in runs:
        make(each.configuration, store)
    assert run("lab", "status", "tiny.toml").out == "4 total, 4 made, 0 running, 0 failed, 0 left\n"
    said = run("lab", "run", "tiny.toml").out.splitlines()
    assert said[:2] == ["4 of 4 runs made, 0 failed", "k_front"]
    assert "trained length" in said[2]
    more = ("--encoding", "Rotary({head_dim})")
    assert run("lab", "status", "tiny.toml", *more).out.startswith("6 total, 4 made")
    assert json.loads(run("lab", "show", runs[0].id[:9]).out)["id"] == runs[0].id
    assert "'zz' names 0 runs" in refused("lab", "show", "zz")
    written = run("lab", "report", "tiny.toml", "--export", "all.csv").out.split()
    assert written[1::2] == ["tiny.html", "tiny.md", "tiny.csv", "all.csv"]
    assert run("lab", "clean").out.startswith("0 failures")


def test_failures_are_told_and_counted(run, grid, tmp_path):
    store = Store(tmp_path / "lab-results")
    failed = planned(grid, store).runs[0]
    store.note_failure(failed.id, "ValueError: no", final=True)
    ran = run("lab", "status", "tiny.toml")
    assert ran.status == 1
    assert f"failed {failed.id} k_front · NoPE · seed 0: " in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("plan", "takes a grid"),
        ("plan qick", "shipped are extension, quick, standard"),
        ("status quick", "there is no folder lab-results"),
        ("plan bad.toml", "bad.toml: "),
    ],
)
def test_mistakes_answer_in_one_line(refused, grid, tmp_path, words, said):
    (tmp_path / "bad.toml").write_text(TINY.replace("ALiBi({heads})", "ALiBi({heads}"))
    assert said in refused("lab", *words.split())
