"""A table of numbers that may be longer than memory: printed block by block."""

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from torch import Tensor

from posenc.cli.render.screen import console, number
from posenc.cli.rows import Rows, digits

Blocks = Iterable[tuple[list[int], Tensor]]


def print_text(rows: Rows, blocks: Blocks) -> None:
    """The table for a reader: as many columns as the screen has room for."""
    screen, headers = console(), [rows.counted, *rows.columns]
    widths, shown = list[int](), len(headers)
    for counted, block in blocks:
        numbers = [list(map(number, row)) for row in block.tolist()]
        cells = [[str(p), *row] for p, row in zip(counted, numbers, strict=True)]
        if not widths:  # those of the first rows serve for all
            cells = [headers, *cells]
            widths = [max(map(len, column)) + 2 for column in zip(*cells, strict=True)]
            ends = list(accumulate(widths))
            if ends[-1] > screen.width + 2:
                shown = max(2, sum(end <= screen.width - 3 for end in ends))
        for row in cells:
            line = "".join(cell.rjust(w) for cell, w in zip(row[:shown], widths, strict=False))[2:]
            line += "  …" * (shown < len(headers))
            screen.print(line, style="bold" if row is headers else None)
    if shown < len(headers):
        screen.print(f"{shown - 1} of {len(rows.columns)} columns fit; --format csv prints all.")


def print_as(
    form: str, about: dict[str, Any], rows: Rows, chosen: Sequence[int], blocks: Blocks
) -> None:
    """Some columns of the table as csv, a row a line, or as json: what was asked, and rows."""
    keys = [rows.keys[index] for index in chosen]
    if form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow([rows.counted, *keys])
        for counted, block in blocks:
            shown = digits(block[:, list(chosen)])
            writer.writerows([p, *row] for p, row in zip(counted, shown, strict=True))
        return
    told = json.dumps({**about, "columns": keys}, ensure_ascii=False)
    sys.stdout.write(f'{told[:-1]}, "rows": [')
    before = "\n"
    for _, block in blocks:
        for row in digits(block[:, list(chosen)]):
            cells = ("null" if each.strip("-") in ("inf", "nan") else each for each in row)
            sys.stdout.write(f"{before}[{', '.join(cells)}]")
            before = ",\n"
    sys.stdout.write("\n]}\n")
