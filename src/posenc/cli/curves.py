"""``posenc curves``: single dimensions over the position, in a file or in the terminal."""

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import arg

from posenc.cli.options import Base, Convention, Dim, Format, Length, Output, Start


@dataclass(frozen=True)
class Curves:
    """Draw dimensions as curves over the position, each with its wavelength."""

    length: Length = 100
    dim: Dim = 20
    base: Base = 10_000.0
    convention: Convention = "paper"
    start: Start = 0
    dimensions: Annotated[tuple[int, ...], arg(metavar="J [J ...]")] = ()
    """Which dimensions; by default some that are spread over the width."""
    output: Output = None
    """Where to write: .png or .svg."""
    theme: Literal["light", "dark"] = "light"
    """Ground of the figure."""
    format: Format = "text"

    def run(self) -> None:
        """Draws."""
        from posenc.cli.drawing import curves

        curves(self)
