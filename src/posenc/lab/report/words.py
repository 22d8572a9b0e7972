"""What the numbers of a report say, in sentences."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from posenc.lab.comparison import Expected, TaskComparison
from posenc.lab.statistics import why_never_clear


def sentences(comparison: TaskComparison) -> list[str]:
    """What the numbers of a task say, each sentence worked out from them."""
    return [
        _fitted(comparison),
        *_diverged(comparison),
        *_best(comparison),
        *(_gap(each, comparison.task.task.lower_is_better) for each in comparison.gaps),
        *(
            f"{each.same} of {each.of} pairs have the order of {each.published.source}."
            for each in comparison.beside
            if each.of
        ),
    ]


def _fitted(comparison: TaskComparison) -> str:
    task = comparison.task.task
    unfit = [each.name for each in comparison.encodings.values() if not each.has_fitted]
    if not unfit:
        return f"All encodings fit at the trained length, {task.trained}."
    bound = f"at {'most' if task.lower_is_better else 'least'} {task.gate:g}"
    return (
        f"At the trained length, {task.trained}, {_listed(unfit)} did not fit ({bound} is needed)."
    )


def _diverged(comparison: TaskComparison) -> Iterator[str]:
    ended = [
        f"{name} in {_listed([f'seed {seed}' for seed in each.diverged])}"
        for name, each in comparison.encodings.items()
        if each.diverged
    ]
    if ended:
        yield (
            f"Training diverged, and ended early: {'; '.join(ended)}. Their scores count as they "
            "are, or as a guess where there are none."
        )


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
    clear = [p.worse for p in found if p.better == best and p.worse in of and p.is_clear]
    than = f"it is clearly better than {_listed(clear)}" if clear else "no difference is clear"
    if too_few := why_never_clear(found):
        than = too_few
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
    gap = each.gap
    asked = f"{gap.better} − {gap.worse} ≥ {gap.least:g} at {each.length}"
    if lower_is_better:
        asked = f"{gap.better} better than {gap.worse} by {gap.least:g} or more at {each.length}"
    values = list(each.differences.values())
    if not values:
        return f"Expected {asked}: not measured."
    met = sum(value >= gap.least for value in values)
    return (
        f"Expected {asked}: holds in {met} of {len(values)} seeds (gaps {min(values):.2f} to "
        f"{max(values):.2f}, mean {fmean(values):.2f})."
    )


def _listed(names: Sequence[str]) -> str:
    """Names as a sentence has them: a, b and c."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
