"""``posenc explain``: one number of a table; that of a sinusoid needs neither torch nor rich."""

import math
from dataclasses import dataclass

from posenc.cli.errors import check_one_of, check_range
from posenc.encodings.tokens.conventions import Channel, Convention
from posenc.frequencies import Powers
from posenc.frequencies.schedule import FINE_TURN_BITS
from posenc.numerics.in_integers import nearest_value


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


@dataclass(frozen=True)
class Sinusoid:
    """What makes the numbers of a sinusoidal encoding: whole numbers and one division for each.

    Example:
        >>> from posenc.encodings.tokens.conventions import CONVENTIONS
        >>> Sinusoid(CONVENTIONS["paper"], 4, 100.0).value(1, 2)  # sin(1 / 10)
        0.09983341664682815
    """

    convention: Convention
    dim: int
    base: float
    offset: int = 0

    def __post_init__(self):
        self.convention.sincos(self.dim, self.base)

    @property
    def first(self) -> int:
        """Where it begins to count."""
        return self.offset + self.convention.first

    def channel(self, dimension: int) -> Channel:
        """What one dimension holds."""
        return self.convention.channel(dimension, self.dim, self.base)

    def value(self, position: int, dimension: int) -> float:
        """One number of the table, correctly rounded to float64."""
        channel = self.channel(dimension)
        if channel.function == "zero":
            return 0.0
        exponent = channel.exponent
        (turns,) = Powers(self.base, (exponent.numerator,), exponent.denominator).fine_turns()
        phase = (position + self.first) * turns
        return nearest_value(phase, channel.function == "sin", FINE_TURN_BITS)

    def described(self) -> dict[str, object]:
        """What JSON says of it."""
        sign = "+" if self.offset > 0 else "−"
        counted = f"; p = position {sign} {abs(self.offset)}" if self.offset else ""
        formula = f"{self.convention.formula}{counted}"
        told = {"convention": self.convention.name, "formula": formula}
        return {"encoding": "Sinusoidal", **told, "dim": self.dim, "base": self.base}


def explained_sinusoid(
    given: Sinusoid, position: int, dimension: int, value: float | None = None, by: str = "exact"
) -> Explanation:
    """Where the number in row ``position`` and column ``dimension`` comes from.

    Example:
        >>> from posenc.encodings.tokens.conventions import CONVENTIONS
        >>> given = Sinusoid(CONVENTIONS["paper"], 4, 100.0)
        >>> [step.numbers for step in explained_sinusoid(given, 3, 2).steps]
        ['1/2', '100^(1/2)', '3 / 10', 'sin(0.3)']
    """
    check_one_of("dimension", dimension, given.dim)
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


def exactly(value: float) -> str:
    """A number that was given, with all its digits: 10000.0 as 10000."""
    return str(value).removesuffix(".0")


def short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator."""
    return f"{value:.10g}"
