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
    dim: Annotated[Optional[int], option("Width of a vector.", "N", shown="20")] = None
    base: options.Base = None
    convention: options.Convention = None
    start: Annotated[
        Optional[int],
        option(
            "First position; may be negative. A bias is drawn on both sides of distance 0.",
            "P",
            shown="0",
        ),
    ] = None
    dimensions: Annotated[
        Union[None, tuple[int, ...]],
        option("Which columns; without it, some that are spread over the width.", "J"),
    ] = None
    output: options.Figure = None
    theme: options.Theme = "light"
    dpi: options.Dpi = None
    seed: options.Seed = 0
    format: options.Format = "text"

    def run(self) -> None:
        """Draws, or prints the numbers that would be drawn."""
        from posenc.cli.encodings import chosen, described, note_of
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import rows_of

        figures.check_drawn(self.output, self.theme, self.dpi, self.format)
        encoding = chosen(self, dim=20, seed=self.seed)
        rows = rows_of(encoding)
        width, start = len(rows.columns), self.start
        if start is None:
            start = -(self.length // 2) if rows.counted == "distance" else 0
        picked = self.dimensions or range(0, width, 1 if width <= 8 else -(-width // 12) * 2)
        if outside := [index for index in picked if not 0 <= index < width]:
            raise UserError(f"--dimensions has {outside[0]}; the table has 0 … {width - 1}")
        if self.format != "text":
            keys = [rows.keys[index] for index in picked]
            about = {**described(encoding), "start": start, "columns": keys}
            blocks = rows.blocks(start, self.length)
            table.print_as(self.format, about, rows, picked, blocks)
            return
        labels = [_label(encoding, rows, index) for index in picked]
        if self.output is not None:
            self._draw(self.output, encoding, rows, start, picked, labels)
            return
        pictures.curves(rows, picked, labels, start, self.length)
        if note := note_of(encoding):
            print(note)

    def _draw(
        self,
        output: Path,
        encoding: Any,
        rows: "Rows",
        start: int,
        picked: Sequence[int],
        labels: list[str],
    ) -> None:
        from posenc.cli.encodings import drawn_as, is_drawn, name_of
        from posenc.cli.render import figures

        kind = figures.kind_of(output, self.dpi)
        from posenc.plots import bias, curves

        values, name = rows.between(start, self.length), name_of(encoding)
        if rows.counted == "distance":
            axes = bias(
                values[:, list(picked)].mT,
                range(start, start + self.length),
                heads=picked,
                random=is_drawn(encoding),
                title=name,
                theme=self.theme,
            )
        else:
            axes = curves(
                values,
                dimensions=picked,
                labels=labels,
                start=start,
                title=f"{name}{drawn_as(encoding)}",
                theme=self.theme,
            )
        figures.write(axes, output, kind, self.dpi)


def _label(encoding: Any, rows: "Rows", index: int) -> str:
    """What a curve is: its column, and the wavelength of a sine or cosine in positions."""
    from posenc import Rotary, Sinusoidal

    turn = math.inf
    if isinstance(encoding, Sinusoidal):
        channel = encoding.convention.channel(index, encoding.dim, encoding.base)
        turn = math.tau / channel.frequency if channel.frequency else math.inf
    elif isinstance(encoding, Rotary):
        turn = encoding.frequencies.wavelengths()[index // 2]
    told = f", wavelength {turn:.4g}" if math.isfinite(turn) else ""
    return f"{rows.columns[index]}{told}"
