"""``posenc lab``: encodings compared by training."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from posenc.cli.errors import UserError
from posenc.cli.files import check
from posenc.lab import Grid, Store, grid_from, planned
from posenc.lab.comparison import compared
from posenc.lab.kept import answered, export, keep, taken_out
from posenc.lab.planning import counts
from posenc.lab.report import sentences, write
from posenc.lab.running import RayRunner, Runner, Told, left


def lab(asked: Any) -> int | None:
    """Does it; 1 where runs have failed."""
    action, folder = asked.action, asked.folder
    if asked.target is None and action != "clean" and not asked.query:
        what = "run, by its id" if action == "show" else "grid, as quick"
        raise UserError(f"posenc lab {action} takes a {what}")
    if folder.is_file() and action in ("status", "report", "show"):
        if asked.export is not None:
            check(asked.export, folder=folder)
        with tempfile.TemporaryDirectory() as root:
            taken_out(folder, Path(root))
            return lab(replace(asked, folder=Path(root)))
    if action not in ("plan", "run") and not folder.is_dir():
        raise UserError(f"there is no folder {folder}; run a grid, or name it by --folder")
    store = Store(folder)
    if action == "clean":
        gone = ", ".join(f"{count} {name}" for name, count in store.clean().items())
        print(f"{gone} removed")
        return None
    if action == "show":
        return _show(asked, store)
    grid = grid_from(asked.target or "", asked.encoding or (), check=action in ("plan", "run"))
    work = {"plan": _plan, "run": _run, "status": _status, "report": _report}
    return work[action](asked, grid, store)


def _plan(asked: Any, grid: Grid, store: Store) -> None:
    plan = planned(grid, store)
    found = counts(plan, store)
    tuning = sum(run.kind == "tuning" for run in plan.runs)
    parts = {name: len(getattr(grid, f"{name}s")) for name in ("task", "encoding", "model", "seed")}
    told = (f"{count} {name}{'s' * (count != 1)}" for name, count in parts.items())
    print(f"{grid.name}: {' × '.join(told)}")
    print(f"{found['total']} runs, {tuning} of them to choose learning rates")
    print(f"{found['made']} made, {found['failed']} failed, {found['left']} left")
    print(left(plan, store, asked.workers))


def _run(asked: Any, grid: Grid, store: Store) -> int:
    with Told(store, asked.workers) as told:
        local, ray = Runner(grid, store, asked.workers, told), RayRunner(grid, store, told)
        plan = (local if asked.engine == "local" else ray).run()
    found = counts(plan, store)
    print(f"{found['made']} of {found['total']} runs made, {found['failed']} failed")
    if any(store.is_done(run.id) for run in plan.runs if run.kind == "reported"):
        for task in compared(grid, store).tasks:
            print(task.title, *sentences(task), sep="\n  ")
    return int(found["failed"] > 0)


def _status(asked: Any, grid: Grid, store: Store) -> int:
    plan = planned(grid, store)
    found = counts(plan, store)
    print(", ".join(f"{count} {name}" for name, count in found.items()))
    for run in plan.runs:
        if store.has_failed(run.id):
            print(f"failed {run.id} {run}: {store.path('failures', run.id)}")
        elif store.is_running(run.id) and not store.is_done(run.id):
            print(f"running {run.id} {run}")
    if found["left"]:
        print(left(plan, store, asked.workers))
    return int(found["failed"] > 0)


def _report(asked: Any, grid: Grid, store: Store) -> None:
    output = asked.output or Path(f"{grid.name}.html")
    check(output, ".html", ".htm")
    if asked.export is not None:
        beside = {"report's own table": output.with_suffix(".csv")}
        check(asked.export, ".json", ".csv", ".parquet", **beside)
    for path in write(compared(grid, store), output):
        print(f"wrote {path}")
    if asked.export is not None:
        if asked.export.suffix == ".json":
            keep(store, asked.export, grid)
        else:
            export(store, asked.export)
        print(f"wrote {asked.export}")


def _show(asked: Any, store: Store) -> None:
    if asked.query is not None:
        names, rows = answered(store, asked.query)
        for row in (names, *rows):
            print(*row, sep="\t")
        return
    found = [run for run in store.done() if run.startswith(asked.target or "")]
    if len(found) != 1:
        raise UserError(f"{asked.target!r} names {len(found)} runs in {asked.folder}: {found}")
    print(json.dumps(store.result(found[0]), indent=1, ensure_ascii=False))
