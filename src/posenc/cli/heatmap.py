"""``posenc heatmap``: the table as a picture, in a file or in the terminal."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import arg

from posenc.cli.options import Base, Convention, Dim, Format, Length, Output, Start


@dataclass(frozen=True)
class Heatmap:
    """Draw the table in colors fixed to [-1, 1] around zero, one cell a number.

    With --output a figure is written; without it the terminal shows as many cells as it has room
    for, from --start and --first-dimension on.
    """

    length: Length = 50
    dim: Dim = 128
    base: Base = 10_000.0
    convention: Convention = "paper"
    start: Start = 0
    first_dimension: Annotated[int, arg(metavar="J")] = 0
    """First dimension that the terminal shows."""
    output: Output = None
    """Where to write: .png or .svg."""
    theme: Literal["light", "dark"] = "light"
    """Ground of the figure."""
    format: Format = "text"

    def run(self) -> None:
        """Draws."""
        from posenc.cli.drawing import heatmap

        heatmap(self)
