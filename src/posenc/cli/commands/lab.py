"""``posenc lab``: encodings compared by training."""

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from typing_extensions import Doc

from posenc.cli.errors import UserError
from posenc.cli.files import check
from posenc.cli.options import File, Output, Whole, Words, by_place, named

if TYPE_CHECKING:
    from posenc.lab import Grid, Store

Action = Literal["plan", "run", "status", "report", "show", "clean"]


@dataclass(frozen=True)
class Lab:
    """plan GRID prints how many runs a grid has, and how long they take on this machine.

    run GRID makes the runs that are left, and prints a summary. You may stop it and run it again.

    status GRID prints which runs are made, running, failed and left.

    report GRID writes one HTML page, with Markdown and CSV beside it.

    show RUN prints one run, by its id or the start of its id.

    clean removes the leftovers of killed and failed runs, and keeps results.

    GRID is a TOML file, or one that comes with posenc: quick, standard or extension.
    """

    action: Annotated[Action, by_place, Doc("What to do.")]
    target: Annotated[Optional[str], by_place, named("GRID"), Doc("A grid, or a run to show.")] = (
        None
    )
    folder: Annotated[Path, named("FOLDER"), Doc("Results, or an export.")] = Path("lab-results")
    encoding: Annotated[
        Words, named("EXPRESSION"), Doc('More encodings, as "mine.py:MyBias({heads})".')
    ] = None
    workers: Annotated[Whole, Doc("Runs at a time, a process each.")] = 1
    engine: Annotated[Literal["local", "ray"], Doc("Who runs: this machine, or Ray.")] = "local"
    output: Annotated[Output, Doc("The report, .html (default: GRID.html).")] = None
    export: Annotated[
        File, Doc("Write results too: .json to be kept, or one table, .csv or .parquet (DuckDB).")
    ] = None
    query: Annotated[Optional[str], named("SQL"), Doc("For show: SQL over the table runs.")] = None

    def run(self) -> int | None:
        """Does it; 1 where runs have failed."""
        if self.target is None and self.action != "clean" and not self.query:
            what = "run, by its id" if self.action == "show" else "grid, as quick"
            raise UserError(f"posenc lab {self.action} takes a {what}")
        if self.folder.is_file() and self.action in ("status", "report", "show"):
            from posenc.lab.kept import taken_out

            if self.export is not None:
                check(self.export, folder=self.folder)
            with tempfile.TemporaryDirectory() as root:
                taken_out(self.folder, Path(root))
                return replace(self, folder=Path(root)).run()
        if self.action not in ("plan", "run") and not self.folder.is_dir():
            raise UserError(f"there is no folder {self.folder}; run a grid, or name it by --folder")
        from posenc.lab import Store

        return getattr(self, f"_{self.action}")(Store(self.folder))

    def _grid(self, *, check: bool = False) -> "Grid":
        from posenc.lab import grid_from

        return grid_from(self.target or "", self.encoding or (), check=check)

    def _plan(self, store: "Store") -> None:
        from posenc.lab.planning import counts, planned
        from posenc.lab.progress import left

        grid = self._grid(check=True)
        plan = planned(grid, store)
        found = counts(plan, store)
        tuning = sum(run.kind == "tuning" for run in plan.runs)
        parts = {"task": grid.tasks, "encoding": grid.encodings, "model": grid.models,
                 "seed": grid.seeds}  # fmt: skip
        told = (f"{len(each)} {name}{'s' * (len(each) != 1)}" for name, each in parts.items())
        print(f"{grid.name}: {' × '.join(told)}")
        print(f"{found['total']} runs, {tuning} of them to choose learning rates")
        print(f"{found['made']} made, {found['failed']} failed, {found['left']} left")
        print(left(plan, store, self.workers))

    def _run(self, store: "Store") -> int:
        from posenc.lab.cluster import RayRunner
        from posenc.lab.comparison import compared
        from posenc.lab.planning import counts
        from posenc.lab.progress import Told
        from posenc.lab.report.words import sentences
        from posenc.lab.running import Runner

        grid = self._grid(check=True)
        with Told(store, self.workers) as told:
            local, ray = Runner(grid, store, self.workers, told), RayRunner(grid, store, told)
            plan = (local if self.engine == "local" else ray).run()
        found = counts(plan, store)
        print(f"{found['made']} of {found['total']} runs made, {found['failed']} failed")
        if any(store.is_done(run.id) for run in plan.runs if run.kind == "reported"):
            for task in compared(grid, store).tasks:
                print(task.title, *sentences(task), sep="\n  ")
        return int(found["failed"] > 0)

    def _status(self, store: "Store") -> int:
        from posenc.lab.planning import counts, planned
        from posenc.lab.progress import left

        plan = planned(self._grid(), store)
        found = counts(plan, store)
        print(", ".join(f"{count} {name}" for name, count in found.items()))
        for run in plan.runs:
            if store.has_failed(run.id):
                print(f"failed {run.id} {run}: {store.path('failures', run.id)}")
            elif store.is_running(run.id) and not store.is_done(run.id):
                print(f"running {run.id} {run}")
        if found["left"]:
            print(left(plan, store, self.workers))
        return int(found["failed"] > 0)

    def _report(self, store: "Store") -> None:
        from posenc.lab.comparison import compared
        from posenc.lab.kept import keep
        from posenc.lab.report import write
        from posenc.lab.tables import export

        grid = self._grid()
        output = self.output or Path(f"{grid.name}.html")
        check(output, ".html", ".htm")
        if self.export is not None:
            beside = {"report's own table": output.with_suffix(".csv")}
            check(self.export, ".json", ".csv", ".parquet", **beside)
        for path in write(compared(grid, store), output):
            print(f"wrote {path}")
        if self.export is not None:
            if self.export.suffix == ".json":
                keep(store, self.export, grid)
            else:
                export(store, self.export)
            print(f"wrote {self.export}")

    def _show(self, store: "Store") -> None:
        if self.query is not None:
            from posenc.lab.tables import asked

            names, rows = asked(store, self.query)
            for row in (names, *rows):
                print(*row, sep="\t")
            return
        found = [run for run in store.done() if run.startswith(self.target or "")]
        if len(found) != 1:
            raise UserError(f"{self.target!r} names {len(found)} runs in {self.folder}: {found}")
        print(json.dumps(store.result(found[0]), indent=1, ensure_ascii=False))

    def _clean(self, store: "Store") -> None:
        gone = store.clean()
        print(", ".join(f"{count} {name}" for name, count in gone.items()) + " removed")
