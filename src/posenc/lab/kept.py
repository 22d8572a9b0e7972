"""Results in one small file, to lie beside a text that speaks of them."""

import json
from pathlib import Path
from typing import Any

from posenc.lab.earlier import Results
from posenc.lab.files import read_json, whole
from posenc.lab.grid import Grid
from posenc.lab.planning import planned
from posenc.lab.store import Store, last_line

POINTS = 12
"""Of each curve of losses, at the most."""

MADE = {"id", "configuration", "outcome", "cost", "machine", "date"}
FAILED = {"id", "said"}
"""What the line of a run holds."""


def keep(store: Store, path: Path, grid: Grid | None = None) -> None:
    """Writes results as one JSON file, a line a run.

    Scores and losses are whole; of a curve some points stay, and no machine has its own name. A run
    that was given up has a line too, with what it said last: learning rates are chosen by it.

    Args:
        store: Where results are.
        path: The file.
        grid: That they are of; all that are made if not given.
    """
    results = store.results() if grid is None else _of(grid, store)
    written = [*map(_written, results), *_given_up(grid, store)]
    lines = sorted(written, key=lambda each: each["id"])
    text = ",\n".join(json.dumps(each, ensure_ascii=False, sort_keys=True) for each in lines)
    with whole(path) as file:
        file.write(f"[\n{text}\n]\n".encode())


def taken_out(path: Path, root: Path) -> Store:
    """A store in the folder ``root`` with the results of such a file.

    Raises:
        ValueError: The file is none.

    Example:
        >>> import tempfile
        >>> here = Path(tempfile.mkdtemp())
        >>> keep(Store(here), here / "kept.json"), list(taken_out(here / "kept.json", here).done())
        (None, [])
    """
    try:
        found = read_json(path)
    except ValueError:  # the file of somebody, not one to remove
        found = None
    if not isinstance(found, list) or not all(map(_is_result, found)):
        raise ValueError(
            f"{path} holds no results; posenc lab report GRID --export FILE.json writes them."
        )
    store = Store(root)
    for each in found:
        if each.keys() == FAILED:
            store.note_failure(each["id"], each["said"], final=True)
        else:
            store.keep(each["id"], each)
    return store


def _is_result(found: Any) -> bool:
    if not isinstance(found, dict) or not str(found.get("id", "")).isalnum():
        return False
    return found.keys() == FAILED or found.keys() >= MADE


def _given_up(grid: Grid | None, store: Store) -> list[dict[str, str]]:
    if grid is None:
        runs = [path.stem for path in (store.root / "failures").glob("[!.]*")]
    else:
        runs = [run.id for run in planned(grid, store, Results(store).of).runs]
    failures = {run: store.failure(run) for run in runs if store.has_failed(run)}
    return [{"id": run, "said": last_line(found)} for run, found in failures.items() if found]


def _of(grid: Grid, store: Store) -> list[dict[str, Any]]:
    known = Results(store)
    found = (known.of(run.configuration) for run in planned(grid, store, known.of).runs)
    whole = [each for each in found if each is not None]
    bases = [base for each in whole if (base := known.base_of(each)) is not None]
    return list({each["id"]: each for each in (*whole, *bases)}.values())


def _written(result: dict[str, Any]) -> dict[str, Any]:
    outcome = result["outcome"]
    curve = outcome["curve"]
    left = curve[:: max(1, -(-len(curve) // POINTS))]
    curve = [[step, float(f"{loss:.4g}")] for step, loss in left]
    return {
        **result,
        "outcome": {**outcome, "curve": curve},
        "machine": {**result["machine"], "host": ""},
    }
