"""What ``posenc inspect`` prints: one model, or what differs between two."""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import Any

from rich.console import Console

from posenc.cli.render.inspection_rows import ROWS
from posenc.cli.render.screen import console
from posenc.inspection.rotary import ModelNumbers, RotaryNumbers, differences, grouped

Layer = RotaryNumbers | None

NOTE = (
    "The last three rows tell what implementations lose that compute angles in float32, or hold "
    "frequencies or positions in a narrow dtype: against exact tables, just below the length "
    "looked at."
)

WIDTH = 79
LABELS = 2 + max(len(row.label) for row in ROWS)


def show_one(path: Path, model: ModelNumbers) -> None:
    """Prints what a model does, layers that do the same together."""
    screen = console()
    screen.print(f"{path}: {model.model_type or 'no model type'}, {len(model.layers)} layers")
    for places, layer in grouped(model.layers):
        _heading(screen, places, layer)
        if layer is None:
            screen.print("  no rotary encoding")
            continue
        for row in ROWS:
            if (text := row.text(layer)) is not None:
                _entry(screen, row.label, text)
    if any(layer and layer.precision for layer in model.layers):
        screen.print()
        screen.print(fill(NOTE, WIDTH))


def show_two(paths: Sequence[Path], first: ModelNumbers, second: ModelNumbers) -> None:
    """Prints where two models differ, and only that."""
    screen = console()
    for letter, path, model in zip("AB", paths, (first, second), strict=True):
        kind = model.model_type or "no model type"
        screen.print(f"{letter}  {path}: {kind}, {len(model.layers)} layers")
    pairs = list(zip(first.layers, second.layers, strict=False))
    unequal = [(places, pair) for places, pair in grouped(pairs) if differences(*pair)]
    for places, (one, other) in unequal:
        _heading(
            screen, places, one if one and other and one.layer_type == other.layer_type else None
        )
        _difference(screen, one, other)
    for letter, model in zip("AB", (first, second), strict=True):
        if extra := range(len(pairs), len(model.layers)):
            _heading(screen, extra, None)
            screen.print(f"  only in {letter}")
    if not unequal:
        screen.print()
        screen.print(f"The rotary encoding is the same in {_layers(range(len(pairs)))}.")


def _difference(screen: Console, one: Layer, other: Layer) -> None:
    """The rows in which two layers differ, one below the other."""
    if one is None or other is None:
        for letter, layer in (("A", one), ("B", other)):
            frequencies = ROWS[0].text(layer) if layer else "no rotary encoding"
            screen.print(f"  {letter}  {frequencies}")
        return
    names = set(differences(one, other))
    for row in ROWS:
        if not names & set(row.fields):
            continue
        texts = [row.text(layer) or "–" for layer in (one, other)]
        if texts[0] != texts[1]:
            beside = zip("AB", texts, strict=True)
            _entry(screen, row.label, *(f"{letter}  {text}" for letter, text in beside))


def _entry(screen: Console, label: str, *texts: str) -> None:
    """A label, and beside it what is said, wrapped below itself."""
    margin = " " * (LABELS + 2)
    for index, text in enumerate(texts):
        beside = f"  {label:<{LABELS}}" if index == 0 else margin
        hanging = margin + "   " * (len(texts) > 1)
        screen.print(fill(text, WIDTH, initial_indent=beside, subsequent_indent=hanging))


def _heading(screen: Console, places: Sequence[int], layer: Layer) -> None:
    kind = f" ({layer.layer_type})" if layer and layer.layer_type else ""
    screen.print()
    screen.print(fill(_layers(places) + kind, WIDTH, subsequent_indent="  "), style="bold")


def _layers(places: Sequence[int]) -> str:
    """Numbers of layers, with runs drawn together.

    Example:
        >>> _layers([0, 1, 2, 5, 7, 8])
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


def print_json(paths: Sequence[Path], models: Sequence[ModelNumbers]) -> None:
    """One object a model; pairs that do not turn have no wavelength."""
    told = [
        {
            "file": str(path),
            "model_type": model.model_type,
            "layers": [
                {"layers": places, "rotary": layer and _finite(asdict(layer))}
                for places, layer in grouped(model.layers)
            ],
        }
        for path, model in zip(paths, models, strict=True)
    ]
    json.dump(told[0] if len(told) == 1 else told, sys.stdout, ensure_ascii=False, indent=1)
    sys.stdout.write("\n")


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity; a pair that does not turn has no wavelength."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in values.items()
    }
