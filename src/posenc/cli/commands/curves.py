"""``posenc curves``: single columns over the position, in a file or in the terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import option

if TYPE_CHECKING:
    from posenc.cli.rows import Rows


@dataclass(frozen=True)
class Curves:
    """Those of a bias are its heads, over the distance query - key; where more than the distance
    counts, the first of both stands at 0.
    """

    length: options.Length = 100
    encoding: options.Expression = None
    dim: Annotated[
        Optional[int],
        option("Width of a vector.", metavar="N", shown="20"),
    ] = None
    base: options.Base = None
    convention: options.Convention = None
    start: Annotated[
        Optional[int],
        option(
            "First position; may be negative. A bias is drawn on both sides of distance 0.",
            metavar="P",
            shown="0",
        ),
    ] = None
    dimensions: Annotated[
        Union[None, tuple[int, ...]],
        option("Which columns; without it, some that are spread over the width.", metavar="J"),
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
        from posenc.cli.encodings import chosen, described, note_of
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import rows_of

        figures.check_drawn(self.output is not None, self.theme, self.dpi)
        encoding = chosen(self, dim=20, seed=self.seed)
        rows = rows_of(encoding)
        start = self._first(rows)
        picked = self._chosen(rows)
        if self.format != "text":
            if self.output is not None:
                raise UserError("--output draws and --format prints; give one of them")
            keys = [rows.keys[index] for index in picked]
            about = {**described(encoding), "start": start, "columns": keys}
            blocks = rows.blocks(start, self.length)
            table.print_as(self.format, about, rows, picked, blocks)
        elif self.output is not None:
            self._draw(encoding, rows, start, picked)
        else:
            labels = [_label(encoding, rows, index) for index in picked]
            pictures.curves(rows, picked, labels, start=start, length=self.length)
            if note := note_of(encoding):
                print(note)

    def _first(self, rows: "Rows") -> int:
        if self.start is not None:
            return self.start
        return -(self.length // 2) if rows.counted == "distance" else 0

    def _chosen(self, rows: "Rows") -> Sequence[int]:
        width = len(rows.columns)
        if not self.dimensions:
            step = 1 if width <= 8 else -(-width // 12) * 2
            return range(0, width, step)
        if outside := [index for index in self.dimensions if not 0 <= index < width]:
            raise UserError(
                f"dimension {outside[0]} is not in the table, which has 0 … {width - 1}"
            )
        return self.dimensions

    def _draw(self, encoding: Any, rows: "Rows", start: int, picked: Sequence[int]) -> None:
        from posenc.cli.encodings import drawn_as, is_drawn, name_of
        from posenc.cli.render import figures

        assert self.output is not None
        kind = figures.kind_of(self.output, self.dpi)
        from posenc.plots import bias, curves

        values = rows.between(start, self.length)
        shared: dict[str, Any] = {"theme": self.theme}
        if rows.counted == "distance":
            distances = range(start, start + self.length)
            heads = values[:, list(picked)].mT
            axes = bias(
                heads,
                distances,
                heads=picked,
                random=is_drawn(encoding),
                title=name_of(encoding),
                **shared,
            )
        else:
            labels = [_label(encoding, rows, index) for index in picked]
            title = f"{name_of(encoding)}{drawn_as(encoding)}"
            axes = curves(
                values, dimensions=picked, labels=labels, start=start, title=title, **shared
            )
        figures.write(axes, self.output, kind, self.dpi)


def _label(encoding: Any, rows: "Rows", index: int) -> str:
    """What a curve is: its column, and the wavelength of a sine or cosine in positions."""
    from posenc import Rotary, Sinusoidal

    name = rows.columns[index]
    if isinstance(encoding, Sinusoidal):
        channel = encoding.convention.channel(index, encoding.dim, encoding.base)
        turn = math.tau / channel.frequency if channel.frequency else math.inf
    elif isinstance(encoding, Rotary):
        turn = encoding.frequencies.wavelengths()[index // 2]
    else:
        return name
    return f"{name}, wavelength {turn:.4g}" if math.isfinite(turn) else name
