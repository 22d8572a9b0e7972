"""``posenc heatmap``: the table as a picture, in a file or in the terminal."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import check_heeded, check_one_of
from posenc.cli.options import named

if TYPE_CHECKING:
    from posenc.cli.rows import Rows
    from posenc.encodings.expression import Encoding


@dataclass(frozen=True, kw_only=True)
class Heatmap(options.Drawing):
    """Colors diverge around zero and end at -1 and 1, or at the largest number if it is above 1 or
    below .5. A bias is drawn query by key for one head. A figure of more positions than pixels
    draws means of several positions, and says so. The terminal shows the cells that fit, from
    --start and --first-dimension on.
    """

    dim: options.Width = 128
    length: options.Length = 50
    start: options.Start = 0
    first_dimension: Annotated[int, named("J"), Doc("First one that the terminal shows.")] = 0
    head: Annotated[int, named("H"), Doc("Which head of a bias is drawn.")] = 0

    def run(self) -> None:
        """Draws, or prints the numbers that would be drawn."""
        from posenc.cli.encodings import chosen, described
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import bias_rows, rows_of

        figures.check_figure(self.output, self.dpi)
        encoding = chosen(self)
        rows = rows_of(encoding)
        is_bias = rows.counted == "distance"
        if is_bias:
            rows = bias_rows(encoding, self.head, self.start, self.length)
        width = len(rows.columns)
        check_heeded(self, head=not is_bias and "of an encoding that is no bias")
        check_one_of("--first-dimension", self.first_dimension, width)
        title = self._title(encoding, is_bias)
        if self.output is not None:
            self._draw(rows, title)
        if self.format != "text":
            blocks = rows.blocks(self.start, self.length)
            one = {"head": self.head} if is_bias else {}
            about = {**described(encoding), **one, "start": self.start}
            table.print_as(self.format, about, rows, range(width), blocks)
        elif self.output is None:
            pictures.heatmap(rows, title, self.start, self.length, self.first_dimension)

    def _draw(self, rows: "Rows", title: str) -> None:
        from posenc.cli.render import figures
        from posenc.cli.render.pictures import reached
        from posenc.plots import heatmap
        from posenc.plots.heatmap import MEANS, MOST

        values, each = rows.means(self.start, self.length, MOST if self.length <= MOST else MEANS)
        is_bias = rows.counted == "query"
        axes = heatmap(
            values,
            start=self.start,
            each=each,
            limit=reached(values, not is_bias),
            xlabel="key (position)" if is_bias else rows.across,
            ylabel="query (position)" if is_bias else "position (token)",
            first_column=self.start if is_bias else 0,
            title=title,
            theme=self.theme,
            dpi=self.dpi,
        )
        figures.write(axes, self.output, self.dpi, self.format)

    def _title(self, encoding: "Encoding", is_bias: bool) -> str:
        from posenc import Sinusoidal
        from posenc.cli.encodings import is_plain, learns, name_of

        if isinstance(encoding, Sinusoidal) and is_plain(encoding):
            name = f"Sinusoidal, {encoding.convention.name}"
            return f"{name}: {self.length} positions, d = {encoding.dim}, n = {encoding.base:g}"
        head = f", head {self.head}" if is_bias else ""
        untrained = ", not trained" if learns(encoding) else ""
        return f"{name_of(encoding)}{head}: {self.length} positions{untrained}"
