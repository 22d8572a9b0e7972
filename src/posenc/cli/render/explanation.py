"""One number of a table, from the formula to the value; that of a sinusoid needs no tensors."""

import math
from dataclasses import dataclass

from posenc.cli.errors import UserError, check_range
from posenc.cli.sinusoid import Sinusoid


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


@dataclass(frozen=True)
class Explanation:
    """All steps to one number, and the words around them.

    Attributes:
        title: The encoding, and its formula.
        asked: Which number it is.
        steps: From the first to the value.
        note: What else is to be known.
    """

    title: str
    asked: str
    steps: list[Step]
    note: str = ""


def explained_sinusoid(given: Sinusoid, position: int, dimension: int) -> Explanation:
    """Where the number in row ``position`` and column ``dimension`` comes from.

    Raises:
        UserError: There is no such column, or the position is beyond 64 bits.

    Example:
        >>> from posenc.encodings.tokens.conventions import PAPER
        >>> [step.numbers for step in explained_sinusoid(Sinusoid(PAPER, 4, 100.0), 3, 2).steps]
        ['1/2', '100^(1/2)', '3 / 10', 'sin(0.3)']
    """
    check_column("dimension", dimension, "dim", given.dim)
    check_range(position, 1, first=given.first)
    return sinusoid_steps(given, position, dimension, given.value(position, dimension))


def check_column(thing: str, index: int, width: str, columns: int) -> None:
    """Refuses a column that the table does not have.

    Raises:
        UserError: It has not.
    """
    if not 0 <= index < columns:
        raise UserError(
            f"{thing} is {index}; with {width} {columns} it must be one of 0 … {columns - 1}"
        )


def sinusoid_steps(
    given: Sinusoid, position: int, dimension: int, value: float, arithmetic: str = "exact"
) -> Explanation:
    """The same, where the value is known, and by which ``arithmetic`` it came."""
    channel = given.channel(dimension)
    title = f"{given.convention.name}: {given.convention.formula}"
    asked = (
        f"dimension {dimension} is {NAMES[channel.function]}; "
        f"p = {position}, d = {given.dim}, n = {exactly(given.base)}"
    )
    if channel.function == "zero":
        zeros = Step("value", f"dimension {dimension} of an odd width", "filled with zeros", value)
        return Explanation(title, asked, [zeros])
    first = given.first
    counted, symbol, count = position, "p", []
    if first:
        counted, symbol = position + first, "t"
        count = [Step("count", f"t = p + {first}", f"{position} + {first}", counted)]
    divisor, angle = 1 / channel.frequency, counted * channel.frequency
    exponent = channel.exponent
    steps = [
        Step("exponent", f"e of dimension {dimension}", str(exponent), float(exponent)),
        Step("divisor", "n^e", f"{exactly(given.base)}^({exponent})", divisor),
        *count,
        Step("angle", f"{symbol} / n^e", f"{counted} / {short(divisor)}", angle),
        Step(
            "value",
            f"{channel.function}(angle){by(arithmetic)}",
            f"{channel.function}({short(angle)})",
            value,
        ),
    ]
    note = repeats("2π × n^e", channel.frequency) + of_large(angle, arithmetic)
    return Explanation(title, asked, steps, note)


def repeats(formula: str, omega: float) -> str:
    """After how many positions a number comes again, if it does."""
    return f"It repeats every {formula} = {short(math.tau / omega)} positions." if omega else ""


def by(arithmetic: str) -> str:
    """How a value was rounded, where that is not once."""
    return "" if arithmetic == "exact" else f", by {arithmetic} arithmetic"


def of_large(angle: float, arithmetic: str = "exact") -> str:
    """What is to be known of an angle of which ten digits are too few to go on with.

    Example:
        >>> of_large(3.0), of_large(-1e6)
        ('', ' The value is that of the exact angle, of which ten digits are shown.')
        >>> of_large(-1e6, "float32")
        ' Ten digits of the exact angle are shown; float32 arithmetic rounds it before the value.'
    """
    if abs(angle) < LARGE:
        return ""
    if arithmetic == "exact":
        return " The value is that of the exact angle, of which ten digits are shown."
    shown = "Ten digits of the exact angle are shown"
    return f" {shown}; {arithmetic} arithmetic rounds it before the value."


LARGE = 100.0
"""From such an angle on its tenth digit moves the eighth of a sine."""


def show(found: Explanation) -> None:
    """Prints an explanation, without rich, which loads as long as all the rest."""
    rows = [("step", "formula", "numbers put in", "value")]
    rows += [(s.name, s.formula, s.numbers, f"= {short(s.value)}") for s in found.steps]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    print(found.title, found.asked, "", *lines, *filter(None, [found.note]), sep="\n")


NAMES = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}


def exactly(value: float) -> str:
    """A number that was given, with all its digits.

    Example:
        >>> exactly(10000.0), exactly(12345.678901), exactly(500000)
        ('10000', '12345.678901', '500000')
    """
    return str(value).removesuffix(".0")


def short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator.

    Example:
        >>> short(21.544346900318843), short(10.0)
        ('21.5443469', '10')
    """
    return f"{value:.10g}"
