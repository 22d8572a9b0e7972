"""From a grid to its runs: which are made, which can be made now, and which wait for others."""

from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from math import inf
from statistics import fmean, median
from typing import Any, Literal

from posenc.lab.configuration import Configuration, ModelSize
from posenc.lab.grid import (
    TUNING_SEED,
    Grid,
    GridEncoding,
    GridTask,
    configured,
    extended,
)
from posenc.lab.store import Store

Kind = Literal["tuning", "reported", "extended"]
Result = Callable[[Configuration], dict[str, Any] | None]


@dataclass(frozen=True)
class Planned:
    """One run of a grid.

    Attributes:
        configuration: The run.
        kind: Whether it chooses a learning rate, is reported, or extends one that is.
        task: Name of its task.
        encoding: Name of its encoding, or of what it was extended by.
        model: Name of its body, where there are several.
        id: The run's name.
    """

    configuration: Configuration
    kind: Kind
    task: str
    encoding: str
    model: str
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
    """All runs of a grid, as far as they are known.

    Attributes:
        runs: Those whose configuration is settled; none stands here twice.
        waiting: How many more there will be, once learning rates are chosen.
    """

    runs: tuple[Planned, ...]
    waiting: int

    @property
    def total(self) -> int:
        """All of them."""
        return len(self.runs) + self.waiting


def planned(grid: Grid, store: Store, result: Result | None = None) -> Plan:
    """The runs of ``grid``.

    Args:
        grid: What is to be run.
        store: Where it is seen which learning rates are chosen.
        result: What a configuration gave; that of the store if not given.

    Raises:
        ValueError: Two names of the grid are one run, so that a report could show it as one alone.
    """
    found = result or (lambda configuration: store.result(configuration.id))
    runs: dict[str, Planned] = {}
    waiting = 0
    with chdir(grid.folder):
        for task in grid.tasks:
            for model in grid.models:
                for encoding in grid.on(task):
                    for each in _runs(grid, task, encoding, model, store, found):
                        if each is None:
                            waiting += 1
                        elif runs.setdefault(each.id, each) != each:
                            raise ValueError(
                                f"{runs[each.id]} and {each} are one and the same run; leave one "
                                "of the two names out of the grid."
                            )
    return Plan(tuple(runs.values()), waiting)


def _runs(
    grid: Grid,
    task: GridTask,
    encoding: GridEncoding,
    model: ModelSize,
    store: Store,
    result: Result,
) -> Iterator[Planned | None]:
    """The runs of one encoding on one task; None for each that waits."""
    named = (task.name, encoding.name, grid.model_name(model))
    rate = task.rates[0]
    if len(task.rates) > 1:
        tuning = list(tuning_runs(grid, task, encoding, model))
        for each in tuning:
            yield Planned(each, "tuning", *named, each.id)
        chosen = chosen_rate(tuning, store, result)
        if chosen is None:
            yield from (None for _ in variants(grid, encoding) for _ in grid.seeds)
            return
        rate = chosen
    for seed in grid.seeds:
        base = configured(task, encoding, model, rate=rate, seed=seed)
        yield Planned(base, "reported", *named, base.id)
        for extension in grid.extensions:
            if extension.of == encoding.name:
                for name, factor, steps in extension.variants():
                    made = extended(base, extension, factor, steps)
                    yield Planned(made, "extended", task.name, name, named[2], made.id)


def variants(grid: Grid, encoding: GridEncoding) -> list[str]:
    """The encoding itself and its extensions."""
    extensions = [each for each in grid.extensions if each.of == encoding.name]
    return [encoding.name, *(name for each in extensions for name, _, _ in each.variants())]


def tuning_runs(
    grid: Grid, task: GridTask, encoding: GridEncoding, model: ModelSize
) -> Iterator[Configuration]:
    """The same few runs for every encoding, on seeds that are never reported."""
    for rate in task.rates:
        for seed in range(TUNING_SEED, TUNING_SEED + grid.tuning_seeds):
            yield configured(task, encoding, model, rate=rate, seed=seed, steps=grid.tuning_steps)


def chosen_rate(tuning: list[Configuration], store: Store, result: Result) -> float | None:
    """The learning rate with the least held-out loss at the *trained* length; None before.

    Longer lengths have no say, and of two that are alike the smaller one is taken. A run that was
    given up counts as one that diverged: worse than any other, whatever its loss.
    """
    losses: dict[float, list[float]] = {}
    for each in tuning:
        made = result(each)
        if made is None and not store.has_failed(each.id):
            return None
        whole = made is not None and not made["outcome"]["diverged"]
        found = made["outcome"]["loss"] if made is not None and whole else None
        losses.setdefault(each.training.learning_rate, []).append(inf if found is None else found)
    return min(sorted(losses), key=lambda rate: fmean(losses[rate]))


# How long it will take.


@dataclass(frozen=True)
class Speeds:
    """Milliseconds a step, whole runs divided by their steps, as measured on this machine."""

    known: tuple[tuple[str, tuple[str, ...], float], ...]

    @classmethod
    def of(cls, store: Store, host: str) -> "Speeds":
        """From the results that were made on a machine of this name."""
        return cls(
            tuple(
                (
                    each["configuration"]["task"],
                    tuple(each["configuration"]["use"]),
                    1000 * each["cost"]["seconds"] / max(1, each["outcome"]["steps"]),
                )
                for each in store.results()
                if each["machine"]["host"] == host
            )
        )

    def seconds(self, run: Planned) -> float | None:
        """What a run will take: as its like did, or its task, or any run; None before the first."""
        task, use = run.configuration.task, run.configuration.use
        same = [ms for name, known, ms in self.known if (name, known) == (task, use)]
        alike = [ms for name, _, ms in self.known if name == task]
        found = same or alike or [ms for _, _, ms in self.known]
        extension = run.configuration.extension
        steps = run.configuration.training.steps if extension is None else extension.steps
        return median(found) * max(1, steps) / 1000 if found else None


def seconds_left(plan: Plan, store: Store, host: str, workers: int) -> float | None:
    """Seconds until all is made, by the last runs on this machine; None before there is one."""
    speeds = Speeds.of(store, host)
    to_make = [r for r in plan.runs if not store.is_done(r.id) and not store.has_failed(r.id)]
    each = [speeds.seconds(run) for run in to_make]
    if any(found is None for found in each):
        return None
    known = [found for found in each if found is not None]
    reported = [speeds.seconds(run) for run in plan.runs] or [0.0]
    typical = median([found for found in reported if found is not None] or [0.0])
    return (sum(known) + plan.waiting * typical) / workers


def counts(plan: Plan, store: Store) -> dict[str, Any]:
    """How many runs are made, running, given up and left."""
    made = sum(store.is_done(run.id) for run in plan.runs)
    failed = sum(store.has_failed(run.id) for run in plan.runs)
    running = sum(store.is_running(run.id) and not store.is_done(run.id) for run in plan.runs)
    return {
        "total": plan.total,
        "made": made,
        "running": running,
        "failed": failed,
        "left": plan.total - made - failed - running,
    }
