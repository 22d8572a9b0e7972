"""What the page on choosing an encoding reads off the lab's kept runs."""

from pathlib import Path
from tempfile import mkdtemp

from IPython.display import Markdown

from posenc.lab import grid_from
from posenc.lab.comparison import compared
from posenc.lab.kept import taken_out


def kept(name):
    """The tasks of a grid, by title."""
    results = taken_out(Path(f"lab/{name}.json"), Path(mkdtemp()))
    return {task.title: task for task in compared(grid_from(name, check=False), results).tasks}


def learned(task, name):
    """The mean score at the trained length."""
    scores = task.encodings[name].scores[task.task.task.trained]
    return sum(scores.values()) / len(scores)


def shown(task, lengths=None):
    """A table of scores, the best at the longest length first."""
    trained = task.task.task.trained
    lengths = lengths or [trained, task.length]
    names = sorted(
        task.encodings,
        key=lambda name: task.encodings[name].middle[task.length].value,
        reverse=not task.task.task.lower_is_better,
    )
    heads = [f"at {n}{' (trained)' if n == trained else ''}" for n in lengths]
    rows = [f"| encoding | {' | '.join(heads)} | fits |", "|---" * (len(lengths) + 2) + "|"]
    for name in names:
        each = task.encodings[name]
        of = " | ".join(
            f"{learned(task, name) if n == trained else each.middle[n].value:.2f}" for n in lengths
        )
        rows.append(f"| {name} | {of} | {sum(each.fits)} of {len(each.fits)} |")
    return Markdown("\n".join(rows))


def at(task, name, length=None):
    """The middle of the scores at a length, or at the longest."""
    return task.encodings[name].middle[length or task.length].value


def gaps(task, better, worse):
    """How far one encoding leads another, seed by seed."""
    a, b = (task.encodings[n].reported[task.length] for n in (better, worse))
    return [a[seed] - b[seed] for seed in a]


def lead(task, better, worse):
    """The interval of that lead."""
    pairs = task.pairs[task.length]
    return next(pair.interval for pair in pairs if (pair.better, pair.worse) == (better, worse))


def milliseconds(task, name):
    """The median time of a step."""
    return sorted(task.encodings[name].milliseconds.values())[2]


def extended(extension):
    """What each schedule costs, without training and after 200 steps at the longer length."""
    rows = [
        "| extended 8 times by | bits at 64 after it | added at 512, untuned | tuned, 200 steps |"
    ]
    rows.append("|---|---|---|---|")
    for name in ("None", "Clipped RoPE", "Linear", "NTK", "Dynamic NTK", "Llama 3", "YaRN"):
        bare = extension.encodings["Rotary" if name == "None" else f"{name} ×8"]
        tuned = extension.encodings[f"{name} ×8, tuned 200 steps"]
        far = (f"{each.middle[512].value:+.2f}" for each in (bare, tuned))
        rows.append(f"| {name} | {sum(bare.scores[64].values()) / 5:.2f} | {' | '.join(far)} |")
    return Markdown("\n".join(rows))


def costs(text, back):
    """Milliseconds of a step, and numbers that are learned."""
    rows = ["| encoding | byte model | numbers learned |", "|---|---|---|"]
    for name, each in text.encodings.items():
        rows.append(f"| {name} | {milliseconds(text, name):.0f} | {each.parameters} |")
    none, cope = milliseconds(back, "NoPE"), milliseconds(back, "CoPE")
    learned = back.encodings["CoPE"].parameters
    rows.append(f"| CoPE (`k_back`, NoPE takes {none:.0f}) | {cope:.0f} | {learned} |")
    return Markdown("\n".join(rows))


def beside_papers(runs):
    """How many pairs stand in the order that was published."""
    rows = ["| task here | published | pairs in the same order |", "|---|---|---|"]
    for task in runs.values():
        for beside in task.beside:
            same = f"{beside.same} of {beside.of}"
            rows.append(f"| `{task.title}` | {beside.published.source} | {same} |")
    return Markdown("\n".join(rows))
