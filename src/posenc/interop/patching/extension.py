"""What a caller wants in place of what a model has: a schedule, an encoding, or a dictionary."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule
from posenc.frequencies.huggingface import COMMON
from posenc.interop import rope_models
from posenc.interop.configurations import Configuration
from posenc.interop.patching.admission import GROWING, Admitted
from posenc.interop.patching.angles import Rotation
from posenc.interop.patching.measuring import bare, facts_of, on_axes_of
from posenc.interop.rope_layers import rope_of
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


def extended(
    found: Admitted, rotary: Extension | None, length: int | None
) -> dict[str, RotaryLayer]:
    """What each type of layers shall have; those that are left out stay.

    Raises:
        TypeError: ``rotary`` is nothing that is known here.
        ValueError: It is for layers that are not there, or does not fit their heads.
    """
    if rotary is None:
        return dict(found.layers)
    if isinstance(rotary, Mapping) and not rotary:
        raise ValueError(
            "rotary is an empty mapping, which would change nothing. Leave it out, or give a rope "
            "dictionary with rope_type in it, or an encoding by type of layers."
        )
    wanted: Mapping[str, Any] = (
        rotary
        if isinstance(rotary, Mapping) and not is_dictionary(rotary)
        else dict.fromkeys(found.layers, rotary)
    )
    if unknown := sorted(wanted.keys() - found.layers.keys()):
        raise ValueError(
            f"rotary is given for layers of type {', '.join(map(str, unknown))}; this model has "
            f"{', '.join(sorted(found.layers))}. Use these names, or give a dictionary with "
            f"rope_type in it."
        )
    return {
        kind: layer if kind not in wanted else _one(found, layer, wanted[kind], length)
        for kind, layer in found.layers.items()
    }


def _one(found: Admitted, own: RotaryLayer, wanted: object, length: int | None) -> RotaryLayer:
    if isinstance(wanted, Mapping):
        return from_dictionary(found.config, own, wanted, length)
    encoding = _fitting(wanted, own.encoding)
    scale = rope_models.softmax_scale(
        found.config, own.rotary.head_dim, bare(encoding).frequencies.softmax_factor
    )
    return RotaryLayer(own.layer_type, own.rope, encoding, scale, own.pairing_is_known)


def from_dictionary(
    config: Configuration, own: RotaryLayer, given: Mapping[str, Any], length: int | None
) -> RotaryLayer:
    """What a rope dictionary means in a model, with what the model has where it says nothing.

    Which keys that are is told at ``kept``.

    Raises:
        ValueError: A key is unknown, a value is missing or does not fit, or it would change the
            temperature of queries, or count from a length that is not the trained one.
    """
    if own.rope.kind == STANDING and rope_type_of(given, config.family).name != STANDING:
        raise ValueError(
            f"rotary is of type {given.get('rope_type') or given.get('type')!r}; in layers of type "
            f"{own.layer_type} this model turns a share of its pairs, and the others stand still, "
            f"which that type cannot say. Give {{'rope_type': 'proportional', 'factor': …}} for "
            f"these, or a schedule."
        )
    _check_temperature(own, given, config.family)
    _check_start(own, given, config.family)
    values = completed(own, given, config.family)
    if given.get(OUTSIDE):  # Phi-3's stands beside the dictionary, and would count before it
        plain = {key: value for key, value in config.values.items() if key != OUTSIDE}
        config = replace(config, values=plain)
    layer = layer_of(config, own.layer_type, rope_of(config, own.layer_type, values), length)
    _fitting(layer.encoding, own.encoding)
    return layer


def completed(own: RotaryLayer, given: Mapping[str, Any], family: str) -> dict[str, Any]:
    """A rope dictionary with what stays where it says nothing; null says nothing."""
    stays = kept(own, given, family)
    said = {key: value for key, value in given.items() if value is not None or key not in stays}
    return {**stays, **said}


def kept(own: RotaryLayer, given: Mapping[str, Any], family: str) -> dict[str, Any]:
    """What stays of a model's own rope dictionary, whatever extends it.

    The base, the share of channels that turn, the sections of axes and their order (``COMMON``);
    the trained length, where both types keep one, so that a model which is extended already is
    not taken to be trained at its extended length; and the temperature of queries, in models whose
    code reads it there. Other keys of the old type (``factor``, ``beta_fast``, ``truncate``,
    ``attention_factor``, …) do not: where the new dictionary leaves them out, they are what its
    type has by default, though it be the old one.
    """
    new, rope = rope_type_of(given, family), own.rope
    names = {*COMMON, *(rope_models.TEMPERATURE if family in rope_models.TEMPERED else ())}
    stays = {key: value for key, value in rope.values.items() if key in names - {*NAMES}}
    if new.keeps_trained_length and rope.rope_type.keeps_trained_length and rope.trained_length:
        stays[OUTSIDE] = rope.trained_length
    return {"rope_theta": rope.base, **stays}


def _check_temperature(own: RotaryLayer, given: Mapping[str, Any], family: str) -> None:
    """Refuse a dictionary whose keys would change the temperature of queries with the rotation.

    Raises:
        ValueError: It has other values of these keys than the model.
    """
    if family not in rope_models.TEMPERED:
        return
    for key in rope_models.TEMPERATURE:
        said, has = given.get(key), own.rope.values.get(key)
        if said is not None and has is not None and said != has:
            raise ValueError(
                f"rotary has {key} = {said!r}; the code of {family} takes the temperature of its "
                f"queries from that key whenever it runs, and the model has {has!r}. Leave it out, "
                f"or give a schedule (posenc.frequencies.YaRN with the trained length that is "
                f"meant), which leaves the temperature as it is."
            )


def _check_start(own: RotaryLayer, given: Mapping[str, Any], family: str) -> None:
    """Refuse a type that stretches from ``max_position_embeddings`` on in a model that is extended.

    Raises:
        ValueError: That is not what the model was trained at.
    """
    new, rope = rope_type_of(given, family), own.rope
    counts = new.name in GROWING and not new.keeps_trained_length
    if counts and rope.trained_length != rope.longest:
        raise ValueError(
            f"rotary is of type {new.name!r}, which stretches from max_position_embeddings, "
            f"{rope.longest}, on; this model is extended already, and its rope dictionary has the "
            f"trained length {rope.trained_length}. Give posenc.frequencies.NTK with the factor "
            f"that is meant."
        )


def _fitting(wanted: object, own: Rotation) -> Rotation:
    """The encoding that is wanted, built for the heads of the model."""
    if isinstance(wanted, Schedule):
        if 2 * len(wanted) != bare(own).rotated_dim:
            raise ValueError(_unfit(wanted, own))
        wanted = bare(own).with_frequencies(wanted)
    if isinstance(wanted, Rotary) and isinstance(own, MultimodalRotary):
        if facts_of(wanted)[:4] != facts_of(own)[:4]:
            raise ValueError(_unfit(wanted, own))
        wanted = on_axes_of(own, wanted)
    if not isinstance(wanted, Rotary | MultimodalRotary):
        raise TypeError(
            f"rotary is a {type(wanted).__name__}; it must be a Rotary, a schedule, a rope "
            f"dictionary with rope_type, or a mapping from layer types to one."
        )
    if facts_of(wanted) != facts_of(own):
        raise ValueError(_unfit(wanted, own))
    return wanted


def _unfit(wanted: object, own: Rotation) -> str:
    rotary = bare(own)
    pairs = "pairs of halves" if rotary.pairing == "half" else "pairs of neighbors"
    return (
        f"rotary is {wanted}; this model turns {rotary.rotated_dim} of {rotary.head_dim} channels "
        f"in {pairs}. Build it with a schedule of width {rotary.rotated_dim} and pairing "
        f"{rotary.pairing!r}."
    )
