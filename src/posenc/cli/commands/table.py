"""``posenc table``: what positions alone say."""

from dataclasses import dataclass

from posenc.cli import options


@dataclass(frozen=True, kw_only=True)
class Table(options.Showing):
    """A bias has one row a distance (query - key) and one column a head. If a bias depends on
    positions too, the key is at 0 for distances from 0 on, and the query for the others.
    """

    length: options.Length = 10
    start: options.Start = 0
    dtype: options.DType = "float32"

    def run(self) -> None:
        """Prints the table block by block, so that a long one needs no memory."""
        import torch

        from posenc.cli.encodings import chosen, described, print_note
        from posenc.cli.render import table
        from posenc.cli.rows import rows_of

        encoding = chosen(self)
        rows = rows_of(encoding)
        blocks = rows.blocks(self.start, self.length, getattr(torch, self.dtype))
        if self.format != "text":
            about = {**described(encoding), "start": self.start, "dtype": self.dtype}
            table.print_as(self.format, about, rows, range(len(rows.columns)), blocks)
            return
        table.print_text(rows, blocks)
        print_note(encoding)
