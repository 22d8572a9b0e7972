"""All results as one table: CSV by itself, Parquet and SQL by DuckDB (extra ``lab``)."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc.lab.files import whole
from posenc.lab.grid import TUNING_SEED
from posenc.lab.store import Store

WORDS = {
    "run", "kind", "task", "options", "encoding", "nope_layers", "version", "extends", "host",
    "torch", "date",
}  # fmt: skip
REALS = {
    "learning_rate", "clip", "weight_decay", "tuned_rate", "score", "loss", "milliseconds_a_step",
}  # fmt: skip
COLUMNS = (
    "run", "kind", "task", "task_version", "options", "encoding", "nope_layers", "version", "dim",
    "heads", "depth", "seed", "steps", "batch", "learning_rate", "warm_up", "clip", "weight_decay",
    "examined", "extends", "factor", "tuned_steps", "tuned_rate", "length", "trained_length",
    "score", "loss", "diverged", "body_parameters", "encoding_parameters", "milliseconds_a_step",
    "host", "torch", "date",
)  # fmt: skip
"""Whatever tells two runs apart has a column; a model that gives no numbers has no score."""


def rows(store: Store) -> Iterator[dict[str, Any]]:
    """A row for each run and tested length."""
    for each in store.results():
        asked, outcome = each["configuration"], each["outcome"]
        extension, options = asked["extension"] or {}, dict(asked["options"])
        trained = options.pop("trained")
        options.pop("tested")
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
            "milliseconds_a_step": each["cost"]["milliseconds_a_step"]
            if outcome["steps"]
            else None,
            "host": each["machine"]["host"],
            "torch": each["machine"]["torch"],
            "date": each["date"],
        }
        for length, score in outcome["scores"].items():
            measured = {"length": int(length), "score": score, "loss": outcome["losses"][length]}
            row = of_run | measured
            yield {name: row[name] for name in COLUMNS}


def export(store: Store, path: Path) -> None:
    """The table as a file that ends in ``.csv`` or ``.parquet``.

    Raises:
        ValueError: It ends otherwise, or DuckDB is missing for Parquet.
    """
    if path.suffix == ".parquet":
        _connected(store).execute("COPY runs TO ? (FORMAT parquet)", [str(path)])
        return
    if path.suffix != ".csv":
        raise ValueError(f"{path}: the name of an export must end in .csv or .parquet.")
    text = io.StringIO()
    writer = csv.DictWriter(text, list[str](COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(store))
    with whole(path) as file:
        file.write(text.getvalue().encode())


def asked(store: Store, query: str) -> tuple[list[str], list[tuple]]:
    """Names of columns and rows of a query over the table ``runs``.

    Raises:
        ValueError: DuckDB is missing, or cannot answer.
    """
    connection = _connected(store)
    try:
        answer = connection.execute(query)
        return [each[0] for each in answer.description], answer.fetchall()
    except Exception as error:  # duckdb's own
        raise ValueError(f"{query!r}: {error}") from None


def _connected(store: Store) -> Any:
    """DuckDB with the table; built of the files, which are the truth, each time."""
    try:
        import duckdb  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("queries and Parquet need DuckDB: pip install 'posenc[lab]'") from None
    connection = duckdb.connect()
    types = dict.fromkeys(WORDS, "VARCHAR") | dict.fromkeys(REALS, "DOUBLE")
    typed = ", ".join(f"{name} {types.get(name, 'BIGINT')}" for name in COLUMNS)
    connection.execute(f"CREATE TABLE runs ({typed})")
    if values := [list(row.values()) for row in rows(store)]:
        blanks = ", ".join("?" * len(COLUMNS))
        connection.executemany(f"INSERT INTO runs VALUES ({blanks})", values)
    return connection
