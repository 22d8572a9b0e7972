"""One number of any encoding, from the formula to the value; the facts are its own."""

import math
from typing import Any

import torch

from posenc import ALiBi, Rotary, T5Bias
from posenc.cli.encodings import NOT_TRAINED, learns, name_of, rows_of
from posenc.cli.errors import check_one_of
from posenc.cli.printing import exactly, short
from posenc.encodings.bias import RelativeBias
from posenc.frequencies import Geometric, Schedule
from posenc.numerics.buckets import t5_buckets

Step = tuple[str, str, str, float]
"""What is worked out, in symbols and in numbers, and its value."""

Explanation = tuple[str, str, list[Step], str]
"""A title, what is asked, the steps to the value, and a note."""


def value_in(encoding: Any, position: int, dimension: int) -> float:
    """The number in row ``position`` and column ``dimension``."""
    rows = rows_of(encoding)
    name = "head" if rows.counted == "distance" else "dimension"
    check_one_of(name, dimension, len(rows.names))
    return rows.between(position, 1, torch.float64)[0, dimension].item()


def explained(encoding: Any, position: int, dimension: int, value: float) -> Explanation:
    """Where a number comes from."""
    if isinstance(encoding, Rotary):
        return _rotary(encoding, position, dimension, value)
    rows, name = rows_of(encoding), name_of(encoding)
    asked = f"{rows.counted} {position}, {rows.names[dimension]}"
    note = NOT_TRAINED if learns(encoding) else ""
    if isinstance(encoding, ALiBi | T5Bias):
        steps: Any = _alibi if isinstance(encoding, ALiBi) else _t5
        return name, asked, steps(encoding, position, dimension, value), note
    # What is known of any encoding: its own equation, and the number.
    if rows.counted == "distance" and not isinstance(encoding, RelativeBias):
        asked += f", {'the key' if position >= 0 else 'the query'} at 0"
    # The equation may be of a part alone, as that of scales is: the value is the table's.
    numbers = f"{asked} (column {dimension})"
    step = ("value", f"table({rows.counted})[column]", numbers, value)
    paragraphs = [" ".join(each.split()) for each in (encoding.__doc__ or "").split("\n\n")[:2]]
    equation = next((f": {each}" for each in paragraphs if "=" in each or "→" in each), "")
    return name + equation, asked, [step], note


def _rotary(encoding: Rotary, position: int, dimension: int, value: float) -> Explanation:
    pair, kind = dimension // 2, ("cos", "sin")[dimension % 2]
    steps, omega = _frequency(encoding.frequencies, pair)
    factor, angle = encoding.frequencies.attention_factor, position * omega
    exact = encoding.arithmetic == "exact"
    rounded = "" if exact else f", by {encoding.arithmetic} arithmetic"
    steps += [
        ("angle", "p · ω", f"{position} · {short(omega)}", angle),
        ("value", f"{kind}(angle){rounded}", f"{kind}({short(angle)})", value / factor),
    ]
    if factor != 1:
        numbers = f"{short(value / factor)} · {short(factor)}"
        steps.append(("times the attention factor", "value · a", numbers, value))
    is_half = encoding.pairing == "half"
    one = pair if is_half else 2 * pair
    one += encoding.head_dim - encoding.rotated_dim if encoding.rotated == "suffix" else 0
    other = one + (encoding.rotated_dim // 2 if is_half else 1)
    asked = f"column {dimension} is the {kind} of pair {pair}; p = {position}"
    note = f"It turns channels {one} and {other}: x_{one} becomes x_{one} cos - x_{other} sin. "
    if omega:
        note += f"It repeats every 2π / ω = {short(math.tau / omega)} positions."
    return name_of(encoding), asked, steps, note


def _alibi(encoding: ALiBi, position: int, head: int, value: float) -> list[Step]:
    """The slope is the power of two that its rule makes, or as it was given."""
    slope, heads, nth = encoding.slopes[head], encoding.heads, head + 1
    if encoding.first_slopes == "authors" and heads & (heads - 1):
        # The next lower power of two, then every second slope of the power above it.
        lower = 1 << (heads.bit_length() - 1)
        heads, nth = (lower, nth) if nth <= lower else (2 * lower, 2 * (nth - lower) - 1)
    power = f"2^(-{exactly(encoding.alibi_bias_max)} · {nth} / {heads})"
    power += "" if heads == encoding.heads else f", as of {heads} heads"
    if not isinstance(encoding.first_slopes, str):
        power = f"slopes[{head}], as given"
    step = ("value", "-m · |distance|", f"{short(-slope)} · |{position}|", value)
    if encoding.is_causal and position < 0:
        step = ("value", "0 for keys after their query", "masked anyway", value)
    return [("slope", "m of the head", power, slope), step]


def _t5(encoding: T5Bias, position: int, head: int, value: float) -> list[Step]:
    given = (encoding.buckets, encoding.max_distance, encoding.bidirectional)
    bucket = int(t5_buckets(torch.tensor(position), *given))
    return [
        ("bucket", f"of {encoding.buckets}", f"distance {position}", bucket),
        ("value", "W[bucket, head]", f"W[{bucket}, {head}]", value),
    ]


def _frequency(schedule: Schedule, pair: int) -> tuple[list[Step], float]:
    """From the innermost schedule outwards: ω of a pair, and what each schedule makes of it."""
    nested = [schedule]
    while isinstance(inner := getattr(nested[0], "of", None), Schedule):
        nested.insert(0, inner)
    steps: list[Step] = []
    before = 0.0
    for each in nested:
        omega, name = math.tau / each.wavelengths()[pair], type(each).__name__
        if isinstance(each, Geometric):
            power = f"{exactly(float(each.base))}^(-{2 * pair}/{each.dim})"
            steps.append(("frequency", "ω = b^(-2i/d)", power, omega))
        elif before and omega:  # a pair that stands still is stretched by no number
            numbers = f"{short(before)} / {short(before / omega)}"
            steps.append((name, f"ω / {name}'s stretch", numbers, omega))
        else:
            steps.append(("frequency", f"ω of {name}", f"pair {pair}", omega))
        before = omega
    return steps, before
