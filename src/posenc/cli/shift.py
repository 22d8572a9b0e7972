"""``posenc shift``: the linear map that moves an encoding by an offset, and what it misses."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from posenc.cli.options import Base, Convention, Dim, Format


@dataclass(frozen=True)
class Shift:
    """Print the map that takes every row p to row p + offset, and its largest error."""

    offset: Annotated[int, arg(metavar="K", help="How far, in positions; may be negative.")] = 10
    dim: Dim = 4
    base: Base = 10_000.0
    convention: Convention = "paper"
    length: Annotated[int, arg(metavar="N", help="Number of positions to look at.")] = 256
    format: Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.viewing import shift

        shift(self)
