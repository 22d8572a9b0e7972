"""Figures in files: what a name may end in, and writing one whole or not at all."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from posenc.cli.errors import UserError
from posenc.cli.files import check, placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["png", "svg", "pdf"]
KINDS = get_args(Kind)
RESOLUTIONS = range(20, 2401)


def kind_of(output: Path, dpi: int | None) -> Kind:
    """The kind of figure that a name asks for; matplotlib is ready to draw it afterwards.

    Raises:
        UserError: There is no such kind, no such file can be, or matplotlib is missing.
    """
    kind = output.suffix[1:]
    if kind not in KINDS:
        listed = ", ".join(f".{each}" for each in KINDS)
        raise UserError(f"{output}: the name must end in one of {listed}")
    if dpi is not None and kind != "png":
        raise UserError(f"--dpi counts pixels, and a .{kind} has none; leave it out")
    if dpi is not None and dpi not in RESOLUTIONS:
        raise UserError(f"--dpi is {dpi}; it must be from {RESOLUTIONS[0]} to {RESOLUTIONS[-1]}")
    check(output)
    try:
        import matplotlib
    except ImportError:
        raise UserError(
            "matplotlib is missing; install it with pip install posenc[plots]"
        ) from None
    matplotlib.use("Agg")  # A file needs no display.
    return kind  # type: ignore[return-value]


def check_drawn(drawn: bool, theme: str, dpi: int | None) -> None:
    """Refuses what only a figure has, where none is drawn.

    Raises:
        UserError: The theme or the resolution of no figure is asked for.
    """
    for name, value, usual in (("theme", theme, "light"), ("dpi", dpi, None)):
        if not drawn and value != usual:
            raise UserError(
                f"--{name} is of a figure, and none is drawn; give a file to draw it in"
            )


def write(axes: "Axes", output: Path, kind: Kind, dpi: int | None, form: str = "text") -> None:
    """Writes the figure of ``axes``, and says so; beside a document on standard error."""
    from matplotlib import pyplot

    from posenc.plots import save

    with placed(output) as file:
        save(axes.figure, file, kind, dpi=dpi)  # type: ignore[arg-type]
    pyplot.close(axes.figure)  # type: ignore[arg-type]
    print(f"wrote {output}", file=sys.stdout if form == "text" else sys.stderr)
