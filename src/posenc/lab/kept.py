"""Results in one file: JSON to lie beside a text that speaks of them, or a table to ask.

The table is CSV by itself, Parquet and SQL by DuckDB (extra ``lab``).
"""

import csv
import io
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from posenc.lab.grid import TUNING_SEED, Grid
from posenc.lab.planning import planned
from posenc.lab.store import Results, Store, read_json, whole

POINTS = 12  # of each curve of losses, at the most


def keep(store: Store, path: Path, grid: Grid | None = None) -> None:
    """Writes the results of a grid, or all, as one JSON file, a line a run.

    Scores and losses are whole; of a curve some points stay, and no machine has its own name. A run
    that was given up has a line with what it said last: learning rates are chosen by it.
    """
    known, failures = Results(store), store.failures()
    found = list(store.results())
    if grid is not None:
        plan = planned(grid, store, known.of).runs
        found = [result for run in plan if (result := known.of(run.configuration)) is not None]
        found += [base for each in found if (base := known.base_of(each)) is not None]
        failures = {run.id: failures[run.id] for run in plan if run.id in failures}
    written = {each["id"]: _shortened(each) for each in found}
    written |= {run: {"id": run, "said": said} for run, said in failures.items()}
    told = (json.dumps(written[run], ensure_ascii=False, sort_keys=True) for run in sorted(written))
    with whole(path) as file:
        file.write("[\n{}\n]\n".format(",\n".join(told)).encode())


def taken_out(path: Path, root: Path) -> Store:
    """A store in the folder ``root`` with the results of such a file."""
    store = Store(root)
    try:
        for each in read_json(path):
            if not each["id"].isalnum():  # it names a file
                raise ValueError
            if "said" in each:
                store.note_failure(each["id"], each["said"], final=True)
            elif each["outcome"]["scores"]:
                store.keep(each["id"], each)
    except (ValueError, TypeError, KeyError, AttributeError):
        told = f"{path} holds no results, as posenc lab report --export writes them."
        raise ValueError(told) from None
    return store


def _shortened(result: dict[str, Any]) -> dict[str, Any]:
    outcome, machine = result["outcome"], {**result["machine"], "host": ""}
    every = max(1, -(-len(outcome["curve"]) // POINTS))
    curve = [[step, float(f"{loss:.4g}")] for step, loss in outcome["curve"][::every]]
    return {**result, "outcome": {**outcome, "curve": curve}, "machine": machine}


def rows(store: Store) -> Iterator[dict[str, Any]]:
    """A row for each run and tested length."""
    for each in store.results():
        asked, outcome = each["configuration"], each["outcome"]
        extension, options = asked["extension"] or {}, dict(asked["options"])
        trained = options.pop("trained")
        options.pop("tested")
        cost = each["cost"]["milliseconds_a_step"]
        tuning = "tuning" if asked["seed"] >= TUNING_SEED else "reported"
        of_run = {
            "run": each["id"],
            "kind": "extended" if extension else tuning,
            "task": asked["task"],
            "task_version": asked["task_version"],
            "options": json.dumps(options, sort_keys=True),
            "encoding": " + ".join(extension.get("use", asked["use"])) or "NoPE",
            "nope_layers": " ".join(map(str, asked["nope_layers"])),
            "version": extension.get("version", asked["version"]),
            **asked["model"],
            "seed": asked["seed"],
            **asked["training"],
            "steps": outcome["steps"],
            "extends": extension.get("of"),
            "factor": extension.get("factor"),
            "tuned_steps": extension.get("steps"),
            "tuned_rate": extension.get("learning_rate"),
            "trained_length": trained,
            "diverged": int(outcome["diverged"]),
            "body_parameters": outcome["parameters"]["body"],
            "encoding_parameters": outcome["parameters"]["encoding"],
            "milliseconds_a_step": cost if outcome["steps"] else None,
            "host": each["machine"]["host"],
            "torch": each["machine"]["torch"],
            "date": each["date"],
        }
        for length, score in outcome["scores"].items():
            loss = outcome["losses"][length]
            yield of_run | {"length": int(length), "score": score, "loss": loss}


def export(store: Store, path: Path) -> None:
    """The table as a file that ends in ``.csv`` or ``.parquet``."""
    if path.suffix == ".parquet":
        _connected(store).execute("COPY runs TO ? (FORMAT parquet)", [str(path)])
        return
    if not any(store.done()):
        raise ValueError(f"{store.root} holds no results; run a grid first.")
    with whole(path) as file:
        file.write(as_csv(rows(store)).encode())


def answered(store: Store, query: str) -> tuple[list[str], list[tuple]]:
    """Names of columns and rows of a query over the table ``runs``."""
    connection = _connected(store)
    try:
        answer = connection.execute(query)
        return [each[0] for each in answer.description], answer.fetchall()
    except Exception as error:  # duckdb's own
        raise ValueError(f"{query!r}: {error}") from None


def _connected(store: Store) -> Any:
    """DuckDB with the table, built of the files each time."""
    import duckdb

    connection = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        export(store, path := Path(folder) / "runs.csv")
        words = dict.fromkeys(("run", "version", "extends", "nope_layers", "date"), "VARCHAR")
        made = f"FROM read_csv(?, header = true, sample_size = -1, types = {words})"
        connection.execute(f"CREATE TABLE runs AS {made}", [str(path)])
    return connection


def as_csv(rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows with the same names, the names first."""
    found, text = list(rows), io.StringIO()
    writer = csv.DictWriter(text, list(found[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()
