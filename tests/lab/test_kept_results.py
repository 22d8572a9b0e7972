"""The results that lie beside the documentation, what its pages say of them, and why."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from posenc.lab import grid_from
from posenc.lab.comparison import Comparison, compared
from posenc.lab.kept import taken_out
from posenc.lab.tables import rows

DOCS = Path(__file__).parents[2] / "docs"
HERE = DOCS / "lab"

BARS = {
    ("flip_flop", "ALiBi"): 0.2,
    ("flip_flop", "KERPLE"): 0.2,
    ("local_language_model", "ALiBi"): 0.25,
}
"""By how much each leads rotary at eight times the trained length."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    def kept(name: str) -> Comparison:
        root = tmp_path_factory.mktemp(name)
        return compared(grid_from(name, check=False), taken_out(HERE / f"{name}.json", root))

    return {name: kept(name) for name in ("standard", "extension")}


def test_every_run_of_both_grids_is_there_and_is_small(kept):
    for name, comparison in kept.items():
        assert not comparison.failures
        assert all(
            e.seeds == (0, 1, 2, 3, 4) for t in comparison.tasks for e in t.encodings.values()
        )
        assert (HERE / f"{name}.json").stat().st_size < 600_000
    assert len(kept["standard"].tasks) == 11


def test_the_published_orderings_hold_as_paired_gaps(kept):
    """Their intervals lie beyond the bars, and every seed but one of KERPLE, which has 0.196."""
    tasks = {task.title: task for task in kept["standard"].tasks}
    gaps = {
        (title, gap.gap.better): list(gap.differences.values())
        for title, task in tasks.items()
        for gap in task.gaps
    }
    for (title, better), bar in BARS.items():
        pairs = tasks[title].pairs[tasks[title].length]
        (pair,) = (each for each in pairs if (each.better, each.worse) == (better, "Rotary"))
        assert pair.interval.low >= bar
    assert min(gaps["flip_flop", "ALiBi"]) >= 0.2
    assert min(gaps["local_language_model", "ALiBi"]) >= 0.25
    assert min(gaps["flip_flop", "KERPLE"]) > 0.19
    assert sum(gap >= 0.2 for gap in gaps["flip_flop", "KERPLE"]) >= 4


def test_what_is_extended_is_held_against_the_model_before(kept):
    (task,) = kept["extension"].tasks
    runs = json.loads((HERE / "extension.json").read_text())
    by_id = {run["id"]: run for run in runs}
    linear = next(
        run
        for run in runs
        if (extension := run["configuration"]["extension"]) is not None
        and extension["use"][0].startswith("Rotary(Linear")
        and (extension["factor"], extension["steps"]) == (8, 0)
        and run["configuration"]["seed"] == 0
    )
    base = by_id[linear["configuration"]["extension"]["of"]]
    added = linear["outcome"]["scores"]["512"] - base["outcome"]["scores"]["64"]
    assert task.encodings["Linear ×8"].reported[512][0] == pytest.approx(added)


@pytest.mark.slow("all pages are written anew")
def test_the_pages_are_what_the_results_say(kept, monkeypatch, tmp_path):
    """Figures aside, which other fonts would draw with other pixels."""
    pytest.importorskip("matplotlib")
    specification = importlib.util.spec_from_file_location("pages", DOCS / "make_lab_results.py")
    pages = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "pages", pages)
    specification.loader.exec_module(pages)
    for name, comparison in kept.items():
        written = (HERE / f"{name}.md").read_text().splitlines()
        made = pages.page(comparison, tmp_path).splitlines()
        # How many runs are of an earlier source changes with the source.
        assert [x for x in made if "runs: " not in x] == [x for x in written if "runs: " not in x]
        assert all((HERE / path.name).exists() for path in tmp_path.glob(f"{name}-*.png"))


@pytest.mark.parametrize("name", ["standard", "extension"])
def test_the_query_of_the_guide_takes_means_of_seeds_alone(name, tmp_path):
    guide = (DOCS / "lab.md").read_text()
    columns = re.search(r"SELECT (.*), avg\(score\) FROM runs", guide)[1].split(", ")
    kept = rows(taken_out(HERE / f"{name}.json", tmp_path))
    found = [row for row in kept if row["kind"] != "tuning"]
    asked = {(*(row[column] for column in columns), row["seed"]) for row in found}
    assert len(asked) == len(found)
