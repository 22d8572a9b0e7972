"""``posenc explain``: one number; without an expression, torch and rich stay out."""

import math
from types import SimpleNamespace
from typing import Any

from posenc.cli.printing import described_sinusoid, exactly, print_csv, print_json, short
from posenc.encodings.tokens.conventions import CONVENTIONS
from posenc.frequencies import Powers
from posenc.frequencies.schedule import FINE_TURN_BITS
from posenc.numerics.in_integers import nearest_value

STEP = ("step", "formula", "numbers", "value")
"""One line: what is worked out, in symbols and in numbers, and its value."""


def explain(asked: Any) -> None:
    position, dimension = asked.position, asked.dimension
    if asked.encoding is None:
        given: Any = SimpleNamespace(dim=asked.dim, base=asked.base, offset=0, arithmetic="exact")
        given.convention = CONVENTIONS[asked.convention]
        about, found = described_sinusoid(given), _sinusoid(given, position, dimension, 0.0)
    else:
        from posenc.cli.encodings import chosen, described
        from posenc.cli.work.explained import explained, value_in

        given = chosen(asked)
        about, value = described(given), value_in(given, position, dimension)
        steps_of = _sinusoid if "convention" in about else explained
        found = steps_of(given, position, dimension, value)
    title, question, steps, note = found
    if asked.format == "json":
        told = [{"name": name, **dict(zip(STEP[1:], rest, strict=True))} for name, *rest in steps]
        about |= {"position": position, "dimension": dimension}
        print_json(about, steps=told, value=steps[-1][-1])
    elif asked.format == "csv":
        print_csv(STEP, steps)
    else:
        rows = [("step", "formula", "numbers put in", "value")]
        rows += [(*words, f"= {short(value)}") for *words, value in steps]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        print(title, question, "", *lines, *filter(None, [note]), sep="\n")


def _sinusoid(given: Any, position: int, dimension: int, value: float) -> tuple[Any, ...]:
    """The steps to a number of a sinusoidal table, which is ``value`` if it is not exact."""
    channel = given.convention.channel(dimension, given.dim, given.base)
    first, exponent, base = given.offset + channel.first, channel.exponent, exactly(given.base)
    counted, function = position + first, channel.function
    kind = {"sin": "a sine", "cos": "a cosine", "zero": "a column of zeros"}[function]
    title = f"{given.convention.name}: {given.convention.formula}"
    asked = f"dimension {dimension} is {kind}; p = {position}, d = {given.dim}, n = {base}"
    if function == "zero":
        about = f"dimension {dimension} of an odd width"
        return title, asked, [("value", about, "filled with zeros", 0.0)], ""
    divisor, angle = 1 / channel.frequency, counted * channel.frequency
    symbol, told = "t" if first else "p", f"{function}(angle)"
    if given.arithmetic == "exact":
        (turns,) = Powers(given.base, (exponent.numerator,), exponent.denominator).fine_turns()
        value = nearest_value(counted * turns, function == "sin", FINE_TURN_BITS)
    else:
        told += f", by {given.arithmetic} arithmetic"
    steps = [
        ("exponent", f"e of dimension {dimension}", str(exponent), float(exponent)),
        ("divisor", "n^e", f"{base}^({exponent})", divisor),
        ("count", f"t = p + {first}", f"{position} + {first}", counted),
        ("angle", f"{symbol} / n^e", f"{counted} / {short(divisor)}", angle),
        ("value", told, f"{function}({short(angle)})", value),
    ]
    note = f"It repeats every 2π × n^e = {short(math.tau / channel.frequency)} positions."
    return title, asked, steps if first else [*steps[:2], *steps[3:]], note
