"""A table of numbers that may be longer than memory: printed block by block."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from posenc.cli.io.digits import digits
from posenc.cli.render.grids import fitting, line, number, widths_of
from posenc.cli.render.screen import console
from posenc.cli.rows import Rows

Blocks = Iterable[tuple[list[int], Tensor]]


def print_text(rows: Rows, blocks: Blocks) -> None:
    """The table for a reader: as many columns as the screen has room for."""
    screen, widths, shown = console(), [0], len(rows.columns)
    for counted, block in blocks:
        cells = [
            [str(place), *map(number, row)]
            for place, row in zip(counted, block.tolist(), strict=True)
        ]
        begun = len(widths) > 1
        if not begun:
            headers = [rows.counted, *rows.columns]
            widths = widths_of([headers, *cells])
            if screen.is_terminal:
                shown = max(1, fitting(widths, screen.width) - 1)
            screen.print(_line(headers, widths, shown), style="bold")
        for row in cells:
            screen.print(_line(row, widths, shown))
    if shown < len(rows.columns):
        screen.print(f"{shown} of {len(rows.columns)} columns fit; --format csv prints all.")


def _line(cells: Sequence[str], widths: Sequence[int], shown: int) -> str:
    """One row under the header of the first block, cut off where the screen ends."""
    cut = ["…"] if shown + 1 < len(cells) else []
    return line([*cells[: shown + 1], *cut], [*widths[: shown + 1], 1])


def print_csv(rows: Rows, chosen: Sequence[int], blocks: Blocks) -> None:
    """Some columns of the table, or all, a position a line."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([rows.counted, *(rows.keys[index] for index in chosen)])
    for counted, block in blocks:
        for place, row in zip(counted, digits(block[:, list(chosen)]), strict=True):
            writer.writerow([place, *row])


def print_json(about: dict[str, Any], chosen: Sequence[int], blocks: Blocks) -> None:
    """One object: what was asked for, and the rows."""
    sys.stdout.write(f'{json.dumps(about, ensure_ascii=False)[:-1]}, "rows": [')
    before = "\n"
    for _, block in blocks:
        for row in digits(block[:, list(chosen)]):
            sys.stdout.write(f"{before}[{', '.join(map(_number, row))}]")
            before = ",\n"
    sys.stdout.write("\n]}\n")


def print_as(
    form: str, about: dict[str, Any], rows: Rows, chosen: Sequence[int], blocks: Blocks
) -> None:
    """As csv or as json."""
    if form == "csv":
        print_csv(rows, chosen, blocks)
    else:
        print_json(about, chosen, blocks)


def _number(text: str) -> str:
    """JSON has no infinity and no NaN."""
    return text if text.strip("-") not in ("inf", "nan") else "null"
