"""Reports: every number is one of the comparison, sentences follow from numbers, no network."""

import csv
import io
import platform
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
from tests.lab.conftest import TINY, configuration

from posenc.lab import planned
from posenc.lab.comparison import compared, differences_against, sentences
from posenc.lab.configuration import Extension
from posenc.lab.kept import keep, taken_out
from posenc.lab.report import as_csv, as_html, as_markdown, write
from posenc.lab.report.figures import drawn
from posenc.lab.report.sheets import differences, sheets
from posenc.lab.tables import COLUMNS, export
from posenc.lab.tables import as_csv as all_as_csv
from posenc.lab.tasks import KFront
from posenc.lab.working import make

GAP = """
[[gaps]]
task = "k_front"
better = "ALiBi"
worse = "NoPE"
least = 0.1
at = 2
"""
SCORES = {  # of seeds 0, 1, 2 at the trained length and at twice that
    "NoPE": {"4": (0.99, 0.98, 1.0), "8": (0.2, 0.3, 0.25)},
    "ALiBi": {"4": (1.0, 1.0, 1.0), "8": (0.9, 0.8, 0.7)},
    "Rotary": {"4": (0.5, 0.4, 1.0), "8": (0.6, 0.6, 0.6)},
}


@pytest.fixture
def comparison(tiny, store):
    """Nine runs whose scores we know, so that what is said of them is known as well."""
    rotary = '[[encodings]]\nname = "Rotary <b>"\nuse = "Rotary({head_dim})"\n'
    grid = tiny(rotary + GAP, text=TINY.replace("seeds = 2", "seeds = 3"))
    template = None
    for run in planned(grid, store).runs:
        template = template or make(run.configuration, store)
        scores = SCORES[run.encoding.split()[0]]
        own = {length: values[run.configuration.seed] for length, values in scores.items()}
        result = {**template, "id": run.id, "configuration": run.configuration.written()}
        result["outcome"] = {**template["outcome"], "scores": own}
        store.keep(run.id, result)
    return compared(grid, store)


def test_what_is_said_follows_from_the_numbers(comparison):
    (task,) = comparison.tasks
    assert sentences(task) == [
        "At the trained length, 4, Rotary <b> did not fit (at least 0.95 is asked there).",
        "At 8 (2 times the trained length), ALiBi is first with accuracy 0.80.",
        "From 4 to 8, ALiBi loses 0.20 and NoPE loses 0.74.",
        "Expected ALiBi − NoPE ≥ 0.1 at 8: holds in 3 of 3 seeds (gaps 0.45 to 0.70, mean 0.55).",
    ]
    assert task.ranks == {"NoPE": 2, "ALiBi": 1}  # who did not fit has no place
    assert comparison.purpose == "exploring"
    assert comparison.counts["made"] == 9


def test_a_gap_that_does_not_hold_in_every_seed_is_said(comparison):
    (task,) = comparison.tasks
    (gap,) = task.gaps
    missed = replace(gap, gap=msgspec.structs.replace(gap.gap, least=0.5))
    assert gap.holds
    assert missed.holds is False
    said = sentences(replace(task, gaps=[missed, replace(gap, differences={})]))
    assert "holds in 2 of 3 seeds" in said[-2]
    assert said[-1].endswith("not measured.")


def test_who_loses_least_where_lower_is_better(comparison):
    """Signs: with lower scores the better ones, places turn round."""
    (task,) = comparison.tasks

    class Lower(KFront):
        lower_is_better = True
        gate = 2.0

    turned = replace(task.task, task=Lower(4, (4, 8), k=2))
    lower = replace(task, task=turned)
    ours = differences_against(lower, "ALiBi", 8)
    assert ours["NoPE"] == pytest.approx([0.7, 0.5, 0.45])
    rows = differences(lower, 8).rows
    assert {row[0] for row in rows} == {f"{p.better} better than {p.worse}" for p in task.pairs[8]}
    asked = "Expected ALiBi better than NoPE by 0.1 or more at 8: holds in 3 of 3 seeds"
    assert asked in sentences(lower)[-1]


def test_csv_and_markdown_hold_the_same_numbers(comparison):
    rows = list(csv.DictReader(io.StringIO(as_csv(comparison))))
    assert len(rows) == 3 * 2 * 3
    alibi = [row for row in rows if (row["encoding"], row["length"]) == ("ALiBi", "8")]
    assert [float(row["score"]) for row in alibi] == [0.9, 0.8, 0.7]
    assert {row["place"] for row in alibi} == {"1"}
    middle, low, high = (float(alibi[0][name]) for name in ("middle", "low", "high"))
    line = next(row for row in as_markdown(comparison).splitlines() if row.startswith("| ALiBi |"))
    assert f"| {middle:.3f} [{low:.3f}, {high:.3f}] |" in line
    assert f"{middle:.3f} [{low:.3f}, {high:.3f}]</td>" in as_html(comparison)


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links, self.open = [], [], []

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known[n] for n in ("src", "href", "xlink:href") if n in known]


def test_the_page_is_one_file_with_ids_of_its_own(comparison, tmp_path):
    written = write(comparison, tmp_path / "report.html")
    assert [path.suffix for path in written] == [".html", ".md", ".csv"]
    page = written[0].read_text()
    assert "Rotary &lt;b&gt;" in page
    assert "<b>" not in page
    reader = Reader()
    reader.feed(page)
    assert len(set(reader.ids)) == len(reader.ids)
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert not re.search(r"(src|href)=\"(?!#)|@import|url\((?!#)", page)
    assert "var(--line-0)" in page
    svg = "".join(re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL))
    assert "#0072b2" not in svg  # colors come from the page, so that both grounds have theirs
    assert as_html(comparison) == page  # the same numbers, the same bytes


def test_results_of_an_earlier_source_are_shown_and_said_to_be(
    comparison, tiny, store, monkeypatch
):
    monkeypatch.setattr("posenc.lab.encodings.version", lambda use: "changed")
    again = compared(comparison.grid, store)
    assert again.earlier == 9
    assert (again.counts["made"], again.counts["total"]) == (0, 9)
    assert again.tasks[0].ranks == comparison.tasks[0].ranks
    assert "0 of 9 made, 0 failed; 9 more by an earlier source" in as_markdown(again)
    assert comparison.earlier == 0


def test_learning_rates_that_an_earlier_source_chose_are_counted_too(tiny, store, monkeypatch):
    text = TINY.replace("steps = 4", "learning_rates = [1e-3, 1e-2]\nsteps = 4", 1)
    grid = tiny(text=text)
    for _ in ("tuning", "reported"):
        for run in planned(grid, store).runs:
            make(run.configuration, store)
    total = compared(grid, store).counts["total"]
    monkeypatch.setattr("posenc.lab.encodings.version", lambda use: "changed")
    again = compared(grid, store)
    assert again.counts["made"] + again.earlier == again.counts["total"] == total == 8


def test_what_diverged_is_told_in_words_tables_and_rows(comparison, tiny, store):
    for run in planned(comparison.grid, store).runs:
        if run.encoding == "ALiBi" and run.configuration.seed in (0, 2):
            result = store.result(run.id)
            outcome = {**result["outcome"], "diverged": True, "steps": 1}
            store.keep(run.id, {**result, "outcome": outcome})
    again = compared(comparison.grid, store)
    said = (
        "Training diverged, and ended there: ALiBi in seed 0 and seed 2. Means hold what came of "
        "it, or a guess where no numbers did."
    )
    assert said in sentences(again.tasks[0])
    for page in (as_markdown(again), as_html(again)):
        assert said in page
        assert "3 of 3, 2 diverged" in page
    assert "diverged" not in as_markdown(comparison)
    of_report = csv.DictReader(io.StringIO(as_csv(again)))
    of_store = csv.DictReader(io.StringIO(all_as_csv(store)))
    for rows, name in ((of_report, "ALiBi"), (of_store, "ALiBi(2)")):
        found = {(row["encoding"], int(row["seed"])) for row in rows if row["diverged"] == "1"}
        assert found == {(name, 0), (name, 2)}


def test_what_is_made_of_a_model_that_diverged_is_told_to_be(tiny, store):
    grid = tiny(EXTENDED)
    for run in planned(grid, store).runs:
        make(run.configuration, store)
        result = store.result(run.id)
        if run.encoding == "Rotary" and run.configuration.seed == 1:
            store.keep(run.id, {**result, "outcome": {**result["outcome"], "diverged": True}})
    (task,) = compared(grid, store).tasks
    found = {name: each.diverged for name, each in task.encodings.items()}
    assert found == {"NoPE": (), "ALiBi": (), "Rotary": (1,), "Same ×2": (1,)}


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


def test_an_extension_is_held_against_the_very_run_that_it_extends(tiny, store, monkeypatch):
    """The base is made anew, its extension not yet: it is shown beside the base that it had."""
    grid = tiny(EXTENDED)

    def made(kinds, score):
        for run in planned(grid, store).runs:
            if run.encoding in ("Rotary", "Same ×2") and run.kind in kinds:
                outcome = make(run.configuration, store)["outcome"]
                outcome["scores"]["4"] = score if run.kind == "reported" else 0.3
                store.keep(run.id, {**store.result(run.id), "outcome": outcome})

    made(("reported", "extended"), 1.0)
    old = {run.id for run in planned(grid, store).runs if run.kind == "reported"}
    monkeypatch.setattr("posenc.lab.encodings.version", lambda use: "changed")
    made(("reported",), 0.5)
    (task,) = compared(grid, store).tasks
    assert task.encodings["Same ×2"].before == 1.0
    assert all(task.encodings["Same ×2"].fits)
    keep(store, store.root / "kept.json", grid)
    again = compared(grid, taken_out(store.root / "kept.json", store.root / "again"))
    assert again.tasks[0].encodings["Same ×2"].before == 1.0
    for run in old:
        store.path("results", run).unlink(missing_ok=True)
    (task,) = compared(grid, store).tasks
    assert "Same ×2" not in task.encodings


def test_steps_that_were_not_made_have_no_cost_and_tuning_has_a_rate_of_its_own(tiny, store):
    grid = tiny(EXTENDED + "steps = [0, 1]")
    for run in planned(grid, store).runs:
        make(run.configuration, store)
    (task,) = compared(grid, store).tasks
    (table,) = (each for each in sheets(task) if each.title == "Cost and learning rates")
    found = {row[0]: (row[1], row[3]) for row in table.rows}
    assert found["Same ×2"] == ("–", "0.002")
    assert found["Same ×2, tuned 1 steps"][0] != "–"
    assert found["Same ×2, tuned 1 steps"][1] == "0.002, then 0.0005"
    ticks = [each.get_text() for each in list(drawn(task).values())[-1].get_yticklabels()]
    assert "Same ×2" not in ticks
    assert len(ticks) == 4
    export(store, store.root / "all.csv")
    rows = csv.DictReader((store.root / "all.csv").open())
    assert all((row["milliseconds_a_step"] == "") == (row["steps"] == "0") for row in rows)


def test_losses_are_drawn_of_the_seeds_that_have_some(comparison):
    """One that gave no numbers from its first step on has none."""
    (task,) = comparison.tasks
    said = "training losses, a thin line a seed"
    for empty, lines in ((1, 2 + 1), (3, 0)):
        found = {
            name: replace(e, curves={s: [] if s < empty else c for s, c in e.curves.items()})
            for name, e in task.encodings.items()
        }
        axes = drawn(replace(task, encodings=found)).get(said)
        assert (len(axes.lines) if axes else 0) == lines * 3


def test_what_the_grid_holds_and_is_not_made_is_said(comparison, tiny):
    assert "not made yet" not in as_markdown(comparison)
    text = TINY.replace("[[enc", '[[tasks]]\ntask = "copy"\ntested = [4]\ntrained = 4\n\n[[enc', 1)
    grid = tiny(EXTENDED, text=text)
    found = as_markdown(replace(comparison, grid=grid))
    assert "- not made yet: k_front: Rotary, Same ×2; copy\n" in found


def test_where_nothing_that_fitted_was_tested_none_is_said_to_have_failed(comparison):
    (task,) = comparison.tasks
    said = sentences(replace(task, ranks={}))
    assert said[1] == "No encoding that fitted has numbers at 8, so none is ranked there."


def test_a_seed_of_which_nothing_can_be_compared_is_left_out_and_said_to_be(comparison):
    (task,) = comparison.tasks
    one = task.encodings["ALiBi"]
    left = {length: {s: v for s, v in by.items() if s} for length, by in one.reported.items()}
    lost = replace(task, encodings={**task.encodings, "ALiBi": replace(one, reported=left)})
    first = next(sheets(lost))
    assert "nothing longer can be compared (1 of ALiBi left out)" in first.note
    assert "left out" not in next(sheets(task)).note
    row = next(csv.DictReader(io.StringIO(as_csv(replace(comparison, tasks=[lost])))), None)
    assert row is not None
    assert drawn(lost)


def test_a_grid_without_results_says_so(tiny, store):
    with pytest.raises(ValueError, match=r"grid tiny has no results in .*make some by posenc lab"):
        compared(tiny(), store)


def test_all_results_as_a_table(comparison, store, tmp_path):
    export(store, tmp_path / "all.csv")
    rows = list(csv.DictReader((tmp_path / "all.csv").open()))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 9 * 2
    assert {row["encoding"] for row in rows} == {"NoPE", "ALiBi(2)", "Rotary(4)"}
    assert {(row["kind"], row["options"], row["batch"]) for row in rows} == {
        ("reported", '{"k": 2}', "2")
    }
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet"):
        export(store, tmp_path / "all.xls")


def test_whatever_tells_runs_apart_has_a_column_of_its_own(store):
    from posenc.lab.tables import rows

    base, other = configuration(), configuration(version="other")
    from msgspec.structs import replace

    longer = Extension(base.id, ("ALiBi(2)",), "", 2, 3)
    trained = {"warm_up": 1, "clip": 0.5, "weight_decay": 0.5, "examined": 3}
    extensions = longer, replace(longer, learning_rate=1.0), replace(longer, of=other.id)
    runs = [
        *(base, other, configuration(nope_layers=(1,)), configuration(seed=1_000_003)),
        replace(base, task_version=2),
        *(replace(base, training=replace(base.training, **{n: v})) for n, v in trained.items()),
        *(replace(base, extension=each) for each in extensions),
    ]
    result = make(base, store)
    for run in runs:
        store.keep(run.id, {**result, "id": run.id, "configuration": run.written()})
    told = [
        {k: v for k, v in row.items() if k not in ("run", "score", "loss", "date")}
        | {"milliseconds_a_step": None}
        for row in rows(store)
        if row["length"] == 8
    ]
    assert len({str(each) for each in told}) == len(runs)
    kinds = [str(each["kind"]) for each in told]
    assert sorted(kinds) == ["extended"] * 3 + ["reported"] * 8 + ["tuning"]


def test_results_in_one_file_give_the_same_report(comparison, store, tmp_path):
    path = tmp_path / "kept.json"
    keep(store, path, comparison.grid)
    assert platform.node() not in path.read_text()
    again = compared(comparison.grid, taken_out(path, tmp_path / "again"))
    assert as_csv(again) == as_csv(comparison)
    assert as_markdown(again) == as_markdown(comparison)
    for other in ('[{"id": "../x", "outcome": {}}]', "notes of somebody"):
        path.write_text(other)
        with pytest.raises(ValueError, match=r"kept.json holds no results; posenc lab report GRID"):
            taken_out(path, tmp_path / "third")


def test_runs_that_were_given_up_are_kept_with_the_results(tiny, store, tmp_path):
    """A learning rate is chosen by them, too: without them its runs would be none of the grid."""
    text = TINY.replace("steps = 4", "learning_rates = [1e-3, 1e-2]\nsteps = 4", 1)
    grid = tiny(text=text)
    for run in planned(grid, store).runs:
        if run.encoding == "ALiBi" and run.configuration.training.learning_rate == 1e-2:
            store.note_failure(run.id, "Traceback\n  /home\nValueError: no", final=True)
        else:
            make(run.configuration, store)
    for run in planned(grid, store).runs:
        if run.kind == "reported":
            make(run.configuration, store)
    before = as_markdown(compared(grid, store))
    assert "ALiBi · learning rate 0.01 · seed 1000003: ValueError: no" in before
    for kept_of in (grid, None):
        path = tmp_path / f"{kept_of is None}.json"
        keep(store, path, kept_of)
        assert "/home" not in path.read_text()
        again = taken_out(path, tmp_path / path.stem)
        assert as_markdown(compared(grid, again)) == before


def test_queries_and_parquet(comparison, store, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    from posenc.lab.tables import asked

    names, found = asked(
        store, "SELECT encoding, max(score) AS best FROM runs GROUP BY 1 ORDER BY 1"
    )
    assert names == ["encoding", "best"]
    assert found == [("ALiBi(2)", 1.0), ("NoPE", 1.0), ("Rotary(4)", 1.0)]
    export(store, tmp_path / "all.parquet")
    ((count,),) = duckdb.sql(f"SELECT count(*) FROM '{tmp_path / 'all.parquet'}'").fetchall()
    assert count == 18
    with pytest.raises(ValueError, match="nothing_here"):
        asked(store, "SELECT nothing_here FROM runs")


@pytest.mark.slow("draws a page in Chromium")
def test_the_page_in_a_browser(comparison, tmp_path, browser):
    """Light and dark differ, the button turns them, nothing is asked of a network."""
    address = write(comparison, tmp_path / "report.html")[0].as_uri()
    grounds, requests, complaints = [], [], []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        grounds.append(page.evaluate(GROUND))
        page.click("#theme")
        grounds.append(page.evaluate(GROUND))
        line = "getComputedStyle(document.querySelector('figure svg [style*=line-0]')).fill"
        assert page.evaluate(line) != ""
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 800})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"the page is {wide} wide on a screen of {width}"
        assert page.locator("figure svg").count() == 4
        context.close()
    light, dark = "rgb(255, 255, 255)", "rgb(23, 24, 28)"
    assert grounds == [light, dark, dark, light]
    assert set(requests) == {address}
    assert not complaints


GROUND = "getComputedStyle(document.body).backgroundColor"
