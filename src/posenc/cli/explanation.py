"""``posenc explain``: one number of a table; that of a sinusoid needs neither torch nor rich."""

import math
from typing import Any, NamedTuple

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


def described_sinusoid(given: Any) -> dict[str, object]:
    """What JSON says of an encoding, or of what has its attributes."""
    sign = "+" if given.offset > 0 else "−"
    counted = f"; p = position {sign} {abs(given.offset)}" if given.offset else ""
    told = {"convention": given.convention.name, "formula": given.convention.formula + counted}
    return {"encoding": "Sinusoidal", **told, "dim": given.dim, "base": given.base}


def explained_sinusoid(
    given: Any, position: int, dimension: int, value: float = 0.0
) -> Explanation:
    """Where a number comes from; it is ``value`` where arithmetic is not exact."""
    channel = given.convention.channel(dimension, given.dim, given.base)
    first, exponent, base = given.offset + channel.first, channel.exponent, exactly(given.base)
    counted = position + first
    kind = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}[channel.function]
    title = f"{given.convention.name}: {given.convention.formula}"
    asked = f"dimension {dimension} is {kind}; p = {position}, d = {given.dim}, n = {base}"
    if channel.function == "zero":
        about = f"dimension {dimension} of an odd width"
        return Explanation(title, asked, [Step("value", about, "filled with zeros", 0.0)])
    by = getattr(given, "arithmetic", "exact")
    if by == "exact":
        (turns,) = Powers(given.base, (exponent.numerator,), exponent.denominator).fine_turns()
        value = nearest_value(counted * turns, channel.function == "sin", FINE_TURN_BITS)
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
    again = f"It repeats every 2π × n^e = {short(math.tau / channel.frequency)} positions."
    return Explanation(title, asked, steps, again)


def value_step(function: str, angle: float, value: float, by: str) -> Step:
    """The last step: a sine or cosine, and how it was rounded, where that is not once."""
    rounded = "" if by == "exact" else f", by {by} arithmetic"
    return Step("value", f"{function}(angle){rounded}", f"{function}({short(angle)})", value)


def exactly(value: float) -> str:
    """A number that was given, with all its digits: 10000.0 as 10000."""
    return str(value).removesuffix(".0")


def short(value: float) -> str:
    """Ten digits: enough to go on with a pocket calculator."""
    return f"{value:.10g}"
