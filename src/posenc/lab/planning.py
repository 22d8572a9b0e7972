"""From a grid to its runs: which are made, which can be made now, and which wait for others."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from itertools import product
from math import inf
from statistics import fmean, median
from typing import Any, Literal

from posenc.lab.configuration import Configuration, ModelSize
from posenc.lab.grid import TUNING_SEED, Grid, GridEncoding, GridTask, configured, extended
from posenc.lab.store import Store

Result = Callable[[Configuration], dict[str, Any] | None]


@dataclass(frozen=True)
class Planned:
    """One run of a grid; it chooses a learning rate, is reported, or extends one that is."""

    configuration: Configuration
    kind: Literal["tuning", "reported", "extended"]
    task: str
    encoding: str  # or what it was extended by
    model: str  # where there are several
    id: str

    def is_ready(self, store: Store) -> bool:
        """Whether all that it needs is made."""
        extension = self.configuration.extension
        return extension is None or store.is_done(extension.of)

    def __str__(self) -> str:
        rate = self.configuration.training.learning_rate
        model = f" · {self.model}" if self.model else ""
        tried = f" · learning rate {rate:g}" if self.kind == "tuning" else ""
        return f"{self.task} · {self.encoding}{model}{tried} · seed {self.configuration.seed}"


@dataclass(frozen=True)
class Plan:
    """The runs whose configuration is known, and how many more there will be."""

    runs: tuple[Planned, ...]
    waiting: int

    @property
    def total(self) -> int:
        return len(self.runs) + self.waiting


def planned(grid: Grid, store: Store, result: Result | None = None) -> Plan:
    """The runs of ``grid``, by the learning rates that results so far choose."""
    found = result or (lambda configuration: store.result(configuration.id))
    runs: dict[str, Planned] = {}
    waiting = 0
    with chdir(grid.folder):
        for each in (run for cell in grid.cells() for run in _runs(grid, cell, store, found)):
            if each is None:
                waiting += 1
            elif runs.setdefault(each.id, each) != each:
                raise ValueError(f"{runs[each.id]} and {each} are the same run.")
    return Plan(tuple(runs.values()), waiting)


def _runs(
    grid: Grid, cell: tuple[GridTask, ModelSize, GridEncoding], store: Store, result: Result
) -> Iterator[Planned | None]:
    """The runs of one encoding on one task; None for each that waits."""
    task, model, encoding = cell
    names = (task.name, encoding.name, grid.model_name(model))
    rates, steps = task.tuning.learning_rates, task.tuning.tuning_steps
    rate: float | None = rates[0]
    if len(rates) > 1:
        seeds = range(TUNING_SEED, TUNING_SEED + task.tuning.tuning_seeds)
        few = {} if steps is None else {"steps": steps}
        tuning = [
            configured(task, encoding, model, seed, learning_rate=each, **few)
            for each, seed in product(rates, seeds)
        ]
        yield from (Planned(each, "tuning", *names, each.id) for each in tuning)
        rate = _chosen_rate(tuning, store, result)
    for seed in grid.seeds:
        if rate is None:
            yield from (None for _ in variants(grid, encoding))
            continue
        base = configured(task, encoding, model, seed, learning_rate=rate)
        yield Planned(base, "reported", *names, base.id)
        for extension in grid.extending(encoding):
            for name, factor, steps in extension.variants():
                made = extended(base, extension, factor, steps)
                yield Planned(made, "extended", task.name, name, names[2], made.id)


def variants(grid: Grid, encoding: GridEncoding) -> list[str]:
    """The encoding itself and its extensions."""
    extensions = grid.extending(encoding)
    return [encoding.name, *(name for each in extensions for name, _, _ in each.variants())]


def _chosen_rate(tuning: list[Configuration], store: Store, result: Result) -> float | None:
    """The learning rate with the least held-out loss at the *trained* length; None before.

    Of two that are alike the smaller one is taken. Diverged and failed runs count as the worst.
    """
    losses: dict[float, list[float]] = {}
    for each in tuning:
        made = result(each)
        if made is None and not store.has_failed(each.id):
            return None
        outcome = made["outcome"] if made else {"diverged": True}
        found = inf if outcome["diverged"] or outcome["loss"] is None else outcome["loss"]
        losses.setdefault(each.training.learning_rate, []).append(found)
    return min(sorted(losses), key=lambda rate: fmean(losses[rate]))


def seconds_left(plan: Plan, store: Store, host: str, workers: int) -> float | None:
    """Seconds until all is made, by the last runs on this machine; None before there is one.

    A step takes what those of the same task and encoding took, or of the same task, or any.
    """
    speeds = defaultdict[tuple, list[float]](list)
    for each in store.results():
        if each["machine"]["host"] == host:
            asked, steps = each["configuration"], max(1, each["outcome"]["steps"])
            for kind in ((asked["task"], *asked["use"], ""), (asked["task"],), ()):
                speeds[kind].append(each["cost"]["seconds"] / steps)
    if not speeds:
        return None

    def seconds(run: Planned) -> float:
        asked = run.configuration
        kinds = (asked.task, *asked.use, ""), (asked.task,), ()
        speed = median(next(speeds[kind] for kind in kinds if kind in speeds))
        return max(1, (asked.extension or asked.training).steps) * speed

    to_make = [r for r in plan.runs if not store.is_done(r.id) and not store.has_failed(r.id)]
    waiting = plan.waiting * median(map(seconds, plan.runs)) if plan.waiting else 0.0
    return (sum(map(seconds, to_make)) + waiting) / workers


def counts(plan: Plan, store: Store) -> dict[str, int]:
    """How many runs are made, running, given up and left."""
    made = sum(store.is_done(run.id) for run in plan.runs)
    failed = sum(store.has_failed(run.id) for run in plan.runs)
    running = sum(store.is_running(run.id) and not store.is_done(run.id) for run in plan.runs)
    left = plan.total - made - failed - running
    return {"total": plan.total, "made": made, "running": running, "failed": failed, "left": left}
