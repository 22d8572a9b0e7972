"""All results as one table: CSV by itself, Parquet and SQL by DuckDB (extra ``lab``)."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from posenc.lab.files import as_csv, whole
from posenc.lab.grid import TUNING_SEED
from posenc.lab.store import Store


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


def asked(store: Store, query: str) -> tuple[list[str], list[tuple]]:
    """Names of columns and rows of a query over the table ``runs``."""
    connection = _connected(store)
    try:
        answer = connection.execute(query)
        return [each[0] for each in answer.description], answer.fetchall()
    except Exception as error:  # duckdb's own
        raise ValueError(f"{query!r}: {error}") from None


def _connected(store: Store) -> Any:
    """DuckDB with the table, built of the files each time."""
    try:
        import duckdb  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("queries and Parquet need DuckDB: pip install 'posenc[lab]'") from None
    connection = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        export(store, path := Path(folder) / "runs.csv")
        words = dict.fromkeys(("run", "version", "extends", "nope_layers", "date"), "VARCHAR")
        made = f"FROM read_csv(?, header = true, sample_size = -1, types = {words})"
        connection.execute(f"CREATE TABLE runs AS {made}", [str(path)])
    return connection
