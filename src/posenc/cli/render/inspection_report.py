"""What ``posenc inspect`` prints: one model, or what differs between two."""

import json
import math
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from posenc.cli.render.inspection_rows import PLACES, ROWS, said_of, words_of
from posenc.cli.render.screen import console
from posenc.inspection.model import LayerNumbers, PartNumbers, SetupNumbers, layer_differences
from posenc.inspection.rotary import RotaryNumbers, differences, grouped

NOTE = (
    "The last three rows tell what implementations lose that compute angles in float32, or hold "
    "frequencies or positions in a narrow dtype: against exact tables, just below the length "
    "looked at."
)

CERTAINTY = {
    "verified": "held against the running model",
    "read": "as its code and file say; not held against a running model",
    "assumed": "assumed: this model type, or the code that its file names, is not known",
}

WORDS = "in words only"
UNTOLD = "Some of it is words, which may leave out where the models differ."
"""What is said where words are compared, since no encoding here stands for a layer."""

WIDTH = 79
LABELS = 2 + max(len(row.label) for row in ROWS)


def show_one(path: Path, model: SetupNumbers, confirmed: Sequence[str] = ()) -> None:
    """Prints what a model does, layers that do the same together."""
    screen = console()
    screen.print(f"{path}: {_about(model)}")
    for part in model.parts:
        if len(model.parts) > 1:
            screen.print()
            kind = f" ({part.model_type})" if part.model_type else ""
            screen.print(f"{part.name}{kind}{_count(part)}")
        _show_part(screen, part)
    if any(layer.rotary and layer.rotary.precision for p in model.parts for layer in p.layers):
        screen.print()
        screen.print(fill(NOTE, WIDTH))
    if confirmed:
        screen.print()
        for line in confirmed:
            screen.print(fill(line, WIDTH, subsequent_indent="  ", break_long_words=False))


def _about(model: SetupNumbers) -> str:
    kind = model.model_type or "no model type"
    if len(model.parts) == 1:
        return f"{kind}{_count(model.parts[0])}"
    return f"{kind}, {len(model.parts)} parts"


def _count(part: PartNumbers) -> str:
    """How many layers a part has, where any were read."""
    count = len(part.layers)
    return f", {count} layer{'s' * (count > 1)}" if count else ""


def _show_part(screen: Console, part: PartNumbers) -> None:
    for places, layer in grouped(part.layers):
        _heading(screen, places, layer.layer_type)
        if not layer.is_read:
            screen.print(f"  {WORDS}")
            continue
        if not any(getattr(layer, place) for place in PLACES):
            screen.print("  no encoding of positions")
        for label, text in (*_rotary_rows(layer), *said_of(layer), *words_of(layer)):
            _entry(screen, label, text)
        _entry(screen, "expression", str(layer.expression))
    _entry(screen, "how sure", CERTAINTY[part.certainty])
    for note in part.notes:
        _entry(screen, "besides", note)


def _rotary_rows(layer: LayerNumbers) -> list[tuple[str, str]]:
    if layer.rotary is None:
        return []
    told = [(row.label, row.text(layer.rotary)) for row in ROWS]
    return [(label, text) for label, text in told if text is not None]


def show_two(paths: Sequence[Path], first: SetupNumbers, second: SetupNumbers) -> None:
    """Prints where two models differ, and only that."""
    screen = console()
    for letter, path, model in zip("AB", paths, (first, second), strict=True):
        screen.print(f"{letter}  {path}: {_about(model)}")
    named = [{part.name: part for part in model.parts} for model in (first, second)]
    same = True
    for name in dict.fromkeys([*named[0], *named[1]]):
        pair = [parts.get(name) for parts in named]
        if pair[0] is None or pair[1] is None:
            same = False
            screen.print()
            screen.print(f"{name}: only in {'B' if pair[0] is None else 'A'}", style="bold")
            continue
        several = len(named[0]) > 1 or len(named[1]) > 1
        same &= _compare(screen, pair[0], pair[1], f"{name}, " if several else "")
    if same:
        screen.print()
        screen.print(fill(_agreement(first), WIDTH))


def _agreement(model: SetupNumbers) -> str:
    """What is said of a model and of another that does not differ from it."""
    first, *others = model.parts
    where = " in all parts and layers" if others else ""
    if first.layers and not others:
        where = f" in {layers(range(len(first.layers)))}"
    # Of a part without layers nothing was read, and words are all there is.
    if all(part.layers and all(layer.is_read for layer in part.layers) for part in model.parts):
        return f"What is done with positions is the same{where}."
    return f"What is told of positions is the same{where}. {UNTOLD}"


def _compare(screen: Console, first: PartNumbers, second: PartNumbers, before: str) -> bool:
    """Prints where one part differs; whether it does not."""
    pairs = list(zip(first.layers, second.layers, strict=False))
    unequal = [(places, pair) for places, pair in grouped(pairs) if layer_differences(*pair)]
    for places, (one, other) in unequal:
        kind = one.layer_type if one.layer_type == other.layer_type else None
        _heading(screen, places, kind, before)
        _difference(screen, one, other)
    for letter, part in zip("AB", (first, second), strict=True):
        if extra := range(len(pairs), len(part.layers)):
            _heading(screen, extra, None, before)
            screen.print(f"  only in {letter}")
    notes = [part.notes for part in (first, second)]
    if notes[0] != notes[1]:
        screen.print()
        _beside(screen, "besides", ["; ".join(each) or "–" for each in notes])
    return not unequal and notes[0] == notes[1] and len(first.layers) == len(second.layers)


def _difference(screen: Console, one: LayerNumbers, other: LayerNumbers) -> None:
    """The rows in which two layers differ, one below the other.

    The expressions tell what has no row of its own, as where YaRN's ramp begins.
    """
    if one.layer_type != other.layer_type:
        _beside(screen, "type", [one.layer_type or "none given", other.layer_type or "none given"])
    both = bool(one.rotary and other.rotary)
    if one.rotary and other.rotary:
        _rotary_difference(screen, one.rotary, other.rotary)
    elif one.rotary or other.rotary:
        for letter, layer in (("A", one), ("B", other)):
            bare = "no rotary encoding" if layer.is_read else WORDS
            said = ROWS[0].text(layer.rotary) if layer.rotary else bare
            screen.print(f"  {letter}  {said}")
    shown = [
        dict((*said_of(layer, rows_are_shown=both), *words_of(layer))) for layer in (one, other)
    ]
    for label in dict.fromkeys([*shown[0], *shown[1]]):
        texts = [rows.get(label, "–") for rows in shown]
        if texts[0] != texts[1]:
            _beside(screen, label, texts)
    if one.expression != other.expression:
        _beside(screen, "expression", [one.expression or WORDS, other.expression or WORDS])


def _rotary_difference(screen: Console, one: RotaryNumbers, other: RotaryNumbers) -> None:
    names = set(differences(one, other))
    for row in ROWS:
        if not names & set(row.fields):
            continue
        texts = [row.text(layer) or "–" for layer in (one, other)]
        if texts[0] != texts[1]:
            _beside(screen, row.label, texts)


def _beside(screen: Console, label: str, texts: Sequence[str]) -> None:
    beside = zip("AB", texts, strict=True)
    _entry(screen, label, *(f"{letter}  {text}" for letter, text in beside))


def _entry(screen: Console, label: str, *texts: str) -> None:
    """A label, and beside it what is said, wrapped below itself."""
    margin = " " * (LABELS + 2)
    for index, text in enumerate(texts):
        beside = f"  {label:<{LABELS}}" if index == 0 else margin
        hanging = margin + "   " * (len(texts) > 1)
        screen.print("\n".join(_lines(text, beside, hanging)))


def _lines(text: str, beside: str, hanging: str) -> Iterator[str]:
    """Broken between words, and longer ones behind a parenthesis: never within a number or name."""
    line, begun = beside, False
    for piece in _pieces(text, WIDTH - len(hanging)):
        if begun and len((line + piece).rstrip()) > WIDTH:
            yield line.rstrip()
            line = hanging
        line, begun = line + piece, True
    yield line.rstrip()


def _pieces(text: str, room: int) -> Iterator[str]:
    for word in re.split(r"(?<=\s)", text):
        yield from re.split(r"(?<=\()", word) if len(word.rstrip()) > room else (word,)


def _heading(
    screen: Console, places: Sequence[int], layer_type: str | None, before: str = ""
) -> None:
    kind = f" ({layer_type})" if layer_type else ""
    screen.print()
    text = before + layers(places) + kind
    screen.print(fill(text, WIDTH, subsequent_indent="  "), style="bold")


def layers(places: Sequence[int]) -> str:
    """Numbers of layers, with runs drawn together.

    Example:
        >>> layers([0, 1, 2, 5, 7, 8])
        'layers 0-2, 5, 7, 8'
    """
    runs: list[list[int]] = []
    for place in places:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"layer{'s' * (len(places) > 1)} {', '.join(texts)}"


def print_json(paths: Sequence[Path], models: Sequence[SetupNumbers]) -> None:
    """One object a model; pairs that do not turn have no wavelength."""
    told = [
        {
            "file": str(path),
            "model_type": model.model_type,
            "parts": [_part(part) for part in model.parts],
        }
        for path, model in zip(paths, models, strict=True)
    ]
    json.dump(told[0] if len(told) == 1 else told, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


def _part(part: PartNumbers) -> dict[str, Any]:
    return {
        "name": part.name,
        "model_type": part.model_type,
        "certainty": part.certainty,
        "notes": list(part.notes),
        "layers": [_group(places, layer) for places, layer in grouped(part.layers)],
    }


def _group(places: Sequence[int], layer: LayerNumbers) -> dict[str, Any]:
    rotary = None if layer.rotary is None else _finite(asdict(layer.rotary))
    named = {k: v for k, v in asdict(layer).items() if k != "rotary"}
    return {"layers": places, **named, "expression": layer.expression, "rotary": rotary}


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; a pair that does not turn has no wavelength."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in values.items()
    }
