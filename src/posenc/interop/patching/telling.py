"""Writing into a configuration what a model now does, and reading back that it says so."""

import copy
from collections.abc import Iterator, Mapping
from math import isclose
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from posenc.frequencies import Geometric
from posenc.interop.changes import Changes
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.oracle.encodings import same_angles
from posenc.interop.patching.admission import GROWING, Admitted, Unlike, measured
from posenc.interop.patching.modules import ALL, rebuilt
from posenc.interop.patching.wanted import completed
from posenc.interop.rope_layers import START, rope_dictionary
from posenc.interop.rope_models import checked
from posenc.interop.rotary_config import RotaryLayer, layers_by_type

Layers = Mapping[str, RotaryLayer]

LONGEST = "max_position_embeddings"


def told(model: nn.Module, found: Admitted, layers: Layers, changes: Changes) -> str | None:
    """Write what a place now has into its configuration; why it cannot say so, or None.

    A rope dictionary is kept only if the configuration of the whole model, saved and loaded, is
    read as the same set-up, and the class of the module, built from it, gives the same angles.
    """
    depends = any(layer.rope.kind in GROWING for layer in layers.values())
    if layers is found.layers and (not depends or _means(found.config, layers)):
        return None  # it says so as it stands, and no length beside
    if found.place.keeps_rows:
        return "the code of this model computes its frequencies without a configuration"
    config, root = found.place.config, getattr(model, "config", None)
    if not hasattr(root, "get_text_config"):  # a module around the model, with settings of its own
        root = config
    why, before = "", len(changes.before)
    for said in _sayings(found, layers):
        _write(config, said, stretched_length(layers), changes)
        try:
            _check_read_back(root, found, layers)
        except Exception as error:  # what a class raises of values that it does not know
            changes.undo(before)
            named = "" if isinstance(error, Unlike) else f"{type(error).__name__}: "
            why = why or named + " ".join(str(error).split())
        else:
            return None
    return why or "no rope dictionary says these frequencies"


def _sayings(found: Admitted, layers: Layers) -> Iterator[dict[str, dict[str, Any]]]:
    """Rope dictionaries that may mean the layers, by type: the plainest, then lists of divisors."""
    lists: dict[str, Any] = {kind: _as_lists(found.config, layer) for kind, layer in layers.items()}
    plain: dict[str, Any] = {}
    for kind, layer in layers.items():
        own, said = found.layers[kind], layer.rope.values
        if layer is not own and layer.rope is own.rope:  # it was given as a schedule
            said = rope_dictionary(layer.rotary.frequencies, layer.rope.head_dim)
        plain[kind] = lists[kind] if said is None else said
    for each in (plain, lists):
        if None not in each.values():
            yield {kind: _whole(found.config, layers[kind], each[kind]) for kind in layers}


def _as_lists(config: Configuration, layer: RotaryLayer) -> dict[str, Any] | None:
    """Any frequencies as ``longrope`` has them: what each of the plain ones is divided by.

    Both of its lists are the same, so that no length switches them. None where a pair stands still.
    """
    rotary, rope = layer.rotary, layer.rope
    turns, factor = rotary.frequencies.turns(), rotary.frequencies.attention_factor
    if 0 in turns:
        return None
    plain = Geometric(rotary.rotated_dim, rope.base).turns()
    divisors = [one / other for one, other in zip(plain, turns, strict=True)]
    lists = {
        "rope_type": "longrope",
        "short_factor": divisors,
        "long_factor": divisors,
        "factor": 1.0,
        "attention_factor": factor,
        START: rope.trained_length or rope.longest,
    }
    # Phi-3.5-MoE reads the factor by two other names.
    scales = {"short_mscale": factor, "long_mscale": factor}
    return lists | scales if config.facts.get("by_length") else lists


def _whole(config: Configuration, layer: RotaryLayer, said: Mapping[str, Any]) -> dict[str, Any]:
    """With what stays of the old dictionary, and the width: classes have shares by default."""
    whole = completed(layer, said, config)
    whole.pop("type", None)  # the old spelling
    kind = whole.setdefault("rope_type", layer.rope.kind)
    if layer.rope.kind == kind and layer.rope.rope_type.keeps_trained_length:
        whole.setdefault(START, layer.rope.trained_length)
    if config.facts.get("partly") and not config.get("qk_rope_head_dim"):
        share = layer.rotary.rotated_dim / layer.rope.head_dim
        whole.setdefault("partial_rotary_factor", share)
    return whole


def stretched_length(layers: Layers) -> int:
    """The longest sequence for which layers are stretched; 0 if none are."""
    reaches = [0]
    for layer in layers.values():
        schedule: Any = layer.rotary.frequencies
        trained = getattr(schedule, "trained_length", None) or layer.rope.trained_length
        if layer.rope.kind not in GROWING and isinstance(trained, int):
            reaches.append(int(trained * getattr(schedule, "factor", 1)))
    return max(reaches)


def _write(config: Any, said: dict[str, dict[str, Any]], reach: int, changes: Changes) -> None:
    """Put rope dictionaries into a configuration, and the length to which they reach."""
    # Nested, there may be types of which the model has no layers; these stay.
    rope = said.get(ALL) or {**(config.rope_parameters or {}), **said}
    changes.set(config, "rope_parameters", copy.deepcopy(rope))
    changes.note(config, START)  # PhiMoE sets it from the dictionary as it is saved
    if START in rope and hasattr(config, START):
        setattr(config, START, rope[START])
    states = any(START in each for each in said.values())
    if states and reach > (getattr(config, LONGEST, None) or reach):
        # Or generation warns of longer rows. Without a trained length, this field is that.
        changes.set(config, LONGEST, reach)
    if vars(config).get("head_dim", 0) is None:
        # Mixtral leaves it to its code, and transformers computes most rope types from it.
        changes.set(config, "head_dim", config.hidden_size // config.num_attention_heads)


def _check_read_back(root: Any, found: Admitted, layers: Layers) -> None:
    """Raise unless a configuration says the same once it was saved and loaded."""
    with TemporaryDirectory() as folder:
        root.save_pretrained(folder)
        loaded = type(root).from_pretrained(folder)
    both = zip(_parts(root), _parts(loaded), strict=False)
    again = next((new for old, new in both if old is found.place.config), None)
    if again is None:
        raise Unlike("the model keeps a copy of its configuration there, not saved with it")
    if not _means(checked(read(again)), layers):
        raise Unlike("its configuration, saved and loaded, is read as something else")
    module = rebuilt(found.place.module, again)
    if module is None:
        raise Unlike(f"{type(found.place.module).__name__} takes more than a configuration")
    for kind, layer in layers.items():
        measured(found.place, module, kind, [layer], None)


def _parts(config: Any) -> list[Any]:
    """A configuration and all that are inside of it, in an order that saving keeps."""
    inside = [each for _, each in sorted(vars(config).items()) if hasattr(each, "model_type")]
    return [config, *(part for each in inside for part in _parts(each))]


def _means(config: Configuration, layers: Layers) -> bool:
    """Whether layers have what a configuration means at the trained length."""
    means = {kind or ALL: each for kind, each in layers_by_type(config).items()}
    return all(
        (other := means.get(kind) or means.get(ALL)) is not None
        and same_angles(layer.encoding, other.encoding)
        and isclose(layer.softmax_scale, other.softmax_scale)
        for kind, layer in layers.items()
    )
