"""The work of ``posenc binary``, ``shift``, ``distance`` and ``compare``."""

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from posenc import Sinusoidal
from posenc.cli.binary import Binary
from posenc.cli.compare import Compare
from posenc.cli.distance import Distance
from posenc.cli.errors import UserError
from posenc.cli.shift import Shift
from posenc.cli.terminal import console, grid, number, plain
from posenc.cli.terminal_pictures import BARS, STEPS, sparkline
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import Geometric
from posenc.inspection.binary import binary_digits, waves
from posenc.inspection.conventions import properties_of
from posenc.inspection.shift import shift_map
from posenc.inspection.similarity import closest_pair, dot_product_profile


def binary(arguments: Binary) -> None:
    """Runs the command ``binary``."""
    _positive(arguments.length, least=1)
    if arguments.dim < 2 or arguments.dim % 2:
        raise UserError(f"--dim is {arguments.dim}; waves come in pairs: give an even number")
    digits = binary_digits(arguments.length)
    columns = waves(Geometric(arguments.dim, arguments.base), arguments.length)
    names = [
        *(f"bit {bit}" for bit in range(digits.shape[1])),
        *(f"wave {pair}" for pair in range(columns.shape[1])),
    ]
    rows = [
        [*some, *values] for some, values in zip(digits.tolist(), columns.tolist(), strict=True)
    ]
    if arguments.format == "json":
        _json(arguments, rows=[dict(zip(names, row, strict=True)) for row in rows])
    elif arguments.format == "csv":
        _csv(["position", *names], ([p, *row] for p, row in enumerate(rows)))
    else:
        screen, bits = console(), digits.shape[1]
        marks = STEPS if plain(screen) else BARS
        screen.print("position   binary" + " " * bits + "waves, fastest first")
        for position, row in enumerate(rows):
            written = "".join(str(digit) for digit in reversed(row[:bits]))
            bars = "  ".join(sparkline([value], marks) for value in row[bits:])
            screen.print(f"{position:>8}   {written.rjust(6)}   {bars}")
        screen.print("the lowest bit and the first wave change fastest, the last ones slowest")


def shift(arguments: Shift) -> None:
    """Runs the command ``shift``."""
    _positive(arguments.length, least=1)
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    found = shift_map(encoding, arguments.offset, length=arguments.length)
    rows = found.matrix.tolist()
    if arguments.format == "json":
        _json(
            arguments,
            residual=found.residual,
            exact=found.exact,
            reason=found.reason,
            matrix=rows,
        )
    elif arguments.format == "csv":
        _csv([f"from_{j}" for j in range(arguments.dim)], rows)
    else:
        screen = console()
        most = max(2, (screen.width - 12) // 11) if screen.is_terminal else arguments.dim
        shown = rows[:most]
        headers = ["to \\ from", *(str(j) for j in range(min(most, arguments.dim)))]
        body = [[str(i), *(number(v) for v in row[:most])] for i, row in enumerate(shown)]
        screen.print(f"PE(p + {arguments.offset}) = M PE(p), with M =")
        screen.print(grid(headers, body, screen))
        if most < arguments.dim:
            screen.print(f"{most} of {arguments.dim} rows and columns fit; --format csv gives all.")
        what = "the rotation of each pair" if found.exact else f"the best map ({found.reason})"
        screen.print(
            f"{what}: largest error {found.residual:.2g} over {arguments.length} positions"
        )


def distance(arguments: Distance) -> None:
    """Runs the command ``distance``."""
    _positive(arguments.length, least=2)
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    profile = dot_product_profile(encoding, arguments.length).tolist()
    pair = closest_pair(encoding, arguments.length)
    if arguments.format == "json":
        _json(arguments, profile=profile, closest=asdict(pair))
    elif arguments.format == "csv":
        _csv(["offset", "dot_product"], enumerate(profile))
    else:
        screen = console()
        marks = STEPS if plain(screen) else BARS
        room = screen.width - 2 if screen.is_terminal else 118
        top = max(abs(value) for value in profile) or 1.0
        for begin in range(0, len(profile), room):
            part = profile[begin : begin + room]
            screen.print(sparkline([value / top for value in part], marks))
        screen.print(
            f"dot product over the offset, 0 to {arguments.length - 1}: {profile[0]:.4g} at 0, "
            f"{min(profile):.4g} at {profile.index(min(profile))}"
        )
        screen.print(
            f"closest pair: positions {pair.first} and {pair.second}, {pair.distance:.4g} apart"
        )


def compare(arguments: Compare) -> None:
    """Runs the command ``compare``."""
    _positive(arguments.length, least=11)
    found: dict[str, dict[str, Any]] = {}
    for name in CONVENTIONS:
        try:
            encoding = Sinusoidal(arguments.dim, arguments.base, name)
        except ValueError:
            continue  # a convention that refuses this width
        found[name] = asdict(properties_of(encoding, arguments.length))
    if not found:
        raise UserError(f"--dim is {arguments.dim}; no convention takes that width")
    names = list(next(iter(found.values())))
    if arguments.format == "json":
        _json(arguments, conventions=found)
    elif arguments.format == "csv":
        _csv(["convention", *names], ([name, *row.values()] for name, row in found.items()))
    else:
        screen = console()
        for name, row in found.items():
            about = CONVENTIONS[name]
            screen.print(f"{name}: {about.formula}")
            screen.print(
                f"  values up to {row['largest']:.4g}; closest pair {row['closest']:.4g} apart; "
                f"norms spread {row['norm_spread']:.2g}"
            )
            screen.print(
                f"  shift by 10 misses {row['shift_residual']:.2g}; "
                f"{row['distinct_in_bfloat16']} of {arguments.length} distinct in bfloat16"
            )


def _positive(length: int, *, least: int) -> None:
    if length < least:
        raise UserError(f"--length is {length}; it must be at least {least}")


def _json(arguments: Any, **found: Any) -> None:
    about = {name: value for name, value in asdict(arguments).items() if name != "format"}
    json.dump({**about, **found}, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _csv(headers: Sequence[str], rows: Any) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(headers)
    writer.writerows(rows)
