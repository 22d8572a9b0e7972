"""The lab gives the numbers it gave: plans of grids, training of each task, kept results."""

import json
from hashlib import sha256
from pathlib import Path

import pytest

from posenc.lab import TASKS, Configuration, ModelSize, Store, Training, grid_from, planned, trained
from posenc.lab.comparison import compared
from posenc.lab.kept import taken_out

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "docs" / "lab"
SMALL = {"byte_language_model": {"trained": 8, "tested": [8, 16]}, "copy": {"tested": [16, 24]}}


def learned(task: str) -> dict:
    """What four steps of a tiny model with two encodings give."""
    use = ("Rotary(4)", "T5Bias(2, 4, 8, bidirectional=False)")
    training = Training(steps=4, batch=4, examined=8)
    options = SMALL.get(task, {})
    size = ModelSize(8, 2, 2)
    run = Configuration(task, 1, options, use, (), "", size, training, seed=1)
    found = trained(run).written
    found["hashes"] = {"data": found["hashes"]["data"]}
    return {"id": run.id, **found}


def plan(name: str, root: Path) -> dict:
    """How many runs a shipped grid has, and a hash of their configurations."""
    found = planned(grid_from(name, check=False), Store(root))
    written = [run.configuration.written() for run in found.runs]
    for each in written:
        each["version"] = each["options"]["text"] = ""
        if each["extension"]:
            each["extension"] |= {"of": "", "version": ""}
    lines = sorted(json.dumps(each, sort_keys=True) for each in written)
    digest = sha256("\n".join(lines).encode()).hexdigest()
    return {"total": found.total, "runs": len(lines), "digest": digest}


def read(name: str, root: Path) -> dict:
    """The numbers of kept results: middles by length, and pairs where encodings are compared."""
    comparison = compared(grid_from(name, check=False), taken_out(KEPT / f"{name}.json", root))
    return {
        task.title: {
            "fits": {n: sum(e.fits) for n, e in task.encodings.items()},
            "rates": {n: e.rate for n, e in task.encodings.items()},
            "middles": {
                n: {str(length): [m.value, m.low, m.high] for length, m in e.middle.items()}
                for n, e in task.encodings.items()
            },
            "p": {
                f"{p.better} over {p.worse}": [p.p, p.corrected] for p in task.pairs[task.length]
            },
            "published": [[each.same, each.of] for each in task.beside],
        }
        for task in comparison.tasks
    }


def close(found, held, tolerance: float) -> bool:
    if isinstance(held, dict):
        return found.keys() == held.keys() and all(
            close(found[k], held[k], tolerance) for k in held
        )
    if isinstance(held, list):
        return len(found) == len(held) and all(map(close, found, held, [tolerance] * len(held)))
    return found == (pytest.approx(held, abs=tolerance) if isinstance(held, float) else held)


HELD = json.loads((HERE / "lab.json").read_text())


@pytest.mark.parametrize("task", TASKS)
def test_training_gives_the_same_numbers(task):
    found = learned(task)
    if found["id"] != HELD["trained"][task]["id"] and task == "byte_language_model":
        pytest.skip("the library of another Python")
    assert close(found, HELD["trained"][task], 1e-3)


@pytest.mark.parametrize("name", ["quick", "standard", "extension"])
def test_grids_are_the_same_runs(name, tmp_path):
    assert plan(name, tmp_path) == HELD["plans"][name]


@pytest.mark.parametrize("name", ["standard", "extension"])
def test_kept_results_say_the_same(name, tmp_path):
    assert close(read(name, tmp_path), HELD["read"][name], 0.03)


@pytest.mark.slow("trains the grid quick: minutes")
@pytest.mark.parametrize("run", HELD["quick"])
def test_quick_gives_the_same_scores(run, tmp_path):
    runs = planned(grid_from("quick", check=False), Store(tmp_path)).runs
    of = {
        f"{c.task} {' '.join(c.use) or 'NoPE'} {c.seed}": c for c in (r.configuration for r in runs)
    }
    assert close(trained(of[run]).written["scores"], HELD["quick"][run], 0.01)
