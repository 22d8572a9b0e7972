"""``posenc binary``: positions as binary numbers beside the sines of an encoding."""

from dataclasses import dataclass
from typing import Annotated

from posenc.cli import options
from posenc.cli.errors import UserError
from posenc.cli.options import option


@dataclass(frozen=True)
class Binary:
    """Two dimensions of an encoding are one sine; the fastest stands first."""

    length: options.Length = 16
    dim: Annotated[
        int,
        option("Width of a vector; two dimensions are one sine.", metavar="N"),
    ] = 8
    base: Annotated[float, option("The n of the formula.", metavar="X")] = 16.0
    format: options.Format = "text"

    def run(self) -> None:
        """Prints."""
        from posenc.cli.errors import check_memory
        from posenc.cli.render import formats

        if self.length < 1:
            raise UserError(f"--length is {self.length}; it must be at least 1")
        if self.dim < 2 or self.dim % 2:
            raise UserError(f"--dim is {self.dim}; sines come in pairs: give an even number")
        if self.base <= 1:
            raise UserError(
                f"--base is {self.base:g}; here each sine is slower than the one before: give more "
                "than 1"
            )
        check_memory(3 * self.length * (self.length.bit_length() + self.dim))
        digits, columns = self._digits(), self._sines()
        names = [
            *(f"bit {bit}" for bit in range(len(digits[0]))),
            *(f"sine {pair}" for pair in range(len(columns[0]))),
        ]
        rows = [[*some, *values] for some, values in zip(digits, columns, strict=True)]
        if self.format == "json":
            told = [dict(zip(names, row, strict=True)) for row in rows]
            formats.print_json(formats.asked(self), rows=told)
        elif self.format == "csv":
            formats.print_csv(["position", *names], ([p, *row] for p, row in enumerate(rows)))
        else:
            _show(digits, columns)

    def _digits(self) -> list[list[int]]:
        """Of each position, the lowest first, without the tensors of ``posenc.inspection``."""
        bits = range(max(1, (self.length - 1).bit_length()))
        return [[position >> bit & 1 for bit in bits] for position in range(self.length)]

    def _sines(self) -> list[list[float]]:
        """Of each position, the fastest first."""
        from posenc.frequencies import Powers
        from posenc.numerics.in_integers import near_value

        turns = Powers(self.base, tuple(range(0, self.dim, 2)), self.dim).turns()
        return [[near_value(p * turn, sine=True) for turn in turns] for p in range(self.length)]


def _show(digits: list[list[int]], columns: list[list[float]]) -> None:
    from posenc.cli.render.screen import console, sparkline

    screen = console()
    bits = max(6, len(digits[0]))
    screen.print("position   " + "binary".rjust(bits) + "   sines, fastest first")
    for position, (row, values) in enumerate(zip(digits, columns, strict=True)):
        written = "".join(str(digit) for digit in reversed(row))
        bars = "  ".join(sparkline([value], screen) for value in values)
        screen.print(f"{position:>8}   {written.rjust(bits)}   {bars}")
    screen.print("the lowest bit and the first sine change fastest, the last ones slowest")
