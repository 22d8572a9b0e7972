"""The work of ``posenc explain``: the facts are those of the convention, the value the table's."""

import csv
import json
import math
import sys
from dataclasses import asdict, dataclass

import torch

from posenc import Sinusoidal
from posenc.cli.explain import Explain
from posenc.cli.terminal import console, grid


@dataclass(frozen=True)
class Step:
    """One line of an explanation.

    Attributes:
        name: What is worked out.
        formula: In symbols.
        numbers: The same with the numbers put in.
        value: What it comes to.
    """

    name: str
    formula: str
    numbers: str
    value: float


def explain(arguments: Explain) -> None:
    """Runs the command."""
    encoding = Sinusoidal(arguments.dim, arguments.base, arguments.convention)
    # The channel first: it knows which dimensions there are.
    found = steps(encoding, arguments.position, arguments.dimension)
    if arguments.format == "json":
        about = {"formula": encoding.convention.formula, **_asked(arguments)}
        about["steps"] = [asdict(step) for step in found]
        json.dump({**about, "value": found[-1].value}, sys.stdout, ensure_ascii=False, indent=1)
        sys.stdout.write("\n")
    elif arguments.format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["step", "formula", "numbers", "value"])
        writer.writerows([s.name, s.formula, s.numbers, repr(s.value)] for s in found)
    else:
        _print(arguments, encoding, found)


def steps(encoding: Sinusoidal, position: int, dimension: int) -> list[Step]:
    """From position and dimension to the value, one operation at a time.

    Example:
        >>> [step.numbers for step in steps(Sinusoidal(4, base=100.0), 3, 2)]
        ['1/2', '100^(1/2)', '3 / 10', 'sin(0.3)']
    """
    channel = encoding.convention.channel(dimension, encoding.dim, encoding.base)
    value = encoding.table(torch.tensor([position]), dtype=torch.float64)[0, dimension].item()
    if channel.function == "zero":
        return [
            Step("value", f"dimension {dimension} of an odd width", "filled with zeros", value),
        ]
    number, symbol, first = position, "p", []
    if channel.first:
        number, symbol = position + channel.first, "t"
        first = [Step("count", f"t = p + {channel.first}", f"{position} + {channel.first}", number)]
    divisor = 1 / channel.frequency
    exponent = channel.exponent
    angle = number * channel.frequency
    return [
        Step("exponent", f"e of dimension {dimension}", str(exponent), float(exponent)),
        Step("divisor", "n^e", f"{encoding.base:g}^({exponent})", divisor),
        *first,
        Step("angle", f"{symbol} / n^e", f"{number} / {_short(divisor)}", angle),
        Step("value", f"{channel.function}(angle)", f"{channel.function}({_short(angle)})", value),
    ]


def _print(arguments: Explain, encoding: Sinusoidal, found: list[Step]) -> None:
    screen = console()
    channel = encoding.convention.channel(arguments.dimension, arguments.dim, arguments.base)
    asked = f"p = {arguments.position}, d = {arguments.dim}, n = {arguments.base:g}"
    screen.print(f"{encoding.convention.name}: {encoding.convention.formula}", style="bold")
    screen.print(f"dimension {arguments.dimension} is {NAMES[channel.function]}; {asked}")
    screen.print()
    rows = [[s.name, s.formula, s.numbers, f"= {_short(s.value)}"] for s in found]
    screen.print(grid(["step", "formula", "numbers put in", "value"], rows, screen, (0, 1, 2, 3)))
    if channel.frequency:
        wavelength = math.tau / channel.frequency
        screen.print(f"It repeats every 2π × n^e = {_short(wavelength)} positions.")


NAMES = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}


def _asked(arguments: Explain) -> dict[str, object]:
    names = ("convention", "dim", "base", "position", "dimension")
    return {name: getattr(arguments, name) for name in names}


def _short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator.

    Example:
        >>> _short(21.544346900318843), _short(10.0)
        ('21.5443469', '10')
    """
    return f"{value:.10g}"
