"""``posenc explain``: one number of a table; that of a sinusoid needs neither torch nor rich."""

import math
from typing import NamedTuple

from posenc.encodings.tokens.conventions import Channel, Convention
from posenc.frequencies import Powers
from posenc.frequencies.schedule import FINE_TURN_BITS
from posenc.numerics.in_integers import nearest_value


class Step(NamedTuple):
    """One line of an explanation: what is worked out, in symbols and in numbers, and its value."""

    name: str
    formula: str
    numbers: str
    value: float


class Explanation(NamedTuple):
    """All steps to one number, from the first to the value, and the words around them."""

    title: str
    asked: str
    steps: list[Step]
    note: str = ""


class Sinusoid(NamedTuple):
    """What makes the numbers of a sinusoidal encoding: whole numbers and one division for each."""

    convention: Convention
    dim: int
    base: float
    offset: int = 0

    def described(self) -> dict[str, object]:
        """What JSON says of it."""
        sign = "+" if self.offset > 0 else "−"
        counted = f"; p = position {sign} {abs(self.offset)}" if self.offset else ""
        told = {"convention": self.convention.name, "formula": self.convention.formula + counted}
        return {"encoding": "Sinusoidal", **told, "dim": self.dim, "base": self.base}


def explained_sinusoid(
    given: Sinusoid, position: int, dimension: int, value: float | None = None, by: str = "exact"
) -> Explanation:
    """Where the number in row ``position`` and column ``dimension`` comes from."""
    channel = given.convention.channel(dimension, given.dim, given.base)
    first, exponent, base = given.offset + channel.first, channel.exponent, exactly(given.base)
    counted = position + first
    value = _value(channel, given.base, counted) if value is None else value
    kind = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}[channel.function]
    title = f"{given.convention.name}: {given.convention.formula}"
    asked = f"dimension {dimension} is {kind}; p = {position}, d = {given.dim}, n = {base}"
    if channel.function == "zero":
        about = f"dimension {dimension} of an odd width"
        return Explanation(title, asked, [Step("value", about, "filled with zeros", value)])
    symbol = "t" if first else "p"
    count = Step("count", f"t = p + {first}", f"{position} + {first}", counted)
    divisor, angle = 1 / channel.frequency, counted * channel.frequency
    steps = [
        Step("exponent", f"e of dimension {dimension}", str(exponent), float(exponent)),
        Step("divisor", "n^e", f"{base}^({exponent})", divisor),
        *([count] if first else []),
        Step("angle", f"{symbol} / n^e", f"{counted} / {short(divisor)}", angle),
        value_step(channel.function, angle, value, by),
    ]
    return Explanation(title, asked, steps, repeats("2π × n^e", channel.frequency))


def _value(channel: Channel, base: float, counted: int) -> float:
    """One number of the table, correctly rounded to float64."""
    if channel.function == "zero":
        return 0.0
    exponent = channel.exponent
    (turns,) = Powers(base, (exponent.numerator,), exponent.denominator).fine_turns()
    return nearest_value(counted * turns, channel.function == "sin", FINE_TURN_BITS)


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
