"""What a caller wants in place of what a model has: a schedule, an encoding, or a dictionary."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule
from posenc.frequencies.huggingface import COMMON
from posenc.interop.fields import Configuration
from posenc.interop.oracle.encodings import (
    Encoding,
    bare,
    facts_of,
    on_axes_of,
    same_angles,
    with_frequencies,
)
from posenc.interop.patching.admission import GROWING, Admitted
from posenc.interop.rope_layers import rope_of
from posenc.interop.rope_models import softmax_scale, temperature_keys
from posenc.interop.rope_types import rope_type_of
from posenc.interop.rotary_config import RotaryLayer, layer_of

Single = Rotary | MultimodalRotary | Schedule | Mapping[str, Any]
Extension = Single | Mapping[str, Single]
"""One for all layers, or by layer type. A mapping is Hugging Face's if ``rope_type`` is in it."""

OUTSIDE = "original_max_position_embeddings"
"""Phi-3 keeps the trained length beside its rope dictionary, and there it counts first."""

STANDING = "proportional"

NAMES = ("rope_type", "type")


def is_dictionary(rotary: object) -> bool:
    """Whether something is a rope dictionary of Hugging Face, and no mapping by layer type."""
    return isinstance(rotary, Mapping) and any(name in rotary for name in NAMES)


def by_type(found: Admitted, rotary: Extension) -> Mapping[str, Any]:
    """What is wanted for each type of layers; types that stay are left out."""
    if is_dictionary(rotary):
        return dict.fromkeys(_scaled_types(found), rotary)
    if not isinstance(rotary, Mapping):
        return dict.fromkeys(found.layers, rotary)
    if unknown := rotary.keys() - found.layers.keys():
        raise ValueError(f"rotary is for {sorted(map(str, unknown))}; layers: {[*found.layers]}.")
    return rotary


def _scaled_types(found: Admitted) -> list[str]:
    """The types of layers to which the class of a configuration hands one dictionary."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the field is deprecated, and served
        try:
            said = {"rope_type": "linear", "factor": 2.0}
            made = type(found.place.config)(rope_scaling=said).rope_parameters
            scaled = [kind for kind in found.layers if "factor" in (made.get(kind) or {})]
        except Exception:  # whatever a class raises of its own defaults
            scaled = []
    return scaled or list(found.layers)


def extended(found: Admitted, rotary: Extension, length: int | None) -> dict[str, RotaryLayer]:
    """What each type of layers shall have; those that are left out stay."""
    made = dict(found.layers)
    for kind, wanted in by_type(found, rotary).items():
        own = made[kind]
        if isinstance(wanted, Mapping):
            made[kind] = _from_dictionary(found, own, wanted, length)
            continue
        encoding = fitting(wanted, own.encoding)
        factor = bare(encoding).frequencies.softmax_factor
        scale = softmax_scale(found.config, own.rotary.head_dim, factor)
        made[kind] = replace(own, encoding=encoding, softmax_scale=scale)
    return made


def _from_dictionary(
    found: Admitted, own: RotaryLayer, given: Mapping[str, Any], length: int | None
) -> RotaryLayer:
    """What a rope dictionary means in a model, which keeps what the dictionary leaves out."""
    config, rope = found.config, own.rope
    new = rope_type_of(given, config.family)
    if rope.kind == STANDING != new.name:
        raise ValueError(f"A share of the pairs stands still, which {new.name!r} cannot say.")
    for key in temperature_keys(config):
        if given.get(key) is not None and given[key] != rope.values.get(key, given[key]):
            raise ValueError(f"{config.family} reads the temperature of queries from {key}, too.")
    counts = new.name in GROWING and not new.keeps_trained_length
    if counts and rope.trained_length != rope.longest:
        raise ValueError(f"{new.name!r} stretches from {rope.longest}, not {rope.trained_length}.")
    values = completed(own, given, config)
    if given.get(OUTSIDE):  # Phi-3's stands beside the dictionary, and would count before it
        plain = {key: value for key, value in config.values.items() if key != OUTSIDE}
        config = replace(config, values=plain)
    layer = layer_of(config, own.layer_type, rope_of(config, own.layer_type, values), length)
    fitting(layer.encoding, own.encoding)
    silent = "factor" not in given and new.name not in (rope.kind, *GROWING, "default")
    if silent and same_angles(layer.encoding, own.encoding):
        raise ValueError(f"rotary is of type {new.name!r} without a factor and changes nothing.")
    return layer


def completed(own: RotaryLayer, given: Mapping[str, Any], config: Configuration) -> dict[str, Any]:
    """A rope dictionary with what stays of a model's own where it says nothing, or null.

    That is the base, the share of channels that rotate, the sections of axes and their order; the
    trained length, where both types keep one; and the temperature of queries, in models whose code
    reads it there. Other keys of the old type (``factor``, ``beta_fast``, …) do not stay.
    """
    new, rope = rope_type_of(given, config.family), own.rope
    names = {*COMMON, *temperature_keys(config)} - {*NAMES}
    stays = {key: value for key, value in rope.values.items() if key in names}
    if new.keeps_trained_length and rope.rope_type.keeps_trained_length and rope.trained_length:
        stays[OUTSIDE] = rope.trained_length
    stays = {"rope_theta": rope.base, **stays}
    said = {key: value for key, value in given.items() if value is not None or key not in stays}
    return {**stays, **said}


def fitting(wanted: object, own: Encoding) -> Encoding:
    """The encoding that is wanted, built for the heads of the model."""
    rotary, made = bare(own), None
    if isinstance(wanted, Schedule):
        made = with_frequencies(own, wanted) if 2 * len(wanted) == rotary.rotated_dim else None
    elif isinstance(wanted, Rotary):
        made = on_axes_of(own, wanted) if facts_of(wanted)[:4] == facts_of(own)[:4] else None
    elif isinstance(wanted, MultimodalRotary):
        made = wanted
    else:
        raise TypeError(f"rotary is a {type(wanted).__name__}, no Rotary, schedule or mapping.")
    if made is None or facts_of(made) != facts_of(own):
        raise ValueError(
            f"rotary is {wanted}; this model rotates {rotary.rotated_dim} of {rotary.head_dim} "
            f"channels with pairing {rotary.pairing!r}."
        )
    return made
