"""Writing into a configuration what a model now does, and reading back that it says so."""

import copy
from collections.abc import Iterator, Mapping
from tempfile import TemporaryDirectory
from typing import Any

from torch import nn

from posenc.frequencies import Geometric
from posenc.interop.changes import Changes
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.oracle import modules
from posenc.interop.oracle.encodings import bare, same_angles
from posenc.interop.patching.admission import GROWING, Admitted, Unlike, longest_of
from posenc.interop.patching.angles import ALL
from posenc.interop.patching.extension import OUTSIDE, completed, is_dictionary
from posenc.interop.rope_models import checked, temperature_keys
from posenc.interop.rope_types import rope_dictionary
from posenc.interop.rotary_config import RotaryLayer, layers_by_type
from posenc.interop.temperature_config import temperatures_of

Layers = Mapping[str, RotaryLayer]

LONGEST = "max_position_embeddings"


def told(
    model: nn.Module, found: Admitted, layers: Layers, given: Mapping[str, Any], changes: Changes
) -> str | None:
    """Write what a place now has into its configuration; why it cannot say so, or None.

    A rope dictionary is kept only if the configuration of the whole model, saved and loaded, is
    read as the same set-up, and the class of the module, built from it, gives the same angles.
    """
    if found.place.keeps_rows:
        return "the code of this model computes its frequencies without a configuration"
    config, root = found.place.config, getattr(model, "config", None)
    if not hasattr(root, "get_text_config"):  # a module around the model, with settings of its own
        root = config
    why, before = "no rope dictionary says these frequencies", len(changes.before)
    for count, said in enumerate(_sayings(found, layers, given)):
        _write(config, said, reach_of(layers), changes)
        try:
            _check_read_back(root, found, layers)
        except Exception as error:  # what a class raises of values that it does not know
            changes.undo(before)
            named = "" if isinstance(error, Unlike) else f"{type(error).__name__}: "
            why = why if count else named + " ".join(str(error).split())
        else:
            return None
    return why


def _sayings(found: Admitted, layers: Layers, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rope dictionaries that may mean the layers, the plainest first."""
    plain: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    scaled: dict[str, Any] = {}
    for kind, layer in layers.items():
        named, schedule = given.get(kind), bare(layer.encoding).frequencies
        listed, factor = _as_lists(layer), schedule.attention_factor
        said = named if is_dictionary(named) else rope_dictionary(schedule, layer.rope.head_dim)
        lists[kind] = listed and _completed(found, layer, listed)
        # Phi-3.5-MoE reads the factor by two other names
        scaled[kind] = listed and {**lists[kind], "short_mscale": factor, "long_mscale": factor}
        plain[kind] = _completed(found, layer, said) if said else lists[kind]
    for each in (plain, lists, scaled):
        if None not in each.values():
            yield each[ALL] if set(each) == {ALL} else each


def _as_lists(layer: RotaryLayer) -> dict[str, Any] | None:
    """Any frequencies as ``longrope`` has them: what each of the plain ones is divided by.

    Both of its lists are the same, so that no length switches them. None where a pair stands still.
    """
    rotary, rope = bare(layer.encoding), layer.rope
    turns = rotary.frequencies.turns()
    if 0 in turns:
        return None
    plain = Geometric(rotary.rotated_dim, rope.base).turns()
    divisors = [one / other for one, other in zip(plain, turns, strict=True)]
    share = rotary.rotated_dim / rope.head_dim
    return {
        "rope_type": "longrope",
        "rope_theta": rope.base,
        "short_factor": divisors,
        "long_factor": divisors,
        "factor": 1.0,
        "attention_factor": rotary.frequencies.attention_factor,
        OUTSIDE: rope.trained_length or rope.longest,
        **({} if share == 1 else {"partial_rotary_factor": share}),
    }


def _completed(found: Admitted, layer: RotaryLayer, said: Mapping[str, Any]) -> dict[str, Any]:
    """With what stays of the old dictionary, and the width: classes have shares by default."""
    whole = completed(layer, said, found.config)
    whole.pop("type", None)  # the old spelling
    kind = whole.setdefault("rope_type", layer.rope.kind)
    if layer.rope.kind == kind and layer.rope.rope_type.keeps_trained_length:
        whole.setdefault(OUTSIDE, layer.rope.trained_length)
    if found.config.facts.get("partly") and not found.config.get("qk_rope_head_dim"):
        share = bare(layer.encoding).rotated_dim / layer.rope.head_dim
        whole.setdefault("partial_rotary_factor", share)
    return whole


def reach_of(layers: Layers) -> int:
    """The longest sequence for which layers are stretched; 0 if none are."""
    reaches = [0]
    for layer in layers.values():
        schedule: Any = bare(layer.encoding).frequencies
        trained = getattr(schedule, "trained_length", None) or layer.rope.trained_length
        if layer.rope.kind not in GROWING and isinstance(trained, int):
            reaches.append(int(trained * getattr(schedule, "factor", 1)))
    return max(reaches)


def _write(config: Any, said: Mapping[str, Any], reach: int, changes: Changes) -> None:
    """Put a rope dictionary into a configuration, and the length to which it reaches."""
    held = config.rope_parameters if not said.get("rope_type") else {}
    # Nested, it may have types of layers of which there are none; these stay.
    changes.set(config, "rope_parameters", copy.deepcopy({**(held or {}), **said}))
    changes.note(config, OUTSIDE)  # PhiMoE sets it from the dictionary as it is saved
    if OUTSIDE in said and hasattr(config, OUTSIDE):
        setattr(config, OUTSIDE, said[OUTSIDE])
    states = any(OUTSIDE in each for each in (said, *said.values()) if isinstance(each, Mapping))
    if states and reach > (getattr(config, LONGEST, None) or reach):
        # Or generation warns of longer rows. Without a trained length, this field is that.
        changes.set(config, LONGEST, reach)
    if vars(config).get("head_dim", 0) is None:
        # Mixtral leaves it to its code, and transformers computes most rope types from it.
        changes.set(config, "head_dim", config.hidden_size // config.num_attention_heads)


def _check_read_back(root: Any, found: Admitted, layers: Layers) -> None:
    """Raise unless a configuration says the same once it was saved and loaded."""
    path = _path_of(found.place.config, root)
    if path is None:
        raise Unlike("the model keeps a copy of its configuration there, not saved with it")
    with TemporaryDirectory() as folder:
        root.save_pretrained(folder)
        again = type(root).from_pretrained(folder)
    for name in path:
        again = getattr(again, name)
    known = checked(read(again))
    if temperature_keys(known) and repr(temperatures_of(known)) != repr(
        temperatures_of(found.config)
    ):
        raise Unlike("its code reads the temperature of queries from the same key")
    if not _means(known, layers):
        raise Unlike("its configuration, saved and loaded, is read as something else")
    name, module = type(found.place.module).__name__, modules.rebuilt(found.place.module, again)
    if module is None:
        raise Unlike(f"{name} cannot be built from a configuration alone")
    for kind, layer in layers.items():
        positions = modules.positions_for(layer.encoding, longest_of(layer, None))
        given = modules.angles_of(module, positions, None if kind == ALL else kind)
        try:
            modules.compared(given, layer.encoding, positions)
        except ValueError as error:
            raise Unlike(f"built from its configuration, {name} differs: {error}") from None


def is_said(found: Admitted, layers: Layers) -> bool:
    """Whether a configuration means what a place has without saying a length, as it stands."""
    depends = any(layer.rope.kind in GROWING for layer in layers.values())
    return not depends or _means(found.config, layers)


def _means(config: Configuration, layers: Layers) -> bool:
    """Whether layers have what a configuration means at the trained length."""
    means = {kind or ALL: each for kind, each in layers_by_type(config).items()}
    for kind, layer in layers.items():
        other = means.get(kind) or means.get(ALL)
        if other is None or not same_angles(layer.encoding, other.encoding):
            return False
        if abs(layer.softmax_scale - other.softmax_scale) > 1e-9 * abs(layer.softmax_scale):
            return False
    return True


def _path_of(config: Any, root: Any) -> tuple[str, ...] | None:
    """The fields that lead from one configuration to another inside of it."""
    if config is root:
        return ()
    for name, value in getattr(root, "__dict__", {}).items():
        if hasattr(value, "model_type") and (path := _path_of(config, value)) is not None:
            return name, *path
    return None
