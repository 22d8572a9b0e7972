"""What is read of every model type: part by part, its layers in runs of equal ones."""

import warnings
from itertools import groupby
from typing import Any

from tests.goldens.written import known, write

from posenc.interop.huggingface import LayerSetup, Part, positional_setup


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


def test_every_model_type_is_read_as_it_was():
    differing = {}
    for name, then in known("readings").items():
        now = reading({"model_type": name})
        if then is not None and now != then:
            differing[name] = now, then
    assert not differing


if __name__ == "__main__":
    from posenc.interop.fields import names

    write("readings", {name: reading({"model_type": name}) for name in names()})
