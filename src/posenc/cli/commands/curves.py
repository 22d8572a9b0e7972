"""``posenc curves``: single columns over the position, in a file or in the terminal."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union

from typing_extensions import Doc

from posenc.cli import options
from posenc.cli.errors import check_one_of
from posenc.cli.options import named

if TYPE_CHECKING:
    from posenc.cli.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Curves(options.Drawing):
    """A bias is drawn over the distance (query - key), one curve a head, on both sides of 0."""

    dim: options.Width = 20
    length: options.Length = 100
    start: Annotated[Optional[int], named("P"), Doc("First position (default: 0).")] = None
    dimensions: Annotated[
        Union[None, tuple[int, ...]], named("J"), Doc("Which columns (default: some of them).")
    ] = None

    def run(self) -> None:
        """Draws, or prints the numbers that would be drawn."""
        from posenc.cli.encodings import chosen, described, print_note
        from posenc.cli.render import figures, pictures, table
        from posenc.cli.rows import rows_of

        figures.check_figure(self.output, self.dpi)
        encoding = chosen(self)
        rows = rows_of(encoding)
        width, start = len(rows.columns), self.start
        if start is None:
            start = -(self.length // 2) if rows.counted == "distance" else 0
        picked = self.dimensions or range(0, width, 1 if width <= 8 else -(-width // 12) * 2)
        for index in picked:
            check_one_of("one of --dimensions", index, width)
        labels = [_label(encoding, rows, index) for index in picked]
        if self.output is not None:
            self._draw(encoding, rows, start, picked, labels)
        if self.format != "text":
            about, blocks = {**described(encoding), "start": start}, rows.blocks(start, self.length)
            table.print_as(self.format, about, rows, picked, blocks)
        elif self.output is None:
            pictures.curves(rows, picked, labels, start, self.length)
            print_note(encoding)

    def _draw(
        self, encoding: Any, rows: "Rows", start: int, picked: Sequence[int], labels: list[str]
    ) -> None:
        from posenc.cli.encodings import learns, name_of
        from posenc.cli.render import figures
        from posenc.plots import bias, curves

        values, name, theme = rows.between(start, self.length), name_of(encoding), self.theme
        if rows.counted == "distance":
            profile, distances = values[:, list(picked)].mT, range(start, start + self.length)
            drawn = learns(encoding)
            axes = bias(profile, distances, heads=picked, random=drawn, title=name, theme=theme)
        else:
            title = f"{name}, not trained" if learns(encoding) else name
            shown = {"dimensions": picked, "labels": labels}
            axes = curves(values, **shown, start=start, title=title, theme=theme)
        figures.write(axes, self.output, self.dpi, self.format)


def _label(encoding: Any, rows: "Rows", index: int) -> str:
    """What a curve is: its column, and the wavelength of a sine or cosine in positions."""
    from posenc import Rotary, Sinusoidal

    turn = math.inf
    if isinstance(encoding, Sinusoidal):
        frequency = encoding.convention.channel(index, encoding.dim, encoding.base).frequency
        turn = math.tau / frequency if frequency else math.inf
    elif isinstance(encoding, Rotary):
        turn = encoding.frequencies.wavelengths()[index // 2]
    told = f", wavelength {turn:.4g}" if math.isfinite(turn) else ""
    return f"{rows.columns[index]}{told}"
