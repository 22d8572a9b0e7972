"""Figures in files: what a name may end in, and writing one whole or not at all."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.cli.errors import UserError, check_installed
from posenc.cli.files import check, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESOLUTIONS = range(20, 2401)


def check_figure(output: Path | None, dpi: int | None = None) -> None:
    """Refuses a figure that cannot be written; matplotlib is ready to draw one afterwards."""
    if output is None:
        return
    check(output, ".png", ".svg", ".pdf")
    if dpi is not None and (output.suffix != ".png" or dpi not in RESOLUTIONS):
        ends = f"{RESOLUTIONS[0]} to {RESOLUTIONS[-1]}"
        raise UserError(f"--dpi is {dpi}; it counts pixels of a .png, from {ends} an inch")
    check_installed("a figure", "plots", ["matplotlib", "numpy"])
    import matplotlib

    matplotlib.use("Agg")  # a file needs no display


def write(axes: "Axes", output: Path | None, dpi: int | None = None, form: str = "text") -> None:
    """Writes the figure of ``axes``, and says so; beside a document on standard error."""
    from matplotlib import pyplot

    from posenc.plots import save

    assert output is not None
    figure: Any = axes.figure
    with placed(output) as file:
        save(figure, file, output.suffix[1:], dpi=dpi)  # type: ignore[arg-type]
    pyplot.close(figure)
    print(f"wrote {output}", file=sys.stdout if form == "text" else sys.stderr)
