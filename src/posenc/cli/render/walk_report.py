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

# Digits of a number and the gap beside it.
CELL, GAP = 10, 2


ORDERS = ("lion kills tiger", "tiger kills lion")
SWAPPED = (2, 1, 0)
NEIGHBORS = (1, 0, 2)
"""Another order, in which distances are others too."""


@dataclass(frozen=True)
class Walked:
    """A walk and its numbers.

    Attributes:
        tokens: The words.
        ids: Their numbers in the vocabulary.
        dropped: How many more were given.
        stages: What is shown, in order.
        effects: Whether order matters, without an encoding and with it.
        positional: The encodings.
        causal: Whether tokens see only themselves and those before.
        idle: Whether these sentences come out as they do without the encodings.
        blind: Whether the first two words can be exchanged, too, without a difference.
    """

    tokens: list[str]
    ids: list[int]
    dropped: int
    stages: list[Stage]
    effects: dict[str, OrderEffect]
    positional: Positional
    causal: bool
    idle: bool
    blind: bool


def show(found: Walked, *, whole: bool) -> None:
    """Prints the stages; where they are all of them, the words and what order does, too."""
    screen = console()
    screen.print(WARNING, style="italic")
    if note := note_of(found.positional):
        screen.print(note, style="italic")
    if found.dropped:
        screen.print(
            f"Only the first {len(found.tokens)} tokens are shown; {found.dropped} more were given."
        )
    if whole:
        shape = f"[{len(found.tokens)}]"
        _heading(screen, 1, "tokens", shape, "The sentence is cut into words and marks.")
        screen.print("  " + "  ".join(found.tokens))
        _heading(screen, 2, "ids", shape, "Each word has a number in the vocabulary.")
        screen.print("  " + "  ".join(map(str, found.ids)))
    for stage in found.stages:
        shape = f"[{', '.join(map(str, stage.values.shape))}]"
        _heading(screen, stage.number, stage.name, shape, stage.about, stage.equation)
        _numbers(screen, stage, found.tokens)
    if whole:
        _order(screen, found)


def _heading(
    screen: Screen, count: int, name: str, shape: str, about: str, equation: str = ""
) -> None:
    screen.print()
    screen.print(f"{count}. {name}  {shape}", style="bold")
    screen.print(f"   {about}" + (f"  {equation}" if equation else ""))


def _numbers(screen: Screen, stage: Stage, tokens: list[str]) -> None:
    values = stage.values[None] if stage.values.ndim == 2 else stage.values
    most = max(3, (min(screen.width, 160) - max(map(len, tokens)) - GAP) // CELL)
    for head, matrix in enumerate(values, start=1):
        if len(values) > 1:
            screen.print(f"   head {head}")
        names = stage.columns or tuple(str(column) for column in range(matrix.shape[1]))
        headers = ["", *shortened(names, most)]
        rows = [
            [token, *shortened([number(value) for value in row], most)]
            for token, row in zip(tokens, matrix.tolist(), strict=True)
        ]
        screen.grid(headers, rows, left=(0,))


def _order(screen: Screen, found: Walked) -> None:
    first, second = ORDERS
    words = first.split()
    screen.print()
    screen.print(f"Does order matter?  {first!r} and {second!r}", style="bold")
    screen.print(
        "   The same words in two orders; each row is what one word attends to, in head 1."
    )
    for name, effect in found.effects.items():
        screen.print(f"   {name}")
        rows = [
            [word, *(number(v) for v in row), *(number(v) for v in other)]
            for word, row, other in zip(
                words, effect.weights[0].tolist(), effect.reordered[0].tolist(), strict=True
            )
        ]
        headers = ["", *(f"{w} (1)" for w in words), *(f"{w} (2)" for w in words)]
        screen.grid(headers, rows, left=(0,))
        without = name.startswith("without")
        screen.print(f"   {_verdict(effect, found, without)}")


def _verdict(effect: OrderEffect, found: Walked, without: bool) -> str:
    attention, output = effect.attention_difference, effect.output_difference
    said = f"Attention differs by {attention:.1e} at most, the output of a word by {output:.1e}: "
    if effect.tells_apart(ROUNDING):
        by = " by the causal mask alone" if found.causal and (without or found.idle) else ""
        return f"{said}the two sentences are told apart{by}."
    if without:
        return f"{said}rounding. Both sentences look the same; attention sees a set."
    if found.idle:
        return (
            f"{said}rounding. Both sentences look the same: this encoding changes nothing in them, "
            "and all comes out as without it."
        )
    if found.blind:
        return (
            f"{said}rounding. Both sentences look the same: this encoding changes numbers, and "
            "none of them by the order of the words."
        )
    return (
        f"{said}rounding. Both sentences look the same: reversed, they have the same distances, "
        "and this encoding does not ask which side a key is on."
    )


def print_json(command: Any, found: Walked) -> None:
    """The same as one object."""
    encodings = [name_of(each) for place in PLACES for each in getattr(found.positional, place)]
    asked = formats.asked(command)
    about = {"note": WARNING, **asked, "encoding": encodings}
    about |= {"tokens": found.tokens, "ids": found.ids}
    told = [
        {
            "number": stage.number,
            "name": stage.name,
            "about": stage.about,
            "equation": stage.equation,
            "shape": list(stage.values.shape),
            "values": stage.values.tolist(),
        }
        for stage in found.stages
    ]
    order = {
        name: {
            "attention": effect.weights.tolist(),
            "attention_reordered": effect.reordered.tolist(),
            "attention_difference": effect.attention_difference,
            "output_difference": effect.output_difference,
        }
        for name, effect in found.effects.items()
    }
    formats.print_json(about, stages=told, order={"sentences": ORDERS, **order})
