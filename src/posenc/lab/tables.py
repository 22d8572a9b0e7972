"""All results as one table: CSV by itself, Parquet and SQL by DuckDB (extra ``lab``)."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc.lab.files import whole
from posenc.lab.grid import TUNING_SEED
from posenc.lab.planning import Kind
from posenc.lab.store import Store

COLUMNS = (
    "run", "kind", "task", "task_version", "options", "encoding", "nope_layers", "version", "dim",
    "heads", "depth", "seed", "steps", "batch", "learning_rate", "warm_up", "clip", "weight_decay",
    "examined", "extends", "factor", "tuned_steps", "tuned_rate", "length", "trained_length",
    "score", "loss", "diverged", "body_parameters", "encoding_parameters", "milliseconds_a_step",
    "host", "torch", "date",
)  # fmt: skip
"""Whatever tells two runs apart has a column; a model that gives no numbers has no score."""

WORDS = (
    "run", "kind", "task", "options", "encoding", "nope_layers", "version", "extends", "host",
    "torch", "date",
)  # fmt: skip

REALS = (
    "learning_rate", "clip", "weight_decay", "tuned_rate", "score", "loss", "milliseconds_a_step",
)  # fmt: skip

LENGTHS = ("trained", "tested")
"""Options of tasks that have columns of their own."""


def rows(store: Store) -> Iterator[dict[str, Any]]:
    """A row for each run and tested length."""
    for each in store.results():
        asked, outcome = each["configuration"], each["outcome"]
        training, extension = asked["training"], asked["extension"] or {}
        for length, score in outcome["scores"].items():
            yield {
                "run": each["id"],
                "kind": _kind(asked),
                "task": asked["task"],
                "task_version": asked["task_version"],
                "options": _options(asked["options"]),
                "encoding": " + ".join(extension.get("use", asked["use"])) or "NoPE",
                "nope_layers": " ".join(map(str, asked["nope_layers"])),
                "version": extension.get("version", asked["version"]),
                **asked["model"],
                "seed": asked["seed"],
                "steps": outcome["steps"],
                "batch": training["batch"],
                "learning_rate": training["learning_rate"],
                "warm_up": training["warm_up"],
                "clip": training["clip"],
                "weight_decay": training["weight_decay"],
                "examined": training["examined"],
                "extends": extension.get("of"),
                "factor": extension.get("factor"),
                "tuned_steps": extension.get("steps"),
                "tuned_rate": extension.get("learning_rate"),
                "length": int(length),
                "trained_length": asked["options"]["trained"],
                "score": score,
                "loss": outcome["losses"][length],
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


def _kind(asked: dict[str, Any]) -> Kind:
    """What a run is for; a seed of tuning is that of no reported run."""
    if asked["extension"] is not None:
        return "extended"
    return "tuning" if asked["seed"] >= TUNING_SEED else "reported"


def _options(given: dict[str, Any]) -> str:
    return json.dumps({name: given[name] for name in sorted(given) if name not in LENGTHS})


def as_csv(store: Store) -> str:
    """The table as CSV, with a line of names."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list[str](COLUMNS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows(store))
    return text.getvalue()


def export(store: Store, path: Path) -> None:
    """The table as a file that ends in ``.csv`` or ``.parquet``.

    Raises:
        ValueError: It ends otherwise, or DuckDB is missing for Parquet.
    """
    if path.suffix == ".csv":
        with whole(path) as file:
            file.write(as_csv(store).encode())
        return
    if path.suffix != ".parquet":
        raise ValueError(f"{path}: the name of an export must end in .csv or .parquet.")
    _connected(store).execute("COPY runs TO ? (FORMAT parquet)", [str(path)])


def asked(store: Store, query: str) -> tuple[list[str], list[tuple]]:
    """Names of columns and rows of a query over the table ``runs``.

    Raises:
        ValueError: DuckDB is missing, or cannot answer.
    """
    duckdb = _duckdb()
    try:
        answer = _connected(store).execute(query)
        return [each[0] for each in answer.description], answer.fetchall()
    except duckdb.Error as error:
        raise ValueError(f"{query!r}: {error}") from None


def _connected(store: Store) -> Any:
    """DuckDB with the table; built of the files, which are the truth, each time."""
    duckdb = _duckdb()
    connection = duckdb.connect()
    typed = ", ".join(f"{name} {_type(name)}" for name in COLUMNS)
    connection.execute(f"CREATE TABLE runs ({typed})")
    values = [[row[name] for name in COLUMNS] for row in rows(store)]
    if values:
        blanks = ", ".join("?" * len(COLUMNS))
        connection.executemany(f"INSERT INTO runs VALUES ({blanks})", values)
    return connection


def _type(name: str) -> str:
    if name in WORDS:
        return "VARCHAR"
    if name in REALS:
        return "DOUBLE"
    return "BIGINT"


def _duckdb() -> Any:
    try:
        import duckdb  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(
            "queries and Parquet need DuckDB, which is not installed: pip install 'posenc[lab]'"
        ) from None
    return duckdb
