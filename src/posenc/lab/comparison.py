"""The numbers of a report, all of them: what shows a grid prints and draws these and no others."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import nan
from typing import Any, NamedTuple

from posenc.lab import statistics
from posenc.lab.grid import Gap, Grid, GridTask
from posenc.lab.planning import counts, planned
from posenc.lab.statistics import Interval, Pair
from posenc.lab.store import Results, Store
from posenc.lab.tasks import Published, Task

PURPOSES = ((10, "a claim"), (5, "a comparison"), (3, "exploring"), (0, "a first look"))
"""From how many seeds on a grid is good for what."""


@dataclass(frozen=True)
class Scored:
    """One encoding on one task."""

    name: str
    seeds: tuple[int, ...]
    scores: Mapping[int, Mapping[int, float]]  # by length and seed, as the task scores
    reported: Mapping[int, Mapping[int, float]]  # the same as it is compared, without mere guesses
    fits: tuple[bool, ...]  # whether each seed fitted at the trained length, before any extension
    before: float  # what is compared, there
    middle: Mapping[int, Interval]  # interquartile mean of ``reported``, by length
    diverged: tuple[int, ...]  # the seeds whose training ended early
    rate: float  # of learning
    curves: Mapping[int, Sequence[Sequence[float]]]  # points [step, loss] of each seed
    parameters: int  # numbers that the encoding learns
    milliseconds: Mapping[int, float]  # a step, by seed
    tuned_rate: float | None  # of steps after training, where there are any

    @property
    def has_fitted(self) -> bool:
        """Whether half of the seeds or more fitted the task; else nothing longer says much."""
        return 2 * sum(self.fits) >= len(self.fits)


class Expected(NamedTuple):
    """An ordering that the grid expects, its length, and the differences of each seed."""

    gap: Gap
    length: int
    differences: Mapping[int, float]


class Beside(NamedTuple):
    """Published numbers beside ours, and how many ``of`` the pairs have the ``same`` order."""

    published: Published
    ours: Mapping[str, float]
    same: int
    of: int


@dataclass(frozen=True)
class TaskComparison:
    """All encodings on one task and one body."""

    task: GridTask
    model: str  # name of the body, where there are several
    title: str  # how the report calls both
    encodings: Mapping[str, Scored]  # in the grid's order
    pairs: Mapping[int, Sequence[Pair]]  # every pair, by length
    length: int  # where encodings are compared: the longest that any of them has
    ranks: Mapping[str, int]  # places there, only of those that fitted
    gaps: Sequence[Expected]
    beside: Sequence[Beside]


@dataclass(frozen=True)
class Comparison:
    """A whole grid, as far as it is made."""

    grid: Grid
    counts: Mapping[str, int]  # runs made, failed and left
    tasks: Sequence[TaskComparison]  # one for each task and body
    machines: Sequence[Mapping[str, Any]]
    dates: tuple[str, str]  # of the first run and the last
    purpose: str  # what so many seeds are good for
    earlier: int  # runs whose encodings have changed in their source since
    failures: Mapping[str, str]  # what runs that were given up have said


def titled(task: GridTask, model: str) -> str:
    return f"{task.name} ({model})" if model else task.name


def compared(grid: Grid, store: Store) -> Comparison:
    """Everything that a report says of a grid."""
    known, said = Results(store), store.failures()
    plan = planned(grid, store, known.of)
    made: dict[tuple[str, str], dict[str, list[dict]]] = {}  # by task and body, by encoding
    for run in plan.runs:
        result = None if run.kind == "tuning" else known.of(run.configuration)
        if result is not None:
            own = made.setdefault((run.task, run.model), {})
            own.setdefault(run.encoding, []).append(result)
    if not made:
        raise ValueError(f"grid {grid.name} has no results in {store.root}; run it first.")
    tasks = {task.name: task for task in grid.tasks}
    groups = [results for own in made.values() for results in own.values()]
    fewest, found = min(map(len, groups)), list(chain(*groups))
    dates = [each["date"] for each in found]
    return Comparison(
        grid=grid,
        counts=counts(plan, store),
        tasks=[_task(grid, tasks[name], model, own, known) for (name, model), own in made.items()],
        machines=list({str(each["machine"]): each["machine"] for each in found}.values()),
        dates=(min(dates), max(dates)),
        purpose=next(purpose for least, purpose in PURPOSES if fewest >= least),
        earlier=len(known.earlier),
        failures={str(run): said[run.id] for run in plan.runs if run.id in said},
    )


def _task(
    grid: Grid, task: GridTask, model: str, made: Mapping[str, list[dict]], known: Results
) -> TaskComparison:
    encodings = {name: _scored(name, task, results, known) for name, results in made.items()}
    sign, pairs = _sign(task.task), {}
    for length in sorted({length for each in encodings.values() for length in each.scores}):
        found = {name: e.reported.get(length, {}) for name, e in encodings.items()}
        signed = {n: {s: sign * v for s, v in of.items()} for n, of in found.items() if of}
        pairs[length] = statistics.pairs(signed)
    length = max(pairs)
    fitted = [n for n, each in encodings.items() if each.has_fitted and length in each.reported]
    among = [p for p in pairs[length] if p.better in fitted and p.worse in fitted]
    return TaskComparison(
        task=task,
        model=model,
        title=titled(task, model),
        encodings=encodings,
        pairs=pairs,
        length=length,
        ranks=statistics.ranks(fitted, among),
        gaps=[_expected(gap, task, encodings) for gap in grid.gaps if gap.task == task.name],
        beside=[_beside(each, task, encodings, length) for each in task.task.published],
    )


def _sign(of: Task | Published) -> float:
    return -1.0 if of.lower_is_better else 1.0


def _scored(name: str, task: GridTask, results: list[dict], known: Results) -> Scored:
    kind, middle = task.task, statistics.interquartile_mean
    made = {r["configuration"]["seed"]: r for r in results}
    made = dict(sorted(made.items()))
    bases = {seed: known.base_of(each) or each for seed, each in made.items()}
    of_bases = {seed: _scores(base, task) for seed, base in bases.items()}
    scores, reported = defaultdict[int, dict](dict), defaultdict[int, dict](dict)
    for seed, each in made.items():
        own, learned = _scores(each, task), of_bases[seed][kind.trained]
        for length, value in own.items():
            scores[length][seed] = value
            if (told := kind.reported(own, length, learned)) is not None:
                reported[length][seed] = told
    before = [kind.reported(own, kind.trained, own[kind.trained]) for own in of_bases.values()]
    before = [each for each in before if each is not None]
    first = results[0]
    extension = first["configuration"]["extension"] or {"steps": 0}
    pairs = [(seed, each["outcome"], bases[seed]["outcome"]) for seed, each in made.items()]
    timed = {seed: each["cost"] for seed, each in made.items() if each["outcome"]["steps"]}
    return Scored(
        name=name,
        seeds=tuple(made),
        scores=dict(scores),
        reported=dict(reported),
        fits=tuple(kind.fits(own[kind.trained]) for own in of_bases.values()),
        before=float(middle(before)) if before else nan,
        middle={n: statistics.bootstrap([*v.values()], middle) for n, v in reported.items()},
        diverged=tuple(s for s, one, base in pairs if one["diverged"] or base["diverged"]),
        rate=first["configuration"]["training"]["learning_rate"],
        curves={seed: each["outcome"]["curve"] for seed, each in made.items()},
        parameters=first["outcome"]["parameters"]["encoding"],
        milliseconds={seed: cost["milliseconds_a_step"] for seed, cost in timed.items()},
        tuned_rate=extension["learning_rate"] if extension["steps"] else None,
    )


def _scores(result: dict, task: GridTask) -> dict[int, float]:
    """By length; a model that gives no numbers counts as one who guesses."""
    own = {int(length): value for length, value in result["outcome"]["scores"].items()}
    return {length: task.task.chance if v is None else v for length, v in own.items()}


def _expected(gap: Gap, task: GridTask, encodings: Mapping[str, Scored]) -> Expected:
    length, sign = gap.at * task.task.trained, _sign(task.task)
    known = (encodings[n].reported if n in encodings else {} for n in (gap.better, gap.worse))
    one, other = (reported.get(length, {}) for reported in known)
    return Expected(gap, length, {s: sign * (one[s] - other[s]) for s in one if s in other})


def _beside(
    published: Published, task: GridTask, encodings: Mapping[str, Scored], length: int
) -> Beside:
    run = [encodings[name] for name in published.values if name in encodings]
    ours = {each.name: each.middle[length].value for each in run if length in each.middle}
    same, of = statistics.agreement(
        {n: _sign(task.task) * v for n, v in ours.items() if encodings[n].has_fitted},
        {name: _sign(published) * value for name, value in published.values.items()},
    )
    return Beside(published, ours, same, of)
