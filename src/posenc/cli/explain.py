"""``posenc explain``: where one number of the table comes from."""

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import arg

from posenc.cli.options import Base, Convention, Dim, Format


@dataclass(frozen=True)
class Explain:
    """Show the formula, the numbers put in, and the value, line by line."""

    position: Annotated[int, arg(metavar="P", help="The position, from 0.")] = 3
    dimension: Annotated[int, arg(metavar="J", help="The dimension, from 0.")] = 2
    dim: Dim = 6
    base: Base = 10_000.0
    convention: Convention = "paper"
    format: Format = "text"

    def run(self) -> None:
        """Prints the steps."""
        from posenc.cli.explanation import explain

        explain(self)
