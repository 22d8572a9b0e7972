"""What is read of every model type: part by part, its layers in runs of equal ones."""

import json
import warnings
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from posenc.interop.huggingface import LayerSetup, Part, positional_setup

PATH = Path(__file__).with_suffix(".json")


def reading(config: Any) -> Any:
    """Of each part: name, type, trained length and layers; ``None`` of what is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [_part(part) for part in positional_setup(config)]
        except ValueError:
            return None


def _part(part: Part) -> list[Any]:
    layers = [[len(list(same)), *told] for told, same in groupby(part.layers, _layer)]
    return [part.name, part.model_type, part.trained_length, layers]


def _layer(layer: LayerSetup) -> list[Any]:
    held = layer.positional
    said = None
    if held is not None:
        said = [repr(each) for each in (*held.tokens, *held.queries_keys, *held.scores)]
    scale = layer.softmax_scale and float(f"{layer.softmax_scale:.9g}")
    return [layer.layer_type, said, scale, layer.window, layer.chunk]


def write() -> None:
    """Freeze what is read of a file that says no more than its type."""
    from posenc.interop.families import names

    rows = [f'"{name}": {json.dumps(reading({"model_type": name}))}' for name in names()]
    PATH.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def frozen() -> Mapping[str, Any]:
    """What was frozen, by model type."""
    return json.loads(PATH.read_text(encoding="utf-8"))
