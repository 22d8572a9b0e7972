"""The work of ``posenc table``."""

import csv
import json
import sys
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from posenc import Sinusoidal
from posenc.cli.errors import UserError
from posenc.cli.table import Table
from posenc.cli.terminal import console, grid, number, shortened
from posenc.cli.writers import digits
from posenc.positions import consecutive

# Positions that are computed and printed together.
BLOCK = 1024


def print_table(arguments: Table) -> None:
    """Runs the command."""
    if arguments.length < 1:
        raise UserError(f"--length is {arguments.length}; it must be at least 1")
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    {"text": _text, "csv": _csv, "json": _json}[arguments.format](arguments, encoding)


def print_columns(arguments: Table, columns: Sequence[int]) -> None:
    """Prints some columns of the table as csv or json."""
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    if outside := [column for column in columns if not 0 <= column < arguments.dim]:
        raise UserError(
            f"dimension {outside[0]} is not in the table, which has 0 … {arguments.dim - 1}"
        )
    if list(columns) == list(range(arguments.dim)):
        print_table(arguments)
        return
    writer, rows = csv.writer(sys.stdout, lineterminator="\n"), []
    if arguments.format == "csv":
        writer.writerow(["position", *(f"dim_{index}" for index in columns)])
    for positions, block in _blocks(arguments, encoding):
        for position, row in zip(positions, digits(block[:, list(columns)]), strict=True):
            if arguments.format == "csv":
                writer.writerow([position, *row])
            else:
                rows.append([float(value) for value in row])
    if arguments.format == "json":
        about = {"convention": arguments.convention, "dim": arguments.dim, "base": arguments.base}
        json.dump({**about, "start": arguments.start, "dimensions": list(columns), "rows": rows},
                  sys.stdout)  # fmt: skip
        sys.stdout.write("\n")


def _blocks(arguments: Table, encoding: Sinusoidal) -> Iterator[tuple[list[int], Tensor]]:
    """Positions and their rows, some at a time."""
    dtype = getattr(torch, arguments.dtype)
    end = arguments.start + arguments.length
    for start in range(arguments.start, end, BLOCK):
        positions = consecutive(min(BLOCK, end - start), start=start)
        yield positions.tolist(), encoding.table(positions, dtype=dtype)


def _text(arguments: Table, encoding: Sinusoidal) -> None:
    screen = console()
    most = arguments.dim
    if screen.is_terminal:
        most = max(3, (screen.width - 12) // 11)
    headers = [
        f"{index} {encoding.convention.channel(index, arguments.dim, arguments.base).function}"
        for index in range(arguments.dim)
    ]
    for positions, block in _blocks(arguments, encoding):
        rows = [
            [str(position), *shortened([number(v) for v in row], most)]
            for position, row in zip(positions, block.tolist(), strict=True)
        ]
        screen.print(grid(["position", *shortened(headers, most)], rows, screen))
    if most < arguments.dim:
        screen.print(f"{most - 1} of {arguments.dim} dimensions fit; --format csv prints all.")


def _csv(arguments: Table, encoding: Sinusoidal) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["position", *(f"dim_{index}" for index in range(arguments.dim))])
    for positions, block in _blocks(arguments, encoding):
        for position, row in zip(positions, digits(block), strict=True):
            writer.writerow([position, *row])


def _json(arguments: Table, encoding: Sinusoidal) -> None:
    about = {
        "encoding": "Sinusoidal",
        "convention": encoding.convention.name,
        "formula": encoding.convention.formula,
        "dim": arguments.dim,
        "base": arguments.base,
        "start": arguments.start,
        "dtype": arguments.dtype,
    }
    sys.stdout.write(f'{json.dumps(about, ensure_ascii=False)[:-1]}, "rows": [')
    before = "\n"
    for _, block in _blocks(arguments, encoding):
        for row in digits(block):
            sys.stdout.write(f"{before}[{', '.join(row)}]")
            before = ",\n"
    sys.stdout.write("\n]}\n")
