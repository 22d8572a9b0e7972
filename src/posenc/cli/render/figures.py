"""Figures in files: what a name may end in, and writing one whole or not at all."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posenc.cli.errors import UserError
from posenc.cli.files import check, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RESOLUTIONS = range(20, 2401)


def kind_of(output: Path, dpi: int | None) -> Any:
    """The kind of figure that a name asks for; matplotlib is ready to draw it afterwards."""
    check(output, ".png", ".svg", ".pdf")
    kind = output.suffix[1:]
    if dpi is not None and kind != "png":
        raise UserError(f"--dpi counts pixels, and a .{kind} has none; leave it out")
    if dpi is not None and dpi not in RESOLUTIONS:
        raise UserError(f"--dpi is {dpi}; it must be from {RESOLUTIONS[0]} to {RESOLUTIONS[-1]}")
    try:
        import matplotlib
    except ImportError:
        raise UserError("matplotlib is missing; pip install posenc[plots]") from None
    matplotlib.use("Agg")  # a file needs no display
    return kind


def check_drawn(output: Path | None, theme: str, dpi: int | None, form: str = "text") -> None:
    """Refuses what only a figure has, where none is drawn, and numbers beside one."""
    if output is not None and form != "text":
        raise UserError("--output draws and --format prints; give one of them")
    for name, given in (("theme", theme != "light"), ("dpi", dpi is not None)):
        if output is None and given:
            raise UserError(f"--{name} is of a figure, and none is drawn; give a file")


def write(axes: "Axes", output: Path, kind: Any, dpi: int | None, form: str = "text") -> None:
    """Writes the figure of ``axes``, and says so; beside a document on standard error."""
    from matplotlib import pyplot

    from posenc.plots import save

    figure: Any = axes.figure
    with placed(output) as file:
        save(figure, file, kind, dpi=dpi)
    pyplot.close(figure)
    print(f"wrote {output}", file=sys.stdout if form == "text" else sys.stderr)
