"""``posenc heatmap``: the table as a picture, in a file or in the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import option

if TYPE_CHECKING:
    from posenc.cli.rows import Rows
    from posenc.encodings.expression import Encoding


@dataclass(frozen=True)
class Heatmap:
    """Colors diverge around zero and end at -1 and 1, or at the largest number where one is larger;
    those of a bias, which is drawn query by key for one head, end at its largest. A figure whose
    table is longer than its pixels draws means of several positions, and says so. The terminal
    shows as many cells as it has room for, from --start and --first-dimension on.
    """

    length: options.Length = 50
    encoding: options.Expression = None
    dim: Annotated[Optional[int], option("Width of a vector.", "N", shown="128")] = None
    base: options.Base = None
    convention: options.Convention = None
    start: options.Start = 0
    first_dimension: Annotated[
        Optional[int], option("First dimension that the terminal shows.", "J", shown="0")
    ] = None
    head: Annotated[Optional[int], option("Which head of a bias is drawn.", "H", shown="0")] = None
    output: options.Figure = None
    theme: options.Theme = "light"
    dpi: options.Dpi = None
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Draws, or prints the numbers that would be drawn."""
        from posenc.cli.encodings import chosen, described
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import bias_rows, rows_of

        figures.check_drawn(self.output, self.theme, self.dpi, self.format)
        encoding = chosen(self, dim=128, seed=self.seed)
        rows, one = rows_of(encoding), {}
        if rows.counted == "distance":
            one = {"head": self.head or 0}
            rows = bias_rows(encoding, self.head or 0, self.start, self.length)
        elif self.head is not None:
            raise UserError("--head is which head of a bias is drawn; this encoding is none")
        left, width = self.first_dimension or 0, len(rows.columns)
        if self.first_dimension is not None and (self.output or self.format != "text"):
            raise UserError("--first-dimension is for the terminal; figures and files hold all")
        if not 0 <= left < width:
            raise UserError(f"--first-dimension is {left}; it must be one of 0 … {width - 1}")
        if self.format != "text":
            blocks = rows.blocks(self.start, self.length)
            about = {**described(encoding), **one, "start": self.start, "columns": rows.keys}
            table.print_as(self.format, about, rows, range(width), blocks)
        elif self.output is not None:
            self._draw(self.output, rows, self._title(encoding))
        else:
            pictures.heatmap(rows, self._title(encoding), self.start, self.length, left)

    def _draw(self, output: Path, rows: "Rows", title: str) -> None:
        from posenc.cli.render import figures

        kind = figures.kind_of(output, self.dpi)
        from posenc.plots import heatmap
        from posenc.plots.heatmap import MEANS, MOST

        most = MOST if self.length <= MOST else MEANS
        values, each = rows.means(self.start, self.length, most)
        is_bias = rows.counted == "query"
        axes = heatmap(
            values,
            start=self.start,
            each=each,
            limit=None if is_bias else max(1.0, values.abs().max().item()),
            xlabel="key (position)" if is_bias else rows.across,
            ylabel="query (position)" if is_bias else "position (token)",
            first_column=self.start if is_bias else 0,
            title=title,
            theme=self.theme,
            dpi=self.dpi,
        )
        figures.write(axes, output, kind, self.dpi)

    def _title(self, encoding: "Encoding") -> str:
        from posenc import Sinusoidal
        from posenc.cli.encodings import drawn_as, is_plain, name_of
        from posenc.encodings.bias import ScoreBias

        if isinstance(encoding, Sinusoidal) and is_plain(encoding):
            name = f"Sinusoidal, {encoding.convention.name}"
            return f"{name}: {self.length} positions, d = {encoding.dim}, n = {encoding.base:g}"
        head = f", head {self.head or 0}" if isinstance(encoding, ScoreBias) else ""
        return f"{name_of(encoding)}{head}: {self.length} positions{drawn_as(encoding)}"
