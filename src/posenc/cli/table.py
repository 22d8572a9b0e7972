"""``posenc table``: what positions alone say."""

from dataclasses import dataclass

from posenc.cli.options import Base, Convention, Dim, DType, Format, Length, Start


@dataclass(frozen=True)
class Table:
    """Print the table of a sinusoidal encoding, one row a position."""

    length: Length = 10
    dim: Dim = 4
    base: Base = 10_000.0
    convention: Convention = "paper"
    start: Start = 0
    dtype: DType = "float32"
    format: Format = "text"

    def run(self) -> None:
        """Prints the table block by block, so that a long one needs no memory."""
        from posenc.cli.table_printing import print_table

        print_table(self)
