"""The text of a report, all of it worked out from numbers: sentences, tables and facts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from posenc.lab.comparison import Beside, Comparison, Expected, Scored, TaskComparison, titled
from posenc.lab.planning import variants
from posenc.lab.statistics import LEVEL, why_never_clear


def sentences(comparison: TaskComparison) -> Iterator[str]:
    """What the numbers of a task say."""
    task, every = comparison.task.task, comparison.encodings.values()
    unfit = [each.name for each in every if not each.has_fitted]
    if unfit:
        bound = f"at {'most' if task.lower_is_better else 'least'} {task.gate:g} is needed"
        yield f"At the trained length, {task.trained}, {_listed(unfit)} did not fit ({bound})."
    else:
        yield f"All encodings fit at the trained length, {task.trained}."
    ended = [
        f"{each.name} in {_listed([f'seed {seed}' for seed in each.diverged])}"
        for each in every
        if each.diverged
    ]
    if ended:
        yield (
            f"Training diverged, and ended early: {'; '.join(ended)}. Their scores count as they "
            "are, or as a guess where there are none."
        )
    yield from _best(comparison)
    for each in comparison.gaps:
        yield _gap(each, task.lower_is_better)
    for each in comparison.beside:
        if each.of:
            yield f"{each.same} of {each.of} pairs have the order of {each.published.source}."


def _best(comparison: TaskComparison) -> Iterator[str]:
    """Who is best where encodings are compared, and what they lose on the way there."""
    task, length = comparison.task.task, comparison.length
    if not comparison.ranks:
        fitted = any(each.has_fitted for each in comparison.encodings.values())
        why = f"that fitted has numbers at {length}" if fitted else "fitted"
        yield f"No encoding {why}, so none is ranked there."
        return
    sign = 1.0 if task.lower_is_better else -1.0
    of = {name: comparison.encodings[name] for name in comparison.ranks}
    middles = {name: each.middle[length].value for name, each in of.items()}
    best = min(middles, key=lambda name: sign * middles[name])
    found = comparison.pairs[length]
    behind = {pair.worse for pair in found if pair.better == best and pair.is_clear}
    clear = [name for name in of if name in behind]
    than = f"it is clearly better than {_listed(clear)}" if clear else "no difference is clear"
    than = why_never_clear(found) or than
    yield (
        f"At {length} ({length / task.trained:g} times the trained length), {best} has the best "
        f"{task.measure}, {middles[best]:.2f}" + (f"; {than}." if len(of) > 1 else ".")
    )
    if length != task.trained:
        drops = {name: sign * (middles[name] - each.before) for name, each in of.items()}
        ends = dict.fromkeys((min(drops, key=drops.__getitem__), max(drops, key=drops.__getitem__)))
        lost = [f"{n} {'gains' if drops[n] < 0 else 'loses'} {abs(drops[n]):.2f}" for n in ends]
        yield f"From {task.trained} to {length}, {_listed(lost)}."


def _gap(each: Expected, lower_is_better: bool) -> str:
    gap, values = each.gap, list(each.differences.values())
    asked = f"{gap.better} − {gap.worse} ≥ {gap.least:g} at {each.length}"
    if lower_is_better:
        asked = f"{gap.better} better than {gap.worse} by {gap.least:g} or more at {each.length}"
    if not values:
        return f"Expected {asked}: not measured."
    met = sum(value >= gap.least for value in values)
    return (
        f"Expected {asked}: holds in {met} of {len(values)} seeds (gaps {min(values):.2f} to "
        f"{max(values):.2f}, mean {fmean(values):.2f})."
    )


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class Sheet:
    """One table."""

    title: str
    rows: list[dict[str, str]]  # words by the name of their column; the first one names the row
    note: str  # how to read it


def sheets(task: TaskComparison) -> Iterator[Sheet]:
    """All tables of a task."""
    yield scores(task)
    for length in paired_lengths(task):
        yield differences(task, length)
    yield costs(task)
    for each in task.beside:
        yield published(task, each)


def scores(task: TaskComparison) -> Sheet:
    """In-distribution beside out-of-distribution; who did not fit has no place."""
    kind, trained, every = task.task.task, task.task.task.trained, task.encodings.values()
    longer = [length for length in task.pairs if length != trained]
    unit = f", {kind.unit}" if kind.unit else ""
    compared = [each for each in every if task.length in each.scores]
    lost = {e.name: len(e.seeds) - len(e.reported.get(task.length, {})) for e in compared}
    left_out = ", ".join(f"{count} of {name}" for name, count in lost.items() if count)
    rows = [
        {
            "encoding": each.name,
            "place": _place(task, each),
            "fits": f"{sum(each.fits)} of {len(each.fits)}"
            + (f", {len(each.diverged)} diverged" if each.diverged else ""),
            f"at {trained} (trained){unit}": f"{fmean(each.scores[trained].values()):.3f}",
            **{f"at {length}": str(each.middle.get(length, "–")) for length in longer},
        }
        for each in every
    ]
    note = (
        "Means of seeds at the trained length; interquartile means with 95 % bootstrap intervals "
        f"elsewhere. A seed fits with {'at most' if kind.lower_is_better else 'at least'} "
        f"{kind.gate:g} at the trained length; a guess has {kind.chance:.3g}. A place is 1, and "
        "one more for each encoding that is clearly better. What did not fit has none."
        + (f" Seeds that only guess are left out: {left_out}." if left_out else "")
    )
    return Sheet(f"{kind.measure} by length", rows, note)


def _place(task: TaskComparison, each: Scored) -> str:
    if each.name not in task.ranks:
        return "–" if each.has_fitted else "did not fit"
    is_shared = len(task.ranks) > 1 and set(task.ranks.values()) == {1}
    return "shared" if is_shared else str(task.ranks[each.name])


def paired_lengths(task: TaskComparison) -> list[int]:
    """The compared length, and those at which others are tested, as with extensions."""
    names = {n: {e.name for e in task.encodings.values() if n in e.reported} for n in task.pairs}
    others = [
        n for n in names if n != task.task.task.trained and not names[n] <= names[task.length]
    ]
    return [length for length in (task.length, *others[::-1]) if task.pairs[length]]


def differences(task: TaskComparison, length: int) -> Sheet:
    """Every pair at a length."""
    sign = "better than" if task.task.task.lower_is_better else "−"
    too_few = why_never_clear(task.pairs[length])
    rows = [
        {
            "pair": f"{pair.better} {sign} {pair.worse}",
            "mean": str(pair.interval),
            "seeds": f"{min(pair.differences):.3f} to {max(pair.differences):.3f}",
            "p": f"{pair.p:.3g}",
            "p after Holm": f"{pair.corrected:.3g}",
            "clear": "too few seeds" if too_few else ("yes" if pair.is_clear else "no"),
        }
        for pair in task.pairs[length]
    ]
    note = (
        "Differences of the same seed, whose body and data are the same for both. p is from sign "
        f"flips. Clear: p after Holm is at most {LEVEL:g}, and the interval lies above 0."
        + (f" Here {too_few}." if too_few else "")
    )
    return Sheet(f"Paired differences at {length}", rows, note)


def costs(task: TaskComparison) -> Sheet:
    """What training took."""
    every = task.encodings.values()
    rows = [
        {
            "encoding": each.name,
            "ms a step": f"{median(each.milliseconds.values()):.1f}" if each.milliseconds else "–",
            "learned numbers": str(each.parameters),
            "learning rate": f"{each.rate:g}"
            + (f", then {each.tuned_rate:g}" if each.tuned_rate else ""),
        }
        for each in every
    ]
    tuned = any(each.tuned_rate for each in every)
    note = (
        "Milliseconds are medians of processor time, on one thread of that machine. Learning rates "
        "are given, or chosen by the loss at the trained length"
        f"{'; a second one is that of steps after training' if tuned else ''}."
    )
    return Sheet("Cost and learning rates", rows, note)


def published(task: TaskComparison, each: Beside) -> Sheet:
    """What a paper says, beside ours."""
    theirs, ours = each.published, f"ours: {task.task.task.measure}"
    rows = [
        {
            "encoding": name,
            theirs.measure: f"{value:g}",
            ours: f"{each.ours[name]:.3f}" if name in each.ours else "not run",
        }
        for name, value in theirs.values.items()
    ]
    direction = "lower" if theirs.lower_is_better else "higher"
    note = (
        f"Theirs: {theirs.setting}; {direction} is better. The model and the task differ, so only "
        "the order can be compared."
        + (f" {each.same} of {each.of} pairs have the same order here." if each.of else "")
    )
    return Sheet(f"Published: {theirs.source}", rows, note)


def facts(comparison: Comparison) -> dict[str, str]:
    """What was run, where and when."""
    found, grid = comparison.counts, comparison.grid
    made = f"{found['made']} of {found['total']} made, {found['failed']} failed"
    if comparison.earlier:
        made += f"; {comparison.earlier} more by an earlier source of their encodings"
    machines = dict.fromkeys(
        f"{each['processor']} ({each['cores']} cores), {each['system']}, Python {each['python']}, "
        f"torch {each['torch']}, posenc {each['posenc']}"
        for each in comparison.machines
    )
    told = {
        "runs": made,
        "not made yet": "; ".join(_missing(comparison)),
        "seeds": f"{len(grid.seeds)} planned; what is made is enough for {comparison.purpose}",
        "body": "; ".join(f"dim {m.dim}, {m.heads} heads, {m.depth} layers" for m in grid.models),
        "machine": "; ".join(machines),
        "made": " to ".join(dict.fromkeys(each[:10] for each in comparison.dates)),
    }
    return {name: said for name, said in told.items() if said}


def _missing(comparison: Comparison) -> Iterator[str]:
    """What the grid holds and none of whose runs is made."""
    grid, lost = comparison.grid, {}
    made = {each.title: each.encodings for each in comparison.tasks}
    for task, model, encoding in grid.cells():
        title = titled(task, grid.model_name(model))
        names = [name for name in variants(grid, encoding) if name not in made.get(title, ())]
        lost.setdefault(title, []).extend(names)
    for title, names in lost.items():
        if names:
            yield f"{title}: {', '.join(names)}" if title in made else title
