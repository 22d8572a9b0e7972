"""``posenc binary``: positions as binary numbers beside the sines of an encoding."""

from dataclasses import dataclass

from posenc.cli import options
from posenc.cli.errors import UserError


@dataclass(frozen=True)
class Binary:
    """Two dimensions of an encoding are one sine; the fastest comes first."""

    length: options.Length = 16
    dim: options.Width = 8
    base: options.Base = 16.0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints, without torch."""
        from posenc.cli.formats import asked, print_csv, print_json
        from posenc.frequencies import Powers
        from posenc.numerics.in_integers import near_value

        if self.dim < 2 or self.dim % 2:
            raise UserError(f"--dim is {self.dim}; sines come in pairs: give an even number")
        places = range(max(1, (self.length - 1).bit_length()))
        digits = [[p >> place & 1 for place in places] for p in range(self.length)]
        turns = Powers(self.base, tuple(range(0, self.dim, 2)), self.dim).turns()
        sines = [[near_value(p * turn, sine=True) for turn in turns] for p in range(self.length)]
        names = [*(f"bit {n}" for n in places), *(f"sine {n}" for n in range(len(turns)))]
        rows = [[*some, *values] for some, values in zip(digits, sines, strict=True)]
        if self.format == "json":
            print_json(asked(self), rows=[dict(zip(names, row, strict=True)) for row in rows])
        elif self.format == "csv":
            print_csv(["position", *names], ([p, *row] for p, row in enumerate(rows)))
        else:
            _show(digits, sines)


def _show(digits: list[list[int]], sines: list[list[float]]) -> None:
    from posenc.cli.screen import console, grid, legend, sparkline

    screen = console()
    rows = [
        [str(position), "".join(map(str, reversed(row))), "  ".join(sparkline(values, screen))]
        for position, (row, values) in enumerate(zip(digits, sines, strict=True))
    ]
    grid(["position", "binary", "sines, fastest first"], rows, left=[2])
    screen.print(legend(screen))
    screen.print("the lowest bit and the first sine change fastest, the last ones slowest")
