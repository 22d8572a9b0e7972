"""The lab gives the numbers it gave: plans of grids, training of each task, kept results."""

import json
from hashlib import sha256
from pathlib import Path

import pytest
from tests.goldens.written import known, near

from posenc.lab import TASKS, Configuration, ModelSize, Store, Training, grid_from, planned, trained
from posenc.lab.comparison import TaskComparison, compared
from posenc.lab.kept import taken_out

HELD = known("lab")
KEPT = Path(__file__).parents[2] / "docs" / "lab"
SMALL = {"byte_language_model": {"trained": 8, "tested": [8, 16]}, "copy": {"tested": [16, 24]}}


@pytest.mark.parametrize("task", TASKS)
def test_four_steps_of_a_tiny_model_give_the_same_numbers(task):
    use = ("Rotary(4)", "T5Bias(2, 4, 8, bidirectional=False)")
    training = Training(steps=4, batch=4, examined=8)
    options, size = SMALL.get(task, {}), ModelSize(8, 2, 2)
    run = Configuration(task, 1, options, use, (), "", size, training, seed=1)
    found = trained(run).written
    found = {**found, "id": run.id, "hashes": {"data": found["hashes"]["data"]}}
    if task == "byte_language_model" and found["hashes"] != HELD["trained"][task]["hashes"]:
        pytest.skip("the library of another Python")
    assert near(found, HELD["trained"][task], absolute=1e-3), found


@pytest.mark.parametrize("name", HELD["plans"])
def test_grids_are_the_same_runs(name, tmp_path):
    found = planned(grid_from(name, check=False), Store(tmp_path))
    written = [run.configuration.written() for run in found.runs]
    for each in written:
        each["version"] = each["options"]["text"] = ""
        if each["extension"]:
            each["extension"] |= {"of": "", "version": ""}
    lines = sorted(json.dumps(each, sort_keys=True) for each in written)
    digest = sha256("\n".join(lines).encode()).hexdigest()
    assert {"total": found.total, "runs": len(lines), "digest": digest} == HELD["plans"][name]


def said(task: TaskComparison) -> dict:
    middles = {
        n: {str(length): [m.value, m.low, m.high] for length, m in e.middle.items()}
        for n, e in task.encodings.items()
    }
    return {
        "fits": {n: sum(e.fits) for n, e in task.encodings.items()},
        "rates": {n: e.rate for n, e in task.encodings.items()},
        "middles": middles,
        "p": {f"{p.better} over {p.worse}": [p.p, p.corrected] for p in task.pairs[task.length]},
        "published": [[each.same, each.of] for each in task.beside],
    }


@pytest.mark.parametrize("name", HELD["read"])
def test_kept_results_say_the_same(name, tmp_path):
    comparison = compared(grid_from(name, check=False), taken_out(KEPT / f"{name}.json", tmp_path))
    found = {task.title: said(task) for task in comparison.tasks}
    assert near(json.loads(json.dumps(found)), HELD["read"][name], absolute=0.03), found


@pytest.mark.slow("trains the grid quick: minutes")
@pytest.mark.parametrize("name", HELD["quick"])
def test_quick_gives_the_same_scores(name, tmp_path):
    for run in planned(grid_from("quick", check=False), Store(tmp_path)).runs:
        asked = run.configuration
        if name == f"{asked.task} {' '.join(asked.use) or 'NoPE'} {asked.seed}":
            assert trained(asked).written["scores"] == pytest.approx(HELD["quick"][name], abs=0.01)
