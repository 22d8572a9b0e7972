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
    dim: Annotated[
        Optional[int],
        option("Width of a vector.", metavar="N", shown="128"),
    ] = None
    base: options.Base = None
    convention: options.Convention = None
    start: options.Start = 0
    first_dimension: Annotated[
        Optional[int],
        option("First dimension that the terminal shows.", metavar="J", shown="0"),
    ] = None
    head: Annotated[
        Optional[int],
        option("Which head of a bias is drawn.", metavar="H", shown="0"),
    ] = None
    output: Annotated[
        Optional[Path],
        option("Where to write: .png, .svg or .pdf.", metavar="FILE", short="-o"),
    ] = None
    theme: options.Theme = "light"
    dpi: options.Dpi = None
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Draws, or prints the numbers that would be drawn."""
        from posenc.cli.encodings import chosen, described
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import bias_rows, rows_of

        figures.check_drawn(self.output is not None, self.theme, self.dpi)
        encoding = chosen(self, dim=128, seed=self.seed)
        rows, one = rows_of(encoding), {}
        if rows.counted == "distance":
            one = {"head": self.head or 0}
            rows = bias_rows(encoding, self.head or 0, self.start, self.length)
        elif self.head is not None:
            raise UserError("--head is which head of a bias is drawn; this encoding is none")
        left = self._left(len(rows.columns))
        if self.format != "text":
            if self.output is not None:
                raise UserError("--output draws and --format prints; give one of them")
            blocks = rows.blocks(self.start, self.length)
            about = {**described(encoding), **one, "start": self.start, "columns": rows.keys}
            table.print_as(self.format, about, rows, range(len(rows.columns)), blocks)
        elif self.output is not None:
            self._draw(rows, _title(encoding, self))
        else:
            pictures.heatmap(
                rows, _title(encoding, self), start=self.start, length=self.length, left=left
            )

    def _left(self, columns: int) -> int:
        """The first column that the terminal shows."""
        if self.first_dimension is None:
            return 0
        if self.output is not None or self.format != "text":
            raise UserError("--first-dimension is for the terminal; figures and files hold all")
        if not 0 <= self.first_dimension < columns:
            raise UserError(
                f"--first-dimension is {self.first_dimension}; it must be one of 0 … {columns - 1}"
            )
        return self.first_dimension

    def _draw(self, rows: "Rows", title: str) -> None:
        from posenc.cli.render import figures

        assert self.output is not None
        kind = figures.kind_of(self.output, self.dpi)
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
        figures.write(axes, self.output, kind, self.dpi)


def _title(encoding: "Encoding", asked: Heatmap) -> str:
    from posenc import Sinusoidal
    from posenc.cli.encodings import drawn_as, is_plain, name_of
    from posenc.encodings.bias import ScoreBias

    if isinstance(encoding, Sinusoidal) and is_plain(encoding):
        name = f"Sinusoidal, {encoding.convention.name}"
        return f"{name}: {asked.length} positions, d = {encoding.dim}, n = {encoding.base:g}"
    head = f", head {asked.head or 0}" if isinstance(encoding, ScoreBias) else ""
    return f"{name_of(encoding)}{head}: {asked.length} positions{drawn_as(encoding)}"
