"""The tables of a report as rows of words, for any kind of page."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from posenc.lab.comparison import Comparison, Scored, TaskComparison
from posenc.lab.planning import variants
from posenc.lab.statistics import DRAWS, EXACT, Interval, Pair, least_p

MOST_PAIRS = 12
"""Pairs that are drawn; of more, those of the leader alone. Tables have all of them."""


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes:
        title: What it is.
        header: Names of columns.
        rows: Words, row by row; the first column names the row.
        note: What must be known to read it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def sheets(task: TaskComparison) -> Iterator[Sheet]:
    """All tables of a task."""
    yield scores(task)
    for length in paired_lengths(task):
        yield differences(task, length)
    yield costs(task)
    yield from published(task)


def scores(task: TaskComparison) -> Sheet:
    """In-distribution beside out-of-distribution; who did not fit has no place."""
    lengths = task.lengths()
    kind, trained = task.task.task, task.task.task.trained
    unit = f", {kind.unit}" if kind.unit else ""
    header = ("encoding", "place", "fits", f"at {trained} (trained){unit}")
    rows = [
        (
            each.name,
            str(task.ranks.get(each.name, "did not fit" if not each.has_fitted else "–")),
            _fits(each),
            _mean(each, trained),
            *(interval(each.middle.get(length)) for length in lengths if length != trained),
        )
        for each in task.encodings.values()
    ]
    asked = "at most" if kind.lower_is_better else "at least"
    return Sheet(
        f"{kind.measure} by length",
        (*header, *(f"at {length}" for length in lengths if length != trained)),
        tuple(rows),
        "Means of seeds at the trained length, interquartile means with 95 % bootstrap intervals "
        f"at others. A seed fits with {asked} {kind.gate:g} at the trained length; one who guesses "
        f"has {kind.chance:.3g}{_left_out(task)}. An "
        "encoding's place is 1, and one more for each that is clearly better: encodings of one "
        "place cannot be told apart. Who did not fit has none.",
    )


def _fits(each: Scored) -> str:
    """How many seeds fit, and that some diverged."""
    diverged = f", {len(each.diverged)} diverged" if each.diverged else ""
    return f"{sum(each.fits)} of {len(each.fits)}{diverged}"


def _left_out(task: TaskComparison) -> str:
    """Whose seeds stand in no mean but that of the trained length."""
    lost = {
        each.name: len(each.seeds) - len(each.reported.get(task.length, {}))
        for each in task.encodings.values()
        if task.length in each.scores
    }
    said = ", ".join(f"{count} of {name}" for name, count in lost.items() if count)
    return f", of whom nothing longer can be compared ({said} left out)" if said else ""


def paired_lengths(task: TaskComparison) -> list[int]:
    """The compared length, and those at which others are tested, as with extensions."""
    longest = {name for name, each in task.encodings.items() if task.length in each.reported}
    found = [task.length]
    for length in reversed(task.lengths()[:-1]):
        names = {name for name, each in task.encodings.items() if length in each.reported}
        if length != task.task.task.trained and not names <= longest:
            found.append(length)
    return [length for length in found if task.pairs[length]]


def differences(task: TaskComparison, length: int) -> Sheet:
    """Every pair at a length."""
    sign = "better than" if task.task.task.lower_is_better else "−"
    rows = [
        (
            f"{pair.better} {sign} {pair.worse}",
            interval(pair.interval),
            f"{min(pair.differences):.3f} to {max(pair.differences):.3f}",
            f"{pair.p:.3g}",
            f"{pair.corrected:.3g}",
            "yes" if pair.is_clear else "no",
        )
        for pair in sorted(task.pairs[length], key=lambda each: -each.interval.value)
    ]
    counts = {len(each.differences) for each in task.pairs[length]}
    drawn = "" if max(counts) <= EXACT else f" (beyond {EXACT} seeds, {DRAWS:,} drawn ones)"
    return Sheet(
        f"Paired differences at {length}",
        ("pair", "mean", "seeds", "p", "p after Holm", "clear"),
        tuple(rows),
        "Differences of the same seed, whose body and data are the same for both. Clear: the "
        f"interval lies above 0, with three seeds or more. p is exact, by flips of signs{drawn}; "
        f"with so many seeds it cannot be less than {min(map(least_p, counts)):.2g}.",
    )


def costs(task: TaskComparison) -> Sheet:
    """What training took."""
    rows = [
        (
            each.name,
            f"{median(each.milliseconds.values()):.1f}" if each.milliseconds else "–",
            str(each.parameters),
            f"{each.rate:g}" + (f", then {each.tuned_rate:g}" if each.tuned_rate else ""),
        )
        for each in task.encodings.values()
    ]
    tuned = any(each.tuned_rate for each in task.encodings.values())
    return Sheet(
        "Cost and learning rates",
        ("encoding", "ms a step", "learned numbers", "learning rate"),
        tuple(rows),
        "Milliseconds are medians of the processor's time, on one thread of that machine; "
        "learning rates were chosen by the loss at the trained length alone, or given"
        f"{'; a second one is that of steps after training' if tuned else ''}.",
    )


def published(task: TaskComparison) -> Iterator[Sheet]:
    """What papers say, beside ours."""
    for each in task.beside:
        rows = [
            (name, f"{value:g}", f"{each.ours[name]:.3f}" if name in each.ours else "not run")
            for name, value in each.published.values.items()
        ]
        order = f"{each.same} of {each.of} pairs stand in the same order here." if each.of else ""
        yield Sheet(
            f"Published: {each.published.source}",
            ("encoding", each.published.measure, f"ours: {task.task.task.measure}"),
            tuple(rows),
            f"Theirs: {each.published.setting}; {_direction(each.published.lower_is_better)}. "
            f"Another model and task, so that only the order can be compared. {order}".strip(),
        )


def drawn_pairs(task: TaskComparison) -> list[Pair]:
    """The pairs of a figure: all, or those of the first encoding where they are many."""
    found = sorted(task.pairs[task.length], key=lambda each: -each.interval.value)
    if len(found) <= MOST_PAIRS:
        return found
    leader = max(task.encodings, key=lambda name: sum(pair.better == name for pair in found))
    return [pair for pair in found if leader in (pair.better, pair.worse)]


def facts(comparison: Comparison) -> list[tuple[str, str]]:
    """What was run, where and when."""
    found, grid = comparison.counts, comparison.grid
    machines = [
        f"{each['processor']} ({each['cores']} cores), {each['system']}, Python {each['python']}, "
        f"torch {each['torch']}, posenc {each['posenc']}"
        for each in comparison.machines
    ]
    body = "; ".join(f"dim {m.dim}, {m.heads} heads, {m.depth} layers" for m in grid.models)
    made = f"{found['made']} of {found['total']} made, {found['failed']} failed"
    if comparison.earlier:
        made += f"; {comparison.earlier} more by an earlier source of their encodings"
    missing = _missing(comparison)
    return [
        ("runs", made),
        *([("not made yet", "; ".join(missing))] if missing else []),
        ("seeds", f"{len(grid.seeds)} planned; what is made is enough for {comparison.purpose}"),
        ("body", body),
        ("machine", "; ".join(dict.fromkeys(machines))),
        ("made", " to ".join(dict.fromkeys(each[:10] for each in comparison.dates or ()))),
    ]


def _missing(comparison: Comparison) -> list[str]:
    """What the grid holds and nothing below tells of, since none of its runs is there."""
    grid, found = comparison.grid, list[str]()
    shown = {(each.task.name, each.model): each for each in comparison.tasks}
    for task in grid.tasks:
        names = [name for encoding in grid.on(task) for name in variants(grid, encoding)]
        for model in map(grid.model_name, grid.models):
            made = shown.get((task.name, model))
            if made is None:
                found.append(f"{task.name} ({model})" if model else task.name)
            elif lost := [name for name in names if name not in made.encodings]:
                found.append(f"{made.title}: {', '.join(lost)}")
    return found


def interval(found: Interval | None) -> str:
    """A value with its interval, or a dash.

    Example:
        >>> interval(Interval(0.5, 0.41, 0.6)), interval(None)
        ('0.500 [0.410, 0.600]', '–')
    """
    return "–" if found is None else f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _mean(each: Scored, trained: int) -> str:
    values = list(each.scores[trained].values())
    return f"{sum(values) / len(values):.3f}"


def _direction(lower_is_better: bool) -> str:
    return "lower is better" if lower_is_better else "higher is better"
