"""What is printed: json and csv for programs, tables and lines of bars for a reader."""

import csv
import json
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

BARS, STEPS = "▁▂▃▄▅▆▇█", "_.-~^"


def options_of(command: Any) -> dict[str, Any]:
    """The options of a command that say what was asked for, as JSON repeats them."""
    return {n: value for n, value in asdict(command).items() if n not in ("format", "output")}


def described_sinusoid(given: Any) -> dict[str, object]:
    """What JSON says of an encoding, or of what has its attributes."""
    sign = "+" if given.offset > 0 else "−"
    counted = f"; p = position {sign} {abs(given.offset)}" if given.offset else ""
    told = {"convention": given.convention.name, "formula": given.convention.formula + counted}
    return {"encoding": "Sinusoidal", **told, "dim": given.dim, "base": given.base}


def print_json(value: Any, /, **found: Any) -> None:
    """One value on standard output; what is not finite becomes null, for JSON has no infinity."""
    told = json.loads(json.dumps(value | found if found else value), parse_constant=lambda _: None)
    json.dump(told, sys.stdout, indent=1, ensure_ascii=False)
    sys.stdout.write("\n")


def print_csv(headers: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """A header and rows on standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)


def console() -> "Console":
    """A console on standard output; in a pipe, prose is not folded."""
    from rich.console import Console

    plain: Any = {"highlight": False, "emoji": False, "markup": False, "legacy_windows": False}
    return Console(**plain, soft_wrap=not sys.stdout.isatty())


def only_ascii(screen: "Console") -> bool:
    """Whether only ASCII is sure to arrive: in a pipe, or where the encoding has no more."""
    return not screen.is_terminal or not screen.encoding.lower().startswith("utf")


def grid(headers: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> int:
    """Prints columns, to the right but for those in ``left``; tells how many did not fit."""
    from rich.cells import cell_len
    from rich.table import Table

    screen = console()
    columns = ["\n".join(column).split("\n") for column in zip(headers, *rows, strict=True)]
    ends = list(accumulate(max(map(cell_len, column)) + 2 for column in columns))
    shown, end = len(ends), []
    if ends[-1] > screen.width + 2:
        shown, end = max(2, sum(each < screen.width for each in ends)), ["…"]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index, header in enumerate([*headers[:shown], *end]):
        table.add_column(header, justify="left" if index in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row[:shown], *end)
    screen.print(table)
    return len(headers) - shown


def print_folded(lines: Iterable[str]) -> None:
    """Prints lines in 98 characters, what follows deeper; code is copied, so it stays as it is."""
    for line in lines:
        deeper = " " * (len(line) - len(line.lstrip()) + 2)
        how: Any = {"break_long_words": False, "break_on_hyphens": False}
        is_code = line.lstrip().startswith(">>>")
        print(line if is_code else textwrap.fill(line, 98, subsequent_indent=deeper, **how))


def marked(values: Iterable[float], marks: str) -> str:
    """A mark for each value: the first at −1, the last at +1."""
    places = (int((value + 1) / 2 * len(marks)) for value in values)
    return "".join(marks[min(len(marks) - 1, max(0, place))] for place in places)


def sparkline(values: Iterable[float], screen: "Console") -> str:
    """Bars for values of −1 … 1."""
    return marked(values, STEPS if only_ascii(screen) else BARS)


def legend(screen: "Console", low: str = "-1", high: str = "+1") -> str:
    """What the lowest and the highest mark of a sparkline stand for."""
    lowest, highest = sparkline([-1, 1], screen)
    return f"{lowest} is {low}, {highest} is {high}."


def print_line(title: str, values: Sequence[float]) -> None:
    """Prints marks from the least of the numbers to the greatest, behind a title."""
    screen, low, high = console(), min(values), max(values)
    screen.print(f"{title}; {legend(screen, f'{low:.4g}', f'{high:.4g}')}")
    scaled = [2 * (value - low) / ((high - low) or 1.0) - 1 for value in values]
    screen.print(sparkline(scaled, screen))


def number(value: float, digits: int = 4) -> str:
    """A number in a fixed width, with a sign only where it is negative."""
    text = f"{value: .{digits}f}"
    return text if text.strip("-0. ") else f" {0:.{digits}f}"


def exactly(value: float) -> str:
    """A number that was given, with all its digits: 10000.0 as 10000."""
    return str(value).removesuffix(".0")


def short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator."""
    return f"{value:.10g}"
