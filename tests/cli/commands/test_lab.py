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
        "tiny: 1 tasks × 2 encodings × 2 seeds",
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
    assert run("lab", "run", "tiny.toml").out == "4 of 4 runs made, 0 failed\n"
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
        (["plan"], "posenc lab plan takes a grid, as posenc lab plan quick"),
        (["plan", "tiny.toml", "--workers", "0"], "--workers is 0; it must be at least 1"),
        (["paln", "quick"], "Expected one of ('plan', 'run'"),
        (["plan", "qick"], "no shipped grid of this name; shipped are extension, quick, standard"),
        (["status", "quick"], "there is no folder lab-results"),
        (["report", "tiny.toml", "--folder", ".", "-o", "a.pdf"], "must end in .html"),
        (["plan", "tiny.toml", "--query", "select 1"], "--query says nothing to posenc lab plan"),
        (["status", "tiny.toml", "-o", "a.html"], "--output says nothing to posenc lab status"),
        (["show", "a", "--export", "a.csv"], "--export says nothing to posenc lab show"),
        (["show", "a", "--workers", "2"], "--workers says nothing to posenc lab show"),
        (["plan", "tiny.toml", "--engine", "ray"], "--engine says nothing to posenc lab plan"),
        (["run", "tiny.toml", "--engine", "ray", "--workers", "2"], "--workers are those of"),
        (["show", "a", "--query", "select 1"], "'a' says nothing here"),
        (["clean", "tiny.toml"], "'tiny.toml' says nothing here"),
        (
            ["report", "tiny.toml", "--folder", ".", "--export", "tiny.csv"],
            "tiny.csv is the table that the report writes",
        ),
        (
            ["report", "tiny.toml", "--folder", ".", "--export", "a.tsv"],
            "must end in .json or .csv",
        ),
        (
            ["report", "tiny.toml", "--folder", "tiny.toml", "--export", "./tiny.toml"],
            "tiny.toml is also the --folder; give the output another name",
        ),
    ],
)
def test_mistakes_answer_in_one_line(refused, grid, words, said):
    assert said in refused("lab", *words)


def test_a_mistake_in_a_grid_names_its_file(refused, grid, tmp_path):
    (tmp_path / "bad.toml").write_text(TINY.replace("ALiBi({heads})", "ALiBi({heads}"))
    assert "bad.toml: " in refused("lab", "plan", "bad.toml")
