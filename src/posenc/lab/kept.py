"""Results in one small file, to lie beside a text that speaks of them."""

import json
from pathlib import Path
from typing import Any

from posenc.lab.files import read_json, whole
from posenc.lab.grid import Grid
from posenc.lab.planning import planned
from posenc.lab.store import Results, Store

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
    written = {each["id"]: _written(each) for each in found}
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


def _written(result: dict[str, Any]) -> dict[str, Any]:
    curve = result["outcome"]["curve"]
    left = curve[:: max(1, -(-len(curve) // POINTS))]
    short = [[step, float(f"{loss:.4g}")] for step, loss in left]
    machine = {**result["machine"], "host": ""}
    return {**result, "outcome": {**result["outcome"], "curve": short}, "machine": machine}
