"""One number of a table, from the formula to the value; that of a sinusoid needs no tensors."""

import math
from dataclasses import dataclass

from posenc.cli.errors import UserError, check_range
from posenc.cli.sinusoid import Sinusoid


@dataclass(frozen=True)
class Step:
    """One line of an explanation: what is worked out, in symbols and in numbers, and its value."""

    name: str
    formula: str
    numbers: str
    value: float


@dataclass(frozen=True)
class Explanation:
    """All steps to one number, from the first to the value, and the words around them."""

    title: str
    asked: str
    steps: list[Step]
    note: str = ""


def check_column(thing: str, index: int, width: str, columns: int) -> None:
    """Refuses a column that the table does not have."""
    if not 0 <= index < columns:
        raise UserError(
            f"{thing} is {index}; with {width} {columns} it must be one of 0 … {columns - 1}"
        )


def explained_sinusoid(
    given: Sinusoid, position: int, dimension: int, value: float | None = None, by: str = "exact"
) -> Explanation:
    """Where the number in row ``position`` and column ``dimension`` comes from.

    Example:
        >>> from posenc.encodings.tokens.conventions import PAPER
        >>> [step.numbers for step in explained_sinusoid(Sinusoid(PAPER, 4, 100.0), 3, 2).steps]
        ['1/2', '100^(1/2)', '3 / 10', 'sin(0.3)']
    """
    check_column("dimension", dimension, "dim", given.dim)
    check_range(position, 1, first=given.first)
    value = given.value(position, dimension) if value is None else value
    channel = given.channel(dimension)
    kind = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}[channel.function]
    base = exactly(given.base)
    title = f"{given.convention.name}: {given.convention.formula}"
    asked = f"dimension {dimension} is {kind}; p = {position}, d = {given.dim}, n = {base}"
    if channel.function == "zero":
        about = f"dimension {dimension} of an odd width"
        return Explanation(title, asked, [Step("value", about, "filled with zeros", value)])
    counted, symbol, count = position, "p", []
    if given.first:
        counted, symbol = position + given.first, "t"
        numbers = f"{position} + {given.first}"
        count = [Step("count", f"t = p + {given.first}", numbers, counted)]
    divisor, angle, exponent = 1 / channel.frequency, counted * channel.frequency, channel.exponent
    steps = [
        Step("exponent", f"e of dimension {dimension}", str(exponent), float(exponent)),
        Step("divisor", "n^e", f"{base}^({exponent})", divisor),
        *count,
        Step("angle", f"{symbol} / n^e", f"{counted} / {short(divisor)}", angle),
        value_step(channel.function, angle, value, by),
    ]
    return Explanation(title, asked, steps, repeats("2π × n^e", channel.frequency))


def value_step(function: str, angle: float, value: float, by: str) -> Step:
    """The last step: a sine or cosine, and how it was rounded, where that is not once."""
    rounded = "" if by == "exact" else f", by {by} arithmetic"
    return Step("value", f"{function}(angle){rounded}", f"{function}({short(angle)})", value)


def repeats(formula: str, omega: float) -> str:
    """After how many positions a number comes again, if it does."""
    return f"It repeats every {formula} = {short(math.tau / omega)} positions." if omega else ""


def show(found: Explanation) -> None:
    """Prints an explanation, without rich, which loads as long as all the rest."""
    rows = [("step", "formula", "numbers put in", "value")]
    rows += [(s.name, s.formula, s.numbers, f"= {short(s.value)}") for s in found.steps]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    print(found.title, found.asked, "", *lines, *filter(None, [found.note]), sep="\n")


def exactly(value: float) -> str:
    """A number that was given, with all its digits: 10000.0 as 10000."""
    return str(value).removesuffix(".0")


def short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator."""
    return f"{value:.10g}"
