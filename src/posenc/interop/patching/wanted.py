"""What a caller wants in place of what a model has: a schedule, an encoding, or a dictionary."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import FromCheckpoint, Schedule
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
from posenc.interop.rope_layers import START, rope_of, rope_type_of
from posenc.interop.rope_models import softmax_scale, temperature_keys
from posenc.interop.rotary_config import RotaryLayer, layer_of

Single = Rotary | MultimodalRotary | Schedule | Mapping[str, Any]
Wanted = Single | Mapping[str, Single]
"""One for all layers, or by layer type. A mapping is Hugging Face's if ``rope_type`` is in it."""

NAMES = {"rope_type", "type"}


def extended(
    found: Admitted, rotary: Wanted | None, length: int | None
) -> Mapping[str, RotaryLayer]:
    """What each type of layers shall have; those that are left out stay."""
    if rotary is None:
        return found.layers
    made = dict(found.layers)
    for kind, wanted in _by_type(found, rotary).items():
        own = made[kind]
        if isinstance(wanted, Mapping):
            made[kind] = _from_dictionary(found, own, wanted, length)
        else:
            encoding = fitting(wanted, own.encoding)
            factor = bare(encoding).frequencies.softmax_factor
            scale = softmax_scale(found.config, own.rotary.head_dim, factor)
            made[kind] = replace(own, encoding=encoding, softmax_scale=scale)
    return made


def stilled(found: Admitted) -> dict[str, RotaryLayer]:
    """Every pair of every layer stands still."""
    made = {}
    for kind, layer in found.layers.items():
        zeros = FromCheckpoint([0.0] * len(layer.rotary.sincos))
        made[kind] = replace(layer, encoding=with_frequencies(layer.encoding, zeros))
    return made


def _by_type(found: Admitted, rotary: Wanted) -> Mapping[str, Any]:
    """What is wanted for each type of layers; types that stay are left out."""
    if not isinstance(rotary, Mapping):
        return dict.fromkeys(found.layers, rotary)
    if NAMES & {*rotary}:  # the class of a configuration hands it to the types that it scales
        facts = found.config.facts.get("by_type", {})
        scaled = [kind for kind in found.layers if facts.get(kind, [True])[-1]]
        return dict.fromkeys(scaled or found.layers, rotary)
    if unknown := rotary.keys() - found.layers.keys():
        raise ValueError(f"rotary is for {sorted(map(str, unknown))}; layers: {[*found.layers]}.")
    return rotary


def _from_dictionary(
    found: Admitted, own: RotaryLayer, given: Mapping[str, Any], length: int | None
) -> RotaryLayer:
    """What a rope dictionary means in a model, which keeps what the dictionary leaves out."""
    config, rope = found.config, own.rope
    new = rope_type_of(given, config.family)
    if rope.kind == "proportional" != new.name:
        raise ValueError(f"A share of the pairs stands still, which {new.name!r} cannot say.")
    for key in temperature_keys(config):
        if given.get(key) is not None and given[key] != rope.values.get(key, given[key]):
            raise ValueError(f"{config.family} reads the temperature of queries from {key}, too.")
    if given.get(START):  # Phi-3's stands beside the dictionary, and would count before it
        plain = {key: value for key, value in config.values.items() if key != START}
        config = replace(config, values=plain)
    values = completed(own, given, config)
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
    stays = {"rope_theta": rope.base}
    stays |= {key: rope.values[key] for key in COMMON - NAMES if key in rope.values}
    if new.keeps_trained_length and rope.rope_type.keeps_trained_length and rope.trained_length:
        stays[START] = rope.trained_length
    said = {key: value for key, value in given.items() if value is not None or key not in stays}
    kept = {key: rope.values[key] for key in temperature_keys(config) if key in rope.values}
    return {**stays, **said, **kept}


def fitting(wanted: object, own: Encoding) -> Encoding:
    """The encoding that is wanted, built for the heads of the model."""
    rotary, made = bare(own), wanted
    if isinstance(wanted, Schedule) and 2 * len(wanted) == rotary.rotated_dim:
        made = with_frequencies(own, wanted)
    elif isinstance(wanted, Rotary) and facts_of(wanted)[:4] == facts_of(own)[:4]:
        made = on_axes_of(own, wanted)
    elif not isinstance(wanted, Schedule | Encoding):
        raise TypeError(f"rotary is a {type(wanted).__name__}, no Rotary, schedule or mapping.")
    if not isinstance(made, Encoding) or facts_of(made) != facts_of(own):
        raise ValueError(
            f"rotary is {wanted}; this model rotates {rotary.rotated_dim} of {rotary.head_dim} "
            f"channels with pairing {rotary.pairing!r}."
        )
    return made
