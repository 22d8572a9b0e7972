"""Writes the pages of the lab's results from what is kept of them.

``python docs/make_lab_results.py`` draws and writes everything under ``docs/lab`` anew from the
files there; with a folder of results, as ``lab-results``, it first takes them from there.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from posenc.lab import Store, grid_from
from posenc.lab.comparison import Comparison, TaskComparison, compared
from posenc.lab.kept import keep, taken_out
from posenc.lab.report import as_markdown
from posenc.lab.report.figures import drawn
from posenc.plots import save

HERE = Path(__file__).parent / "lab"
GRIDS = ("standard", "extension")
MOST = 30
"""Rows of a table."""
SHOWN = 2
"""Figures of a task, of those in a report: its scores, and its paired differences."""


def kept(name: str, folder: Path = HERE) -> Comparison:
    """The comparison of a grid by the results that are kept here."""
    with tempfile.TemporaryDirectory() as root:
        return compared(grid_from(name), taken_out(folder / f"{name}.json", Path(root)))


def page(comparison: Comparison, folder: Path = HERE) -> str:
    """The page of a grid; draws its figures into ``folder``."""
    pictures = {task.title: _pictures(comparison, task, folder) for task in comparison.tasks}
    return as_markdown(comparison, pictures, most=MOST)


def _pictures(comparison: Comparison, task: TaskComparison, folder: Path) -> str:
    lines = []
    for turn, (said, ax) in enumerate(drawn(task).items()):
        figure = ax.figure
        assert isinstance(figure, Figure)
        if turn < SHOWN:
            word = "".join(c if c.isalnum() else "-" for c in task.title.lower())
            path = folder / f"{comparison.grid.name}-{word}-{turn}.png"
            with path.open("wb") as file:
                save(figure, file, "png")
            lines.append(f"![{task.title}: {said}]({path.name})")
        plt.close(figure)
    return "\n\n".join(lines)


def main(results: Path | None = None) -> None:
    """Writes what is kept, pages and figures."""
    HERE.mkdir(exist_ok=True)
    for name in GRIDS:
        if results is not None:
            keep(Store(results), HERE / f"{name}.json", grid_from(name))
        for old in HERE.glob(f"{name}-*.png"):
            old.unlink()
        (HERE / f"{name}.md").write_text(page(kept(name)))
        print(f"{name}: {(HERE / f'{name}.json').stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*(Path(word) for word in sys.argv[1:2]))
