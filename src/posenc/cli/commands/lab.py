"""``posenc lab``: encodings compared by training."""

import json
import platform
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

from posenc.cli.errors import UserError, check_least
from posenc.cli.files import check
from posenc.cli.options import by_place, option

if TYPE_CHECKING:
    from posenc.lab import Grid, Store

Action = Literal["plan", "run", "status", "report", "show", "clean"]

HEEDED = {
    "workers": ("plan", "run", "status"),
    "engine": ("run",),
    "output": ("report",),
    "export": ("report",),
    "query": ("show",),
}
"""Which actions look at an option."""


@dataclass(frozen=True)
class Lab:
    """plan GRID says how many runs a grid has, and how long they take on this machine.

    run GRID makes those that are not made; it may be stopped and run again at any time.

    status GRID says which are made, running, failed and left.

    report GRID writes what they say as one HTML page, with Markdown and CSV beside it.

    show RUN prints everything about one run, by its id or how it begins.

    clean removes leftovers of runs that were killed or failed; results stay.

    GRID is a TOML file, or one that comes with posenc: quick, standard or extension.
    """

    action: Annotated[Action, by_place, option("What to do.", "ACTION")]
    target: Annotated[Optional[str], by_place, option("A grid; for show, a run.", "GRID")] = None
    folder: Annotated[Path, option("Results, or an export of them.", "FOLDER")] = Path(
        "lab-results"
    )
    workers: Annotated[int, option("Runs at a time, a process each.", "N")] = 1
    engine: Annotated[Literal["local", "ray"], option("Who runs: this machine, or Ray.")] = "local"
    output: Annotated[
        Optional[Path],
        option("The report: a name ending in .html.", "FILE", shown="GRID.html", short="-o"),
    ] = None
    export: Annotated[
        Optional[Path],
        option(
            "Write results too: .json to be kept, or all as one table, .csv or .parquet (DuckDB).",
            "FILE",
        ),
    ] = None
    query: Annotated[Optional[str], option("For show: SQL over the table runs.", "SQL")] = None

    def run(self) -> int | None:
        """Does it; 1 where runs have failed."""
        check_least(1, workers=self.workers)
        for name, actions in HEEDED.items():
            usual = type(self).__dataclass_fields__[name].default
            if getattr(self, name) != usual and self.action not in actions:
                raise UserError(f"--{name} says nothing to posenc lab {self.action}; leave it out")
        if self.engine == "ray" and self.workers != 1:
            raise UserError("--workers are those of --engine local; leave it out")
        if self.target is not None and (self.action == "clean" or self.query is not None):
            raise UserError(f"{self.target!r} says nothing here; leave it out")
        if self.folder.is_file() and self.action in ("status", "report", "show"):
            from posenc.lab.kept import taken_out

            if self.export is not None:
                check(self.export, folder=self.folder)
            with tempfile.TemporaryDirectory() as root:
                taken_out(self.folder, Path(root))
                return replace(self, folder=Path(root)).run()
        return getattr(self, f"_{self.action}")()

    def _grid(self, *, check: bool = False) -> "Grid":
        from posenc.lab import grid_from

        if self.target is None:
            raise UserError(f"posenc lab {self.action} takes a grid, as posenc lab plan quick")
        return grid_from(self.target, check=check)

    def _store(self, *, made: bool = True) -> "Store":
        from posenc.lab import Store

        if made and not self.folder.is_dir():
            raise UserError(f"there is no folder {self.folder}; run a grid, or name it by --folder")
        return Store(self.folder)

    def _plan(self) -> None:
        from posenc.lab.planning import counts, planned
        from posenc.lab.progress import left

        grid, store = self._grid(check=True), self._store(made=False)
        plan = planned(grid, store)
        found = counts(plan, store)
        tuning = sum(run.kind == "tuning" for run in plan.runs)
        models = f" × {len(grid.models)} models" if len(grid.models) > 1 else ""
        print(
            f"{grid.name}: {len(grid.tasks)} tasks × {len(grid.encodings)} encodings{models} × "
            f"{len(grid.seeds)} seeds"
        )
        print(f"{found['total']} runs, {tuning} of them to choose learning rates")
        print(f"{found['made']} made, {found['failed']} failed, {found['left']} left")
        print(left(plan, store, platform.node(), self.workers))

    def _run(self) -> int:
        from posenc.lab.cluster import RayRunner
        from posenc.lab.planning import counts
        from posenc.lab.progress import Told
        from posenc.lab.running import FullDiskError, Runner

        grid, store = self._grid(check=True), self._store(made=False)
        with Told(store, platform.node(), self.workers) as told:
            local, ray = Runner(grid, store, self.workers, told), RayRunner(grid, store, told)
            try:
                plan = (local if self.engine == "local" else ray).run()
            except FullDiskError as error:
                raise UserError(str(error)) from None
        found = counts(plan, store)
        print(f"{found['made']} of {found['total']} runs made, {found['failed']} failed")
        return int(found["failed"] > 0)

    def _status(self) -> int:
        from posenc.lab.planning import counts, planned
        from posenc.lab.progress import left

        grid, store = self._grid(), self._store()
        plan = planned(grid, store)
        found = counts(plan, store)
        print(", ".join(f"{count} {name}" for name, count in found.items()))
        for run in plan.runs:
            if store.has_failed(run.id):
                print(f"failed {run.id} {run}: {store.path('failures', run.id)}")
            elif store.is_running(run.id) and not store.is_done(run.id):
                print(f"running {run.id} {run}")
        if found["left"]:
            print(left(plan, store, platform.node(), self.workers))
        return int(found["failed"] > 0)

    def _report(self) -> None:
        from posenc.lab.comparison import compared
        from posenc.lab.kept import keep
        from posenc.lab.report import write
        from posenc.lab.tables import export

        grid, store = self._grid(), self._store()
        output = self.output or Path(f"{grid.name}.html")
        check(output, ".html", ".htm")
        if self.export is not None:
            check(self.export, ".json", ".csv", ".parquet")
            beside = output.with_suffix(".csv")
            if self.export.resolve() == beside.resolve():
                raise UserError(
                    f"{self.export} is the table that the report writes beside {output}"
                )
        for path in write(compared(grid, store), output):
            print(f"wrote {path}")
        if self.export is not None:
            if self.export.suffix == ".json":
                keep(store, self.export, grid)
            else:
                export(store, self.export)
            print(f"wrote {self.export}")

    def _show(self) -> None:
        store = self._store()
        if self.query is not None:
            from posenc.lab.tables import asked

            names, rows = asked(store, self.query)
            for row in (names, *rows):
                print(*row, sep="\t")
            return
        if self.target is None:
            raise UserError("posenc lab show takes a run, by its id or how it begins, or --query")
        found = [run for run in store.done() if run.startswith(self.target)]
        if len(found) != 1:
            raise UserError(f"{self.target!r} names {len(found)} runs in {self.folder}: {found}")
        print(json.dumps(store.result(found[0]), indent=1, ensure_ascii=False))

    def _clean(self) -> None:
        gone = self._store().clean()
        print(", ".join(f"{count} {name}" for name, count in gone.items()) + " removed")
