"""``posenc inspect``: one model in words, what differs between two, and a figure of either."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.padding import Padding
from rich.table import Table

import posenc
from posenc.cli.encodings import learns
from posenc.cli.errors import UserError
from posenc.cli.files import check_figure, config_in, write_figure
from posenc.cli.printing import console, print_json
from posenc.encodings.bias import RelativeBias
from posenc.encodings.expression import encoding_from
from posenc.inspection.model import PLACES, LayerNumbers, SetupNumbers, inspect_model
from posenc.inspection.rotary import grouped
from posenc.inspection.weights import confirmed, header_beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOTE = """
float32 angles and casts tell what implementations lose that compute angles in float32, or hold \
frequencies or positions in a narrow dtype: against exact tables, just below this length."""
CERTAINTY = {
    "verified": "held against the running model",
    "read": "as its code and file say; not held against a running model",
    "assumed": "assumed: this model type, or the code that its file names, is not known",
}

TOLD = {
    "base": "{base:,.12g}",
    "scaling": "{scaling}",
    "factor": "{factor:,.12g}",
    "longrope": "{lists} factors",
    "trained length": "{trained_length:,}",
    "target length": "{target_length:,}",
    "rotated": "{rotated_dim} of {head_dim} channels of a head ({rotated})",
    "pairing": "{pairing}: channels {channels}",
    "axes": "{sections} pairs for time, height and width; {arrangement}",
    "attention factor": "{attention_factor:.6g}",
    "wavelengths": "{shortest:,.4g} to {longest:,.0f} positions in {pairs} pairs",
    "standing still": "{still} pairs",
    "unfinished turns": "{unfinished} pairs complete none in {trained_length:,} positions",
    "finished later": "{finished_later} of these do so in {target_length:,} positions",
    "float32 angles": "cos and sin off by up to {float32_error:.2g}",
    "cast frequencies": "in {dtype}: cos and sin off by up to {frequency_error:.2g}",
    "cast positions": "in {dtype}: {first_shared:,} and the next are one; {sharing:,} at the end",
    "softmax scale": "{softmax_scale:.6g}",
    "window": "the last {window:,} keys",
    "chunks": "of {chunk:,} positions, each by itself",
}
"""What is told of a layer, by its numbers; a line falls away where one is None or 0."""

FARTHEST = 512
"""Distances of a bias that are drawn, on either side."""


def inspect(asked: Any) -> None:
    """Reads one or two configurations, and says what they do with positions."""
    check_figure(asked.figure)
    paths, models = [path for path in (asked.config, asked.other) if path is not None], []
    for path in map(config_in, paths):
        try:
            dtype = getattr(torch, asked.dtype)
            models.append(inspect_model(path, length=asked.length, dtype=dtype))
        except ValueError as error:
            told = str(error)
            raise UserError(told if str(path) in told else f"{path}: {told}") from None
    if asked.format == "json":
        told = list(map(_as_dict, paths, models))
        print_json(told[0] if len(told) == 1 else told)
    elif len(models) == 1:
        _show_one(paths[0], models[0])
    else:
        _show_two(paths, *models)
    if asked.figure is not None:
        write_figure(_drawn(paths, models), asked.figure, form=asked.format)


def _as_dict(path: Path, model: SetupNumbers) -> dict[str, Any]:
    parts = []
    for part in model.parts:
        told = [
            {"layers": places, **asdict(layer), "expression": layer.expression}
            for places, layer in grouped(part.layers)
        ]
        parts.append({**vars(part), "layers": told})
    return {"file": str(path), "model_type": model.model_type, "parts": parts}


def _show_one(path: Path, model: SetupNumbers) -> None:
    """What a model does, layers that do the same together."""
    screen = console()
    screen.print(_headline(path, model))
    for part in model.parts:
        if len(model.parts) > 1:
            kind = f" ({part.model_type})" if part.model_type else ""
            screen.print(f"\n{part.name}{kind}{_count(part.layers, 'layer')}")
        for places, layer in grouped(part.layers):
            kind = f" ({layer.layer_type})" if layer.layer_type else ""
            _print_rows(f"{_named(places)}{kind}", list(_words_of(layer).items()))
        notes = [("besides", note) for note in part.notes]
        _print_rows("", [("how sure", CERTAINTY[part.certainty]), *notes])
    if any(layer.rotary and layer.rotary.precision for p in model.parts for layer in p.layers):
        screen.print(NOTE, soft_wrap=False)
    if header := header_beside(config_in(path).parent):
        screen.print("", *confirmed(model, header), sep="\n")


def _show_two(paths: Sequence[Path], *models: SetupNumbers) -> None:
    """Where two models differ, and only that."""
    screen, differ = console(), False
    for letter, path, model in zip("AB", paths, models, strict=True):
        screen.print(f"{letter}  {_headline(path, model)}")
    named = [{part.name: part for part in model.parts} for model in models]
    for name in {**named[0], **named[1]}:
        parts = [held.get(name) for held in named]
        before = f"{name}, " if max(map(len, named)) > 1 else ""
        pairs = zip_longest(*(part.layers if part else () for part in parts))
        found = {}
        for places, pair in grouped(list(pairs)):
            words = [_words_of(layer, typed=True) if layer else {} for layer in pair]
            found[before + _named(places)] = words
        found[name] = [{"besides": "; ".join(part.notes) or "–"} if part else {} for part in parts]
        for title, (one, other) in found.items():
            rows = [(label, one.get(label, "–"), other.get(label, "–")) for label in one | other]
            if rows := [row for row in rows if row[1] != row[2]]:
                differ = True
                _print_rows(title, rows)
    if not differ:
        screen.print("\nWhat is told of positions is the same.")


def _print_rows(title: str, rows: Sequence[tuple[str, ...]]) -> None:
    """A label and what is said beside it, of two models one beside the other."""
    width = len(rows[0])
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=width > 2)
    for header in ("", "A", "B")[:width]:
        table.add_column(header, overflow="fold", min_width=0 if header else 16)
    for row in rows:
        table.add_row(*row)
    if title:
        console().print(f"\n{title}", style="bold")
    console().print(Padding(table, (0, 0, 0, 2)), soft_wrap=False)


def _words_of(layer: LayerNumbers, typed: bool = False) -> dict[str, str]:
    """What one layer does, by labels."""
    told = {"type": layer.layer_type or "none given"} if typed else {}
    if not layer.is_read:
        return {**told, "expression": "in words only"}
    values = vars(layer)
    if rotary := layer.rotary:
        pairs = {"half": f"i and i + {rotary.rotated_dim // 2}", "interleaved": "2i and 2i + 1"}
        lists = {None: None, True: "long", False: "short"}[rotary.long_factors]
        lost = vars(rotary.precision) if rotary.precision else {}
        values = {**vars(rotary), **values, **lost}
        values |= {"channels": pairs[rotary.pairing], "lists": lists}
    known = {name: value for name, value in values.items() if value}
    for label, text in TOLD.items():
        with suppress(KeyError):
            told[label] = text.format(**known)
    found = [(place, each) for place in PLACES for each in getattr(layer, place)]
    for place, expression in found:
        name = expression.partition("(")[0]
        if name not in ("Rotary", "MultimodalRotary"):
            about = (getattr(posenc, name).__doc__ or "").strip().split("\n\n")[0]
            told[place.replace("_", ", ")] = " ".join(about.replace("``", "").split())
    if not found:
        told["positions"] = "no encoding of positions"
    return {**told, "expression": str(layer.expression)}


def _headline(path: Path, model: SetupNumbers) -> str:
    parts = model.parts
    count = _count(parts[0].layers, "layer") if len(parts) == 1 else _count(parts, "part")
    return f"{path}: {model.model_type or 'no model type'}{count}"


def _count(many: Sequence[object], name: str) -> str:
    return f", {len(many)} {name}{'s' * (len(many) > 1)}" if many else ""


def _named(places: Sequence[int]) -> str:
    """Numbers of layers, with runs drawn together."""
    numbered = groupby(enumerate(places), lambda pair: pair[1] - pair[0])
    runs = [[place for _, place in pairs] for _, pairs in numbered]
    texts = (f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"layer{'s' * (len(places) > 1)} {', '.join(texts)}"


def _drawn(paths: Sequence[Path], models: Sequence[SetupNumbers]) -> "Axes":
    """Wavelengths of every rotary encoding of one or two models; without any, the first bias."""
    from posenc.plots.wavelengths import wavelengths

    layers: dict[str, LayerNumbers] = {}
    for letter, path, model in zip("AB", paths, models, strict=False):
        file = config_in(path)
        before = f"{letter} {file.parent.name}/{file.name}: " if len(models) > 1 else ""
        for part in model.parts:
            for places, layer in grouped(part.layers):
                layers[f"{before}{part.name}, {layer.layer_type or _named(places)}"] = layer
    rotary = {name: layer.rotary for name, layer in layers.items() if layer.rotary}
    lengths = {(each.trained_length, each.target_length) for each in rotary.values()}
    found = {}
    for name, numbers in rotary.items():
        encoding: Any = encoding_from(layers[name].queries_keys[0])
        trained = numbers.trained_length if len(lengths) > 1 else None
        told = f" (trained to {trained:,})" if trained else ""
        found[name + told] = getattr(encoding, "rotary", encoding).frequencies.wavelengths()
    if not found:
        return _drawn_bias(layers)
    trained, target = lengths.pop() if len(lengths) == 1 else (None, None)
    return wavelengths(found, trained_length=trained, target_length=target)


def _drawn_bias(layers: dict[str, LayerNumbers]) -> "Axes":
    from posenc.plots.bias import bias

    for name, layer in layers.items():
        for expression in layer.scores:
            with torch.random.fork_rng(devices=()), torch.no_grad():
                torch.manual_seed(0)  # so that a figure of what is not trained is the same again
                encoding = encoding_from(expression)
                if isinstance(encoding, RelativeBias):
                    distance = torch.arange(-FARTHEST, FARTHEST + 1)
                    profile = encoding.profile(distance)
                    return bias(profile, distance, random=learns(encoding), title=name)
    raise UserError("there are neither wavelengths nor a bias of distance; leave --figure out")
