"""What ``posenc walk`` prints: every stage with its words and its numbers."""

from dataclasses import dataclass
from typing import Any

from posenc import Positional
from posenc.cli.encodings import name_of, note_of
from posenc.cli.render import formats
from posenc.cli.render.screen import Screen, console, number, shortened
from posenc.cli.render.walk_stages import ROUNDING, Stage
from posenc.encodings.positional import PLACES
from posenc.inspection.order import OrderEffect

WARNING = "Embeddings and weights are seeded random numbers: mechanism only."
ORDERS = ("lion kills tiger", "tiger kills lion")
SWAPPED = (2, 1, 0)
WIDE = 160
"""A line is no longer than this, however wide the screen is."""


@dataclass(frozen=True)
class Walked:
    """A walk and its numbers."""

    tokens: list[str]
    ids: list[int]
    dropped: int  # words more that were given
    stages: list[Stage]
    effects: dict[str, OrderEffect]  # of order, without and with the encoding
    positional: Positional


def show(found: Walked, *, whole: bool) -> None:
    """Prints the stages; where they are all of them, the words and what order does, too."""
    screen, count = console(), len(found.tokens)
    for note in filter(None, (WARNING, note_of(found.positional))):
        screen.print(note, style="italic")
    if found.dropped:
        screen.print(f"Only the first {count} tokens are shown; {found.dropped} more were given.")
    if whole:
        for number, (name, words) in enumerate((("tokens", found.tokens), ("ids", found.ids)), 1):
            screen.print(f"\n{number}. {name}  [{count}]", style="bold")
            screen.print("  " + "  ".join(map(str, words)))
    for stage in found.stages:
        screen.print(f"\n{stage.number}. {stage.name}  {list(stage.values.shape)}", style="bold")
        screen.print(f"   {stage.about}  {stage.equation}")
        _numbers(screen, stage, found.tokens)
    if whole:
        _order(screen, found)


def _numbers(screen: Screen, stage: Stage, tokens: list[str]) -> None:
    values = stage.values[None] if stage.values.ndim == 2 else stage.values
    cells = [[[number(value) for value in row] for row in matrix] for matrix in values.tolist()]
    names = list(stage.columns or map(str, range(values.shape[-1])))
    gap = 2
    cell = gap + max(len(each) for matrix in cells for row in (names, *matrix) for each in row)
    most = max(3, (min(screen.width, WIDE) - max(map(len, tokens))) // cell)
    for head, matrix in enumerate(cells, start=1):
        if len(values) > 1:
            screen.print(f"   head {head}")
        rows = [[token, *shortened(row, most)] for token, row in zip(tokens, matrix, strict=True)]
        screen.grid(["", *shortened(names, most)], rows, left=(0,))


def _order(screen: Screen, found: Walked) -> None:
    words = ORDERS[0].split()
    screen.print(f"\nDoes order matter?  {ORDERS[0]!r} and {ORDERS[1]!r}", style="bold")
    screen.print("   Each row is what one word attends to, in head 1, in both sentences.")
    for name, effect in found.effects.items():
        pairs = zip(words, effect.weights[0].tolist(), effect.reordered[0].tolist(), strict=True)
        rows = [[word, *map(number, (*first, *second))] for word, first, second in pairs]
        screen.print(f"   {name}")
        screen.grid(["", *(f"{w} ({n})" for n in (1, 2) for w in words)], rows, left=(0,))
        apart = "are told apart" if effect.tells_apart(ROUNDING) else "look the same"
        screen.print(
            f"   Attention differs by {effect.attention_difference:.1e} at most, the output of a "
            f"word by {effect.output_difference:.1e}: the two sentences {apart}."
        )


def print_json(command: Any, found: Walked) -> None:
    """The same as one object."""
    encodings = [name_of(each) for place in PLACES for each in getattr(found.positional, place)]
    about = {"note": WARNING, **formats.asked(command), "encoding": encodings}
    said = ("number", "name", "about", "equation")
    told = [
        {name: getattr(stage, name) for name in said}
        | {"shape": list(stage.values.shape), "values": stage.values.tolist()}
        for stage in found.stages
    ]
    order: dict[str, object] = {"sentences": ORDERS}
    for name, effect in found.effects.items():
        order[name] = {
            "attention": effect.weights.tolist(),
            "attention_reordered": effect.reordered.tolist(),
            "attention_difference": effect.attention_difference,
            "output_difference": effect.output_difference,
        }
    formats.print_json(about, tokens=found.tokens, ids=found.ids, stages=told, order=order)
