"""What ``posenc inspect`` prints: one model, or what differs between two."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from rich.padding import Padding
from rich.table import Table

import posenc
from posenc.cli.render.screen import Screen, console
from posenc.inspection.model import PLACES, LayerNumbers, PartNumbers, SetupNumbers
from posenc.inspection.rotary import RotaryNumbers, grouped

NOTE = (
    "float32 angles and casts tell what implementations lose that compute angles in float32, or "
    "hold frequencies or positions in a narrow dtype: against exact tables, just below the length "
    "looked at."
)
CERTAINTY = {
    "verified": "held against the running model",
    "read": "as its code and file say; not held against a running model",
    "assumed": "assumed: this model type, or the code that its file names, is not known",
}
SAME = "What is told of positions is the same."


def words_of(layer: LayerNumbers | None) -> dict[str, str]:
    """What one layer does, by labels; nothing where there is none."""
    if layer is None or not layer.is_read:
        return {"expression": "in words only"} if layer else {}
    told = {} if layer.rotary is None else _rotary(layer.rotary)
    if layer.softmax_scale is not None:
        told["softmax scale"] = f"{layer.softmax_scale:.6g}"
    if layer.window is not None:
        told["window"] = f"the last {layer.window:,} keys"
    if layer.chunk is not None:
        told["chunks"] = f"of {layer.chunk:,} positions, each by itself"
    found = [(place, each) for place in PLACES for each in getattr(layer, place)]
    for place, expression in found:
        name = expression.partition("(")[0]
        if name not in ("Rotary", "MultimodalRotary"):
            about = (getattr(posenc, name).__doc__ or "").strip().split("\n\n")[0]
            told[place.replace("_", ", ")] = " ".join(about.replace("``", "").split())
    if not found:
        told["positions"] = "no encoding of positions"
    return {**told, "expression": str(layer.expression)}


def _rotary(layer: RotaryNumbers) -> dict[str, str]:
    trained, target, lost = layer.trained_length, layer.target_length, layer.precision
    frequencies = f"base {_given(layer.base)}"
    if layer.scaling != "default":
        factor = "" if layer.factor is None else f" × {_given(layer.factor)}"
        lists = {None: "", True: ", long factors", False: ", short factors"}[layer.long_factors]
        frequencies += f", {layer.scaling}{factor}{lists}"
    length = "the file gives none; choose a target with --length"
    if target is not None:
        length = "trained to an unknown length" if trained is None else f"trained to {trained:,}"
        length += "" if target == trained else f", looked at up to {target:,}"
    rotated = "all" if layer.rotated_dim == layer.head_dim else layer.rotated
    which = {"all": "all", "prefix": f"the first {layer.rotated_dim} of",
             "suffix": f"the last {layer.rotated_dim} of"}[rotated]  # fmt: skip
    half = layer.rotated_dim // 2
    pair = {"half": f"i and i + {half}", "interleaved": "2i and 2i + 1"}[layer.pairing]
    doubt = "" if layer.pairing_is_known else "; assumed, since this model type is not known"
    told = {
        "frequencies": frequencies,
        "length": length,
        "rotated": f"{which} {layer.head_dim} channels of a head",
        "pairing": f"{layer.pairing}: channels {pair}{doubt}",
    }
    if layer.sections is not None:
        pairs = ", ".join(map(str, layer.sections))
        told["axes"] = f"{pairs} pairs for time, height and width; {layer.arrangement}"
    told["attention factor"] = f"{layer.attention_factor:.6g}"
    still = f"; {layer.still} pairs do not turn" if layer.still else ""
    ends = (f"{n:,.0f}" if n >= 1000 else f"{n:.4g}" for n in (layer.shortest, layer.longest))
    turning = f"positions in {layer.pairs - layer.still} pairs"
    told["wavelengths"] = f"{' to '.join(ends)} {turning}{still}"
    if layer.unfinished is not None:
        told["turns"] = f"{layer.unfinished or 'no'} pairs complete none in {trained:,}"
        if layer.unfinished and target is not None and target != trained:
            told["turns"] += f"; {layer.finished_later or 'none'} of them do so in {target:,}"
    if lost is not None:
        off = "cos and sin off by up to"
        told["float32 angles"] = f"{off} {lost.float32_error:.2g}"
        told["cast frequencies"] = f"in {lost.dtype}: {off} {lost.frequency_error:.2g}"
        said = f"{lost.first_shared:,} and {lost.first_shared + 1:,} are one"
        if target is not None and lost.first_shared + 1 >= target:
            said = f"all told apart; {said}"
        elif lost.sharing > 1:
            said += f"; so are the last {lost.sharing:,}"
        told["cast positions"] = f"in {lost.dtype}: {said}"
    return told


def _given(number: float) -> str:
    """A number that a configuration gives, with all its digits."""
    return f"{number:,}".removesuffix(".0")


def show_one(path: Path, model: SetupNumbers, confirmed: Sequence[str] = ()) -> None:
    """What a model does, layers that do the same together."""
    screen = _screen()
    screen.print(f"{path}: {_about(model)}")
    for part in model.parts:
        if len(model.parts) > 1:
            kind = f" ({part.model_type})" if part.model_type else ""
            screen.print(f"\n{part.name}{kind}{_count(part)}")
        for places, layer in grouped(part.layers):
            kind = f" ({layer.layer_type})" if layer.layer_type else ""
            screen.print(f"\n{layers(places)}{kind}", style="bold")
            _rows(screen, list(words_of(layer).items()))
        notes = [("besides", note) for note in part.notes]
        _rows(screen, [("how sure", CERTAINTY[part.certainty]), *notes])
    if any(layer.rotary and layer.rotary.precision for p in model.parts for layer in p.layers):
        screen.print(f"\n{NOTE}")
    if confirmed:
        screen.print("", *confirmed, sep="\n")


def show_two(paths: Sequence[Path], *models: SetupNumbers) -> None:
    """Where two models differ, and only that."""
    screen, differ = _screen(), False
    for letter, path, model in zip("AB", paths, models, strict=True):
        screen.print(f"{letter}  {path}: {_about(model)}")
    named = [{part.name: part for part in model.parts} for model in models]
    for name in dict.fromkeys([*named[0], *named[1]]):
        parts = [held.get(name) for held in named]
        before = f"{name}, " if max(map(len, named)) > 1 else ""
        pairs = list(zip_longest(*(part.layers if part else () for part in parts)))
        found = [
            (before + layers(places), [_typed(layer) for layer in pair])
            for places, pair in grouped(pairs)
            if pair[0] != pair[1]
        ]
        notes = [{"besides": "; ".join(part.notes) or "–"} if part else {} for part in parts]
        for title, (one, other) in [*found, (name, notes)]:
            labels = dict.fromkeys([*one, *other])
            rows = [(label, one.get(label, "–"), other.get(label, "–")) for label in labels]
            if rows := [row for row in rows if row[1] != row[2]]:
                differ = True
                screen.print(f"\n{title}", style="bold")
                _rows(screen, rows)
    if not differ:
        screen.print(f"\n{SAME}")


def _typed(layer: LayerNumbers | None) -> dict[str, str]:
    return {"type": layer.layer_type or "none given", **words_of(layer)} if layer else {}


def _screen() -> Screen:
    """Lines are folded in a pipe, too."""
    screen = console()
    screen.width = screen.room
    return screen


def _rows(screen: Screen, rows: Sequence[tuple[str, ...]]) -> None:
    """A label and what is said beside it, of two models one beside the other."""
    width = len(rows[0]) if rows else 2
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=width > 2)
    for header in ("", "A", "B")[:width]:
        table.add_column(header, overflow="fold", min_width=0 if header else 16)
    for row in rows:
        table.add_row(*row)
    screen.print(Padding(table, (0, 0, 0, 2)))


def _about(model: SetupNumbers) -> str:
    kind = model.model_type or "no model type"
    several = f", {len(model.parts)} parts"
    return kind + (_count(model.parts[0]) if len(model.parts) == 1 else several)


def _count(part: PartNumbers) -> str:
    count = len(part.layers)
    return f", {count} layer{'s' * (count > 1)}" if count else ""


def layers(places: Sequence[int]) -> str:
    """Numbers of layers, with runs drawn together.

    Example:
        >>> layers([0, 1, 2, 5, 7, 8])
        'layers 0-2, 5, 7, 8'
    """
    numbered = groupby(enumerate(places), lambda pair: pair[1] - pair[0])
    runs = [[place for _, place in pairs] for _, pairs in numbered]
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"layer{'s' * (len(places) > 1)} {', '.join(texts)}"


def as_dict(path: Path, model: SetupNumbers) -> dict[str, Any]:
    """What JSON says of a model, layers that do the same together."""
    parts = [
        {
            **vars(part),
            "layers": [
                {"layers": places, **asdict(layer), "expression": layer.expression}
                for places, layer in grouped(part.layers)
            ],
        }
        for part in model.parts
    ]
    return {"file": str(path), "model_type": model.model_type, "parts": parts}
