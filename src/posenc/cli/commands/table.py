"""``posenc table``: what positions alone say."""

from dataclasses import dataclass
from typing import Annotated, Optional

from posenc.cli import options
from posenc.cli.options import option


@dataclass(frozen=True)
class Table:
    """A bias has one row a distance, query - key, and one column a head; where more than the
    distance counts, the first of both stands at 0.
    """

    length: options.Length = 10
    encoding: options.Expression = None
    dim: Annotated[Optional[int], option("Width of a vector.", metavar="N", shown="4")] = None
    base: options.Base = None
    convention: options.Convention = None
    start: options.Start = 0
    dtype: options.DType = "float32"
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints the table block by block, so that a long one needs no memory."""
        import torch

        from posenc.cli.encodings import chosen, described, note_of
        from posenc.cli.render import table
        from posenc.cli.rows import rows_of

        encoding = chosen(self, dim=4, seed=self.seed)
        rows = rows_of(encoding)
        blocks = rows.blocks(self.start, self.length, getattr(torch, self.dtype))
        if self.format != "text":
            about = {**described(encoding), "start": self.start, "dtype": self.dtype}
            about["columns"] = rows.keys
            table.print_as(self.format, about, rows, range(len(rows.columns)), blocks)
            return
        table.print_text(rows, blocks)
        if note := note_of(encoding):
            print(note)
