"""Reports: every number is one of the comparison, sentences follow from numbers, no network."""

import csv
import io
import platform
import re

import pytest
from tests.lab.conftest import TINY

from posenc.lab import planned
from posenc.lab.comparison import compared
from posenc.lab.kept import answered, export, keep, rows, taken_out
from posenc.lab.report import as_csv, as_markdown, write
from posenc.lab.report.text import differences, sentences
from posenc.lab.working import make

GAP = '[[gaps]]\ntask = "k_front"\nbetter = "ALiBi"\nworse = "NoPE"\nleast = 0.1\nat = 2\n'
EXTENDED = """
[[encodings]]
name = "Rotary"
use = "Rotary({head_dim})"

[[extensions]]
name = "Same"
of = "Rotary"
use = "Rotary({head_dim})"
factors = [2]
"""
RATES = TINY.replace("steps = 4", "learning_rates = [1e-3, 1e-2]\nsteps = 4", 1)
SCORES = {  # at the trained length and at twice that; each seed lowers the second by its hundredth
    "NoPE": (0.99, 0.4),
    "ALiBi": (1.0, 0.9),
    "Rotary": (0.5, 0.6),
}


def scored(tiny, store, seeds: int):
    """Runs whose scores we know, so that what is said of them is known as well."""
    rotary = '[[encodings]]\nname = "Rotary <b>"\nuse = "Rotary({head_dim})"\n'
    grid = tiny(rotary + GAP, text=TINY.replace("seeds = 2", f"seeds = {seeds}"))
    runs = planned(grid, store).runs
    template = make(runs[0].configuration, store)
    for run in runs:
        trained, longer = SCORES[run.encoding.split()[0]]
        own = {"4": trained, "8": longer - 0.01 * run.configuration.seed**2}
        result = {**template, "id": run.id, "configuration": run.configuration.written()}
        store.keep(run.id, {**result, "outcome": {**template["outcome"], "scores": own}})
    return compared(grid, store)


@pytest.fixture
def comparison(tiny, store):
    return scored(tiny, store, 3)


def make_all(grid, store) -> None:
    for _ in ("tuning", "reported"):
        for run in planned(grid, store).runs:
            make(run.configuration, store)


def altered(store, run, **outcome) -> None:
    result = store.result(run.id)
    store.keep(run.id, {**result, "outcome": {**result["outcome"], **outcome}})


def test_what_is_said_follows_from_the_numbers(comparison):
    (task,) = comparison.tasks
    said = " ".join(sentences(task))
    assert "Rotary <b> did not fit (at least 0.95" in said
    assert "ALiBi has the best accuracy, 0.89; 3 seeds are too few" in said
    assert "ALiBi loses 0.11 and NoPE loses 0.60" in said
    assert "in 3 of 3 seeds" in said
    assert task.ranks == {"NoPE": 1, "ALiBi": 1}  # who did not fit has no place
    assert {row["clear"] for row in differences(task, 8).rows} == {"too few seeds"}
    assert comparison.purpose == "exploring"
    assert comparison.counts["made"] == 9


def test_places_differ_where_seeds_are_enough_to_be_clear(tiny, store):
    (task,) = scored(tiny, store, 8).tasks
    assert task.ranks == {"NoPE": 2, "ALiBi": 1}
    assert "clearly better than NoPE" in list(sentences(task))[1]
    assert {row["clear"] for row in differences(task, 8).rows} == {"yes"}


def test_three_files_hold_the_same_numbers_and_the_page_has_ids_of_its_own(comparison, tmp_path):
    page, markdown, table = (p.read_text() for p in write(comparison, tmp_path / "report.html"))
    found = list(csv.DictReader(io.StringIO(table)))
    assert len(found) == 3 * 2 * 3
    alibi = [row for row in found if (row["encoding"], row["length"]) == ("ALiBi", "8")]
    assert [float(row["score"]) for row in alibi] == pytest.approx([0.9, 0.89, 0.86])
    middle, low, high = (float(alibi[0][name]) for name in ("middle", "low", "high"))
    told = f"{middle:.3f} [{low:.3f}, {high:.3f}]"
    assert told in next(row for row in markdown.splitlines() if row.startswith("| ALiBi |"))
    assert f"{told}</td>" in page
    assert "Rotary &lt;b&gt;" in page
    assert "<b>" not in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(ids)) == len(ids)
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)
    assert not re.search(r"(src|href)=\"(?!#)|@import|url\((?!#)", page)
    svg = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "var(--line-0)" in svg
    assert "#0072b2" not in svg  # colors come from the page, so that both grounds have theirs


def test_results_of_an_earlier_source_are_shown_and_counted(tiny, store, monkeypatch):
    grid = tiny(text=RATES)
    make_all(grid, store)
    before = compared(grid, store)
    monkeypatch.setattr("posenc.lab.encodings.version", lambda use: "changed")
    again = compared(grid, store)
    assert (before.earlier, before.counts["made"]) == (0, 8)
    assert (again.earlier, again.counts["made"]) == (8, 0)
    assert again.tasks == before.tasks


def test_what_diverged_or_made_no_steps_is_told_in_words_and_rows(tiny, store):
    grid = tiny(EXTENDED)
    make_all(grid, store)
    assert all((row["milliseconds_a_step"] is None) == (row["steps"] == 0) for row in rows(store))
    for run in planned(grid, store).runs:
        if (run.encoding, run.configuration.seed) == ("Rotary", 1):
            altered(store, run, diverged=True)
    comparison = compared(grid, store)
    page = as_markdown(comparison)
    assert "Rotary in seed 1; Same ×2 in seed 1" in page
    assert ", 1 diverged" in page
    told = csv.DictReader(io.StringIO(as_csv(comparison)))
    assert {r["encoding"] for r in told if r["diverged"] == "1"} == {"Rotary", "Same ×2"}


def test_an_extension_is_held_against_the_very_run_that_it_extends(tiny, store, monkeypatch):
    """The base is made anew, its extension not yet: it is shown beside the base that it had."""
    grid = tiny(EXTENDED)

    def made(kinds, score):
        for run in planned(grid, store).runs:
            if run.encoding in ("Rotary", "Same ×2") and run.kind in kinds:
                make(run.configuration, store)
                altered(store, run, scores={"4": score if run.kind == "reported" else 0.3, "8": 0})

    made(("reported", "extended"), 1.0)
    monkeypatch.setattr("posenc.lab.encodings.version", lambda use: "changed")
    made(("reported",), 0.5)
    (task,) = compared(grid, store).tasks
    assert task.encodings["Same ×2"].before == 1.0
    assert all(task.encodings["Same ×2"].fits)


def test_results_in_one_file_give_the_same_report(tiny, store, tmp_path):
    """With those that were given up: a learning rate is chosen by them, too."""
    grid = tiny(text=RATES)
    failed = planned(grid, store).runs[0]
    store.note_failure(failed.id, "Traceback\n  /home\nValueError: no", final=True)
    for _ in ("tuning", "reported"):
        for run in planned(grid, store).runs:
            if run.id != failed.id:
                make(run.configuration, store)
    before = compared(grid, store)
    assert "ValueError: no" in as_markdown(before)
    for of in (grid, None):
        path = tmp_path / f"{of is None}.json"
        keep(store, path, of)
        assert platform.node() not in path.read_text()
        assert "/home" not in path.read_text()
        again = compared(grid, taken_out(path, tmp_path / path.stem))
        assert as_markdown(again) == as_markdown(before)


def test_queries_and_parquet(comparison, store, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    names, found = answered(
        store, "SELECT encoding, max(score) AS best FROM runs GROUP BY 1 ORDER BY 1"
    )
    assert names == ["encoding", "best"]
    assert found == [("ALiBi(2)", 1.0), ("NoPE", 0.99), ("Rotary(4)", 0.6)]
    export(store, tmp_path / "all.parquet")
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{tmp_path / 'all.parquet'}'").fetchall()
    assert count == 18
    with pytest.raises(ValueError, match="nothing_here"):
        answered(store, "SELECT nothing_here FROM runs")
