"""The figures of a report as SVG that takes its colors from the page."""

import io
import re
from collections.abc import Sequence
from dataclasses import astuple

import matplotlib.pyplot as plt
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc.lab.comparison import TaskComparison
from posenc.lab.statistics import Pair
from posenc.plots import costs, length_curve, loss_curves, paired_differences, save
from posenc.plots.style import Theme, look

MOST_PAIRS = 12  # pairs that are drawn; of more, those of the leader alone. Tables have all of them


def figures(task: TaskComparison, index: int) -> dict[str, Markup]:
    """By what they show in words, the figures of a task; ``index`` keeps their names apart."""
    made = enumerate(drawn(task).items())
    return {said: _svg(ax.figure, f"t{index}f{turn}") for turn, (said, ax) in made}  # type: ignore[arg-type]


def drawn(task: TaskComparison) -> dict[str, Axes]:
    """By what they show in words, the figures of a task."""
    kind = task.task.task
    encodings, trained = task.encodings.values(), kind.trained
    told = [each for each in encodings if each.reported]
    sign, axes = "over" if kind.lower_is_better else "−", {}
    if told:
        axes[f"{kind.measure} over the length of rows, a dot a seed"] = length_curve(
            {e.name: {n / trained: list(s.values()) for n, s in e.reported.items()} for e in told},
            {e.name: {n / trained: astuple(m) for n, m in e.middle.items()} for e in told},
            measure=kind.measure,
            chance=None if kind.lower_is_better or not kind.chance else kind.chance,
        )
    if pairs := {f"{p.better} {sign} {p.worse}": p for p in _shown(task)}:
        axes[f"paired differences at {task.length}, a dot a seed"] = paired_differences(
            {name: pair.differences for name, pair in pairs.items()},
            {name: astuple(pair.interval) for name, pair in pairs.items()},
            label=f"difference in {kind.measure}\nat {task.length}, in favor of the first",
        )
    curves = {e.name: [seed for seed in e.curves.values() if seed] for e in encodings}
    if curves := {name: seeds for name, seeds in curves.items() if seeds}:
        axes["training losses, a thin line a seed"] = loss_curves(curves)
    axes["processor time of a training step"] = costs(
        {e.name: list(e.milliseconds.values()) for e in encodings if e.milliseconds},
        {e.name: e.parameters for e in encodings},
    )
    return axes


def _shown(task: TaskComparison) -> Sequence[Pair]:
    """All pairs, or those of the encoding that is most often better."""
    found = task.pairs[task.length]
    if len(found) <= MOST_PAIRS:
        return found
    leader = max(task.encodings, key=lambda name: sum(pair.better == name for pair in found))
    return [pair for pair in found if leader in (pair.better, pair.worse)]


def colors(theme: Theme) -> dict[str, str]:
    """The colors of a ground by the names that the page has for them."""
    found = look(theme)
    lines = {f"line-{turn}": value for turn, value in enumerate(found.lines)}
    return {"ground": found.ground, "ink": found.ink, "faint": found.faint, **lines}


def _svg(figure: Figure, own: str) -> Markup:
    """The figure, its colors by name and its ids of its own: a page has many."""
    save(figure, file := io.BytesIO(), "svg")
    plt.close(figure)
    text = file.getvalue().decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{own}-', text)
    text = re.sub(r'(url\(|href=")#', rf"\1#{own}-", text)
    for name, value in colors("light").items():
        text = text.replace(value, f"var(--{name})")
    return Markup(re.sub(r'(<svg [^>]*?)width="[^"]*" height="[^"]*"|', r"\1", text, count=1))
