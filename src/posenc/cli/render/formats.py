"""csv and json, for programs to read."""

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any


def asked(command: Any) -> dict[str, Any]:
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
    csv.writer(sys.stdout, lineterminator="\n").writerows([headers, *rows])
