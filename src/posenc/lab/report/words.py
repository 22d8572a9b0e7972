"""What the numbers of a report say, in sentences."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from posenc.lab.comparison import Expected, TaskComparison
from posenc.lab.statistics import why_never_clear


def sentences(comparison: TaskComparison) -> Iterator[str]:
    """What the numbers of a task say, each sentence worked out from them."""
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
