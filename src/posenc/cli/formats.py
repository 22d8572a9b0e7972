"""csv and json, for programs to read."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc.cli.rows import Blocks, Rows


def options_of(command: Any) -> dict[str, Any]:
    """The options of a command that say what was asked for, as JSON repeats them."""
    return {n: value for n, value in asdict(command).items() if n not in ("format", "output")}


def print_json(value: Any, /, **found: Any) -> None:
    """One value on standard output; what is not finite becomes null, for JSON has no infinity."""
    told = _finite(value | found if found else value)
    json.dump(told, sys.stdout, indent=1, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_csv(headers: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """A header and rows on standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)


def print_rows(
    form: str, about: dict[str, Any], rows: "Rows", blocks: "Blocks", columns: Sequence[int] = ()
) -> None:
    """Some columns of a table, or all, as csv or json; block by block, so it may be of any size."""
    from posenc.cli.rows import digits

    picked = list(columns or range(len(rows.keys)))
    keys = [rows.keys[index] for index in picked]
    lines = ((p, row) for ps, x in blocks for p, row in zip(ps, digits(x[:, picked]), strict=True))
    if form == "csv":
        return print_csv([rows.counted, *keys], ([p, *row] for p, row in lines))
    told = json.dumps({**about, "columns": keys}, ensure_ascii=False)
    sys.stdout.write(f'{told[:-1]}, "rows": [')
    before = "\n"
    for _, row in lines:
        cells = ("null" if each.strip("-") in ("inf", "nan") else each for each in row)
        sys.stdout.write(f"{before}[{', '.join(cells)}]")
        before = ",\n"
    sys.stdout.write("\n]}\n")
