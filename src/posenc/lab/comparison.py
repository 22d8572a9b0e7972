"""The numbers of a report, all of them: what shows a grid prints and draws these and no others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from statistics import fmean
from typing import Any

from posenc.lab.earlier import Results
from posenc.lab.grid import Gap, Grid, GridTask
from posenc.lab.planning import Plan, counts, planned
from posenc.lab.statistics import (
    Interval,
    Pair,
    agreement,
    bootstrap,
    interquartile_mean,
    pairs,
    ranks,
)
from posenc.lab.store import Store, last_line
from posenc.lab.tasks import Published

PURPOSES = ((10, "a claim"), (5, "a comparison"), (3, "exploring"), (0, "nothing but a look"))
"""From how many seeds on a grid is good for what."""


@dataclass(frozen=True)
class Scored:
    """One encoding on one task.

    Attributes:
        name: The encoding.
        seeds: Its seeds, in order.
        scores: By length and seed, as the task scores.
        reported: By length and seed, as it is compared; seeds of which nothing can be are left out.
        fits: Whether each seed fitted the task at the trained length, as it was trained: what was
            extended since, before that.
        before: What is compared, there; the middle of seeds.
        middle: Interquartile mean of what is reported, with its interval, by length.
        diverged: The seeds of which a loss was no number: training ended there, for what was
            extended since too. What they scored counts as that of others.
        rate: The learning rate, which was chosen by loss at the trained length alone.
        curves: Points [step, loss] of each seed.
        parameters: Numbers that the encoding learns.
        milliseconds: A step, by seed; of those that made one.
        tuned_rate: The learning rate of steps after training, where there are any.
    """

    name: str
    seeds: tuple[int, ...]
    scores: Mapping[int, Mapping[int, float]]
    reported: Mapping[int, Mapping[int, float]]
    fits: tuple[bool, ...]
    before: float
    middle: Mapping[int, Interval]
    diverged: tuple[int, ...]
    rate: float
    curves: Mapping[int, Sequence[Sequence[float]]]
    parameters: int
    milliseconds: Mapping[int, float]
    tuned_rate: float | None

    @property
    def has_fitted(self) -> bool:
        """Whether half of the seeds or more fitted the task; else nothing longer says much."""
        return 2 * sum(self.fits) >= len(self.fits)


@dataclass(frozen=True)
class Expected:
    """An ordering that the grid expects, and what came.

    Attributes:
        gap: What was expected.
        length: Where.
        differences: By seed; above 0 is better than the other.
    """

    gap: Gap
    length: int
    differences: Mapping[int, float]

    @property
    def holds(self) -> bool | None:
        """Whether it holds in every seed; None where nothing was measured."""
        if not self.differences:
            return None
        return min(self.differences.values()) >= self.gap.least


@dataclass(frozen=True)
class Beside:
    """Published numbers beside ours.

    Attributes:
        published: Theirs.
        ours: Of the same encodings, at the longest length.
        same: Pairs of encodings in the same order, of those that fitted here.
        of: Such pairs that both have.
    """

    published: Published
    ours: Mapping[str, float]
    same: int
    of: int


@dataclass(frozen=True)
class TaskComparison:
    """All encodings on one task and one body.

    Attributes:
        task: The task of the grid.
        model: Name of the body, where there are several.
        length: Where encodings are compared: the longest that any of them has. One that has no
            numbers there, as a table that ends before it, has no place.
        encodings: By name, in the grid's order.
        pairs: By length, every pair of encodings.
        ranks: Places at ``length``; only of those that fitted.
        gaps: Expected orderings.
        beside: Published numbers.
    """

    task: GridTask
    model: str
    length: int
    encodings: Mapping[str, Scored]
    pairs: Mapping[int, Sequence[Pair]]
    ranks: Mapping[str, int]
    gaps: Sequence[Expected]
    beside: Sequence[Beside]

    @property
    def title(self) -> str:
        """How the report calls it."""
        return f"{self.task.name} ({self.model})" if self.model else self.task.name

    def lengths(self) -> list[int]:
        """All lengths that were tested, the trained one among them."""
        return sorted({length for each in self.encodings.values() for length in each.scores})


@dataclass(frozen=True)
class Comparison:
    """A whole grid, as far as it is made.

    Attributes:
        grid: The grid.
        counts: Runs made, failed and left.
        tasks: One for each task and body.
        machines: What runs were made on.
        dates: Of the first and the last.
        purpose: What so many seeds are good for.
        earlier: Runs, those that chose learning rates too, whose encodings have changed in their
            source since.
        failures: What runs that were given up have said, by run.
    """

    grid: Grid
    counts: Mapping[str, int]
    tasks: Sequence[TaskComparison]
    machines: Sequence[Mapping[str, Any]]
    dates: tuple[str, str] | None
    purpose: str
    earlier: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)


def compared(grid: Grid, store: Store) -> Comparison:
    """Everything that a report says of a grid.

    Raises:
        ValueError: No run is made yet.
    """
    known = Results(store)
    plan = planned(grid, store, known.of)
    results = {run.id: known.of(run.configuration) for run in plan.runs if run.kind != "tuning"}
    found = {run: each for run, each in results.items() if each is not None}
    if not found:
        raise ValueError(
            f"grid {grid.name} has no results in {store.root}; make some by posenc lab run."
        )
    names = list(dict.fromkeys(run.model for run in plan.runs))
    tasks = [
        made
        for task in grid.tasks
        for model in names
        if (made := _task(grid, task, model, plan, found, known)) is not None
    ]
    dates = sorted(each["date"] for each in found.values())
    fewest = min(len(each.seeds) for task in tasks for each in task.encodings.values())
    return Comparison(
        grid=grid,
        counts=counts(plan, store),
        tasks=tasks,
        machines=list({str(each["machine"]): each["machine"] for each in found.values()}.values()),
        dates=(dates[0], dates[-1]),
        purpose=next(purpose for least, purpose in PURPOSES if fewest >= least),
        earlier=len(known.earlier),
        failures={
            str(run): last_line(failure)
            for run in plan.runs
            if (failure := store.failure(run.id)) and failure["final"]
        },
    )


def _task(
    grid: Grid, task: GridTask, model: str, plan: Plan, found: Mapping[str, Any], known: Results
) -> TaskComparison | None:
    made: dict[str, list[dict]] = {}
    for run in plan.runs:
        if (run.task, run.model) == (task.name, model) and run.id in found:
            made.setdefault(run.encoding, []).append(found[run.id])
    if not made:
        return None
    encodings = {name: _scored(name, task, results, known) for name, results in made.items()}
    sign = -1.0 if task.task.lower_is_better else 1.0
    lengths = sorted({length for each in encodings.values() for length in each.scores})
    by_length = {
        length: pairs(
            {
                name: {seed: sign * value for seed, value in each.reported[length].items()}
                for name, each in encodings.items()
                if each.reported.get(length)
            }
        )
        for length in lengths
    }
    length = lengths[-1]
    fitted = [n for n, each in encodings.items() if each.has_fitted and length in each.reported]
    among = [p for p in by_length[length] if p.better in fitted and p.worse in fitted]
    return TaskComparison(
        task=task,
        model=model,
        length=length,
        encodings=encodings,
        pairs=by_length,
        ranks=ranks(fitted, among),
        gaps=[_expected(gap, task, encodings, sign) for gap in grid.gaps if gap.task == task.name],
        beside=_beside(task, encodings, length),
    )


def _scored(name: str, task: GridTask, results: list[dict], known: Results) -> Scored:
    results = sorted(results, key=lambda each: each["configuration"]["seed"])
    trained = task.task.trained
    scores: dict[int, dict[int, float]] = {}
    reported: dict[int, dict[int, float]] = {}
    extension = results[0]["configuration"]["extension"]
    learned, before, diverged = list[float](), list[float](), list[int]()
    for each in results:
        seed, base = each["configuration"]["seed"], known.base_of(each) or each
        own, as_trained = _scores(each, task), _scores(base, task)
        if each["outcome"]["diverged"] or base["outcome"]["diverged"]:
            diverged.append(seed)
        learned.append(as_trained[trained])
        if (told := task.task.reported(as_trained, trained, learned[-1])) is not None:
            before.append(told)
        for length, value in own.items():
            scores.setdefault(length, {})[seed] = value
            if (told := task.task.reported(own, length, learned[-1])) is not None:
                reported.setdefault(length, {})[seed] = told
    return Scored(
        name=name,
        seeds=tuple(each["configuration"]["seed"] for each in results),
        scores=scores,
        reported=reported,
        fits=tuple(task.task.fits(value) for value in learned),
        before=bootstrap(before, interquartile_mean).value if before else nan,
        middle={
            length: bootstrap(list(values.values()), interquartile_mean)
            for length, values in reported.items()
        },
        diverged=tuple(diverged),
        rate=results[0]["configuration"]["training"]["learning_rate"],
        curves={e["configuration"]["seed"]: e["outcome"]["curve"] for e in results},
        parameters=results[0]["outcome"]["parameters"]["encoding"],
        milliseconds={
            e["configuration"]["seed"]: e["cost"]["milliseconds_a_step"]
            for e in results
            if e["outcome"]["steps"]
        },
        tuned_rate=extension["learning_rate"] if extension and extension["steps"] else None,
    )


def _scores(result: dict, task: GridTask) -> dict[int, float]:
    """By length; a model that gives no numbers knows no more than one who guesses."""
    own = {int(length): value for length, value in result["outcome"]["scores"].items()}
    return {length: task.task.chance if v is None else v for length, v in own.items()}


def _expected(gap: Gap, task: GridTask, encodings: Mapping[str, Scored], sign: float) -> Expected:
    length = gap.at * task.task.trained
    sides = [
        encodings[name].reported.get(length, {}) if name in encodings else {}
        for name in (gap.better, gap.worse)
    ]
    seeds = sorted(sides[0].keys() & sides[1].keys())
    return Expected(gap, length, {s: sign * (sides[0][s] - sides[1][s]) for s in seeds})


def _beside(task: GridTask, encodings: Mapping[str, Scored], length: int) -> list[Beside]:
    found = []
    for published in task.task.published:
        ours = {
            name: encodings[name].middle[length].value
            for name in published.values
            if name in encodings and length in encodings[name].middle
        }
        fitted = {name: value for name, value in ours.items() if encodings[name].has_fitted}
        sign = -1.0 if task.task.lower_is_better else 1.0
        theirs = -1.0 if published.lower_is_better else 1.0
        same, of = agreement(
            {name: sign * value for name, value in fitted.items()},
            {name: theirs * value for name, value in published.values.items()},
        )
        found.append(Beside(published, ours, same, of))
    return found


# In words.


def sentences(comparison: TaskComparison) -> list[str]:
    """What the numbers of a task say, each sentence worked out from them.

    In-distribution comes first: who did not fit is not ranked.
    """
    task, length = comparison.task.task, comparison.length
    said = []
    unfit = [each.name for each in comparison.encodings.values() if not each.has_fitted]
    if unfit:
        said.append(
            f"At the trained length, {task.trained}, {_listed(unfit)} did not fit "
            f"({_direction(task.lower_is_better)} {task.gate:g} is asked there)."
        )
    else:
        said.append(f"All encodings fit at the trained length, {task.trained}.")
    said += _said_of_diverged(comparison)
    said.append(_leaders(comparison))
    sign = 1.0 if task.lower_is_better else -1.0
    drops = {
        name: sign * (each.middle[length].value - each.before)
        for name, each in comparison.encodings.items()
        if name in comparison.ranks
    }
    if drops and length != task.trained:
        most = max(drops, key=drops.__getitem__)
        least = min(drops, key=drops.__getitem__)
        said.append(
            f"From {task.trained} to {length}, {least} {_lost(drops[least])}"
            + (f" and {most} {_lost(drops[most])}." if most != least else ".")
        )
    for each in comparison.gaps:
        said.append(_said_of_gap(each, task.lower_is_better))
    for each in comparison.beside:
        if each.of:
            said.append(
                f"{each.same} of {each.of} pairs stand in the order of {each.published.source}."
            )
    return said


def _said_of_diverged(comparison: TaskComparison) -> list[str]:
    """That training ended early, of whom it did."""
    ended = {n: each.diverged for n, each in comparison.encodings.items() if each.diverged}
    if not ended:
        return []
    told = [f"{name} in {_listed([f'seed {s}' for s in seeds])}" for name, seeds in ended.items()]
    return [
        f"Training diverged, and ended there: {'; '.join(told)}. Means hold what came of it, or a "
        "guess where no numbers did."
    ]


def _leaders(comparison: TaskComparison) -> str:
    task, length = comparison.task.task, comparison.length
    first = [name for name, place in comparison.ranks.items() if place == 1]
    if not first:
        if any(each.has_fitted for each in comparison.encodings.values()):
            return f"No encoding that fitted has numbers at {length}, so none is ranked there."
        return f"No encoding fitted, so none is ranked at {length}."
    values = [comparison.encodings[name].middle[length].value for name in first]
    ends = dict.fromkeys(f"{value:.2f}" for value in (min(values), max(values)))
    span = " to ".join(ends)
    verb = "is" if len(first) == 1 else "are"
    alone = "" if len(first) == 1 else ", with nothing clear between them"
    return (
        f"At {length} ({length / task.trained:g} times the trained length), {_listed(first)} "
        f"{verb} first with {task.measure} {span}{alone}."
    )


def _lost(drop: float) -> str:
    """A drop in words.

    Example:
        >>> _lost(0.5), _lost(-0.07)
        ('loses 0.50', 'gains 0.07')
    """
    return f"{'gains' if drop < 0 else 'loses'} {abs(drop):.2f}"


def _said_of_gap(each: Expected, lower_is_better: bool) -> str:
    gap = each.gap
    asked = f"{gap.better} − {gap.worse} ≥ {gap.least:g} at {each.length}"
    if lower_is_better:
        asked = f"{gap.better} better than {gap.worse} by {gap.least:g} or more at {each.length}"
    if each.holds is None:
        return f"Expected {asked}: not measured."
    values = list(each.differences.values())
    met = sum(value >= gap.least for value in values)
    return (
        f"Expected {asked}: holds in {met} of {len(values)} seeds (gaps {min(values):.2f} to "
        f"{max(values):.2f}, mean {fmean(values):.2f})."
    )


def _direction(lower_is_better: bool) -> str:
    return "at most" if lower_is_better else "at least"


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    Example:
        >>> _listed(["a"]), _listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def differences_against(
    comparison: TaskComparison, baseline: str, length: int
) -> dict[str, list[float]]:
    """Paired differences of every other encoding to one, by seed; above 0 is better than it."""
    sign = -1.0 if comparison.task.task.lower_is_better else 1.0
    base = comparison.encodings[baseline].reported.get(length, {})
    return {
        name: [sign * (value - base[seed]) for seed, value in own.items() if seed in base]
        for name, each in comparison.encodings.items()
        if name != baseline and (own := each.reported.get(length)) and base
    }
