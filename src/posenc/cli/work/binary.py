"""``posenc binary``: positions as binary numbers beside the sines of an encoding, without torch."""

from typing import Any

from posenc.cli.errors import UserError
from posenc.cli.printing import console, grid, legend, options_of, print_csv, print_json, sparkline
from posenc.frequencies import Powers
from posenc.numerics.in_integers import near_value


def binary(asked: Any) -> None:
    if asked.dim < 2 or asked.dim % 2:
        raise UserError(f"--dim is {asked.dim}; sines come in pairs: give an even number")
    places = range(max(1, (asked.length - 1).bit_length()))
    digits = [[p >> place & 1 for place in places] for p in range(asked.length)]
    turns = Powers(asked.base, tuple(range(0, asked.dim, 2)), asked.dim).turns()
    sines = [[near_value(p * turn, sine=True) for turn in turns] for p in range(asked.length)]
    names = [*(f"bit {n}" for n in places), *(f"sine {n}" for n in range(len(turns)))]
    rows = [[*some, *values] for some, values in zip(digits, sines, strict=True)]
    if asked.format == "json":
        print_json(options_of(asked), rows=[dict(zip(names, row, strict=True)) for row in rows])
    elif asked.format == "csv":
        print_csv(["position", *names], ([p, *row] for p, row in enumerate(rows)))
    else:
        screen = console()
        bits = ("".join(map(str, reversed(row))) for row in digits)
        waves = ("  ".join(sparkline(row, screen)) for row in sines)
        shown = list(zip(map(str, range(asked.length)), bits, waves, strict=True))
        grid(["position", "binary", "sines, fastest first"], shown, left=[2])
        screen.print(legend(screen))
        screen.print("the lowest bit and the first sine change fastest, the last ones slowest")
