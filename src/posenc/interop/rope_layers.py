"""Which rope dictionary holds for which layers, and how much of a head it rotates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from posenc.frequencies.huggingface import COMMON, Rope
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.configurations import NESTS, is_made_of_parts
from posenc.interop.fields import Configuration, finite, has_own_class
from posenc.interop.layer_types import FULL, layer_types
from posenc.interop.rope_types import rope_type_of

SHARE_FIELDS = ("partial_rotary_factor", "rotary_pct", "rope_pct")
"""Fields that say how much of a head is rotated."""

BASE_FIELDS = ("rope_theta", "rotary_emb_base")
"""Fields of the base."""

SIGNS = (
    "rope_theta", "rope_scaling", "rope_parameters", "rotary_pct", "rope_pct", "rotary_emb_base",
    "rotary_dim", "partial_rotary_factor", "global_rope_theta", "rope_local_base_freq",
    "qk_rope_head_dim",
)  # fmt: skip
"""Fields of which a rotary model has at least one, be it null."""

OFF = {"alibi": True, "use_mem_rope": False, "qk_rope_head_dim": 0}
"""Fields that say that a model does not rotate, and the value that says so."""

Dictionary = Mapping[str, Any]


def checked(config: Configuration) -> Configuration:
    """``config`` if it is of a rotary model that can be read."""
    kind = config.model_type or "a model without model_type"
    config, given = of_its_own_code(config), config
    why, words = refusal(given), given.facts.get("words", "")
    if why is None and not rotates(config) and "rotat" in words:
        why = words
    if why is not None:
        raise ValueError(f"The rotation of {kind} cannot be read: {why}.")
    if "axial" in given.facts:
        raise ValueError(f"{kind} rotates by the coordinates of an image; see positional_setup.")
    if is_made_of_parts(given):
        parts = ", ".join(given.facts["parts"])
        raise ValueError(f"{kind} is made of parts ({parts}). Pass one of them.")
    if not rotates(config):
        raise ValueError(f"There is no rotary encoding in this configuration of {kind}.")
    if config.missing:
        raise ValueError(
            f"This configuration of {kind} leaves {', '.join(config.missing)} to its class. "
            f"Install transformers, or write it down."
        )
    return config


def refusal(config: Configuration) -> str | None:
    """Why a model would be read wrongly; None where nothing is against it."""
    for field, (value, why) in config.facts.get("refused_by", {}).items():
        if config.get(field) == value:
            return why
    if isinstance(config.values.get("partial_rotary_factors"), list):
        return "partial_rotary_factors is a list"
    return config.facts.get("refused")


def rotates(config: Configuration) -> bool:
    """Whether a model turns its queries and keys, in some layers at least."""
    facts, values = config.facts, config.values
    own = facts.get("defaults", values)
    off = any(name in own and values.get(name) == value for name, value in OFF.items())
    if off or facts.get("rotates") is False or is_made_of_parts(config):
        return False
    kind = config.get("position_embedding_type", "position_embeddings_type")
    if facts.get("rotates"):  # it looks at that field, and others do not
        return kind in ("rotary", "rope")
    if not config.is_known and kind not in (None, "rotary", "rope"):
        return False
    signs = {*SIGNS} & {*values} - {*strange(config)}
    return "pairing" in facts or bool(signs) or "rope_parameters" in facts.get("derived", ())


def strange(config: Configuration) -> list[str]:
    """Fields of a rotation in the file of a model whose class has none of them.

    Beside the parts of a model of several they may be those of its language model.
    """
    parts = {*NESTS} & {*config.facts.get("parts", {})}
    if not config.is_known or parts or config.own & {*SIGNS}:
        return []
    return [name for name in SIGNS if name in config.values]


def of_its_own_code(config: Configuration) -> Configuration:
    """As of a type that is not known, where a file names a class of its own and rotates by fields
    that the class of its ``model_type`` does not look at.
    """
    if rotates(config) or not strange(config) or not has_own_class(config):
        return config
    unknown = replace(config, model_type=f"{config.model_type} of its own code")
    return unknown if rotates(unknown) and "sense" not in config.facts else config


def dictionaries(config: Configuration) -> dict[str | None, Dictionary | None]:
    """The rope dictionary of each layer type, or one for all layers, under None.

    A dictionary is None where layers of that type have no rotary encoding.
    """
    given, old = config.dictionary("rope_parameters"), config.dictionary("rope_scaling")
    if "rope_scaling" in config.facts.get("unread", ()):
        old = {}
    fields = {} if given and config.facts.get("flat_rope") else _by_fields(config, old)
    keys = COMMON.union(*(each.keys for each in ROPE_TYPES.values()))
    nested = {
        key: value
        for key, value in given.items()
        if key not in keys and isinstance(value, Mapping | None)
    }
    if not nested and fields and given:
        raise ValueError(f"{config.model_type} has a rope dictionary for each type of its layers.")
    if not nested:
        return fields or {None: old or given}
    if config.is_known and "by_type" not in config.facts:
        raise ValueError(f"{config.model_type} has one rope dictionary for all its layers.")
    kinds = {rope_type_of(each, config.family).name for each in nested.values() if each}
    if config.facts.get("share_inside") and config.get(SHARE_FIELDS[0]) and len(kinds) > 1:
        raise ValueError(f"{SHARE_FIELDS[0]} must stand in each dictionary of rope_parameters.")
    bases = {kind: {"rope_theta": (each or {})["rope_theta"]} for kind, each in fields.items()}
    return {**fields, **{k: each and {**bases.get(k, {}), **each} for k, each in nested.items()}}


def _by_fields(config: Configuration, scaling: Dictionary) -> dict[Any, Dictionary | None]:
    """What models whose layers differ had before there were nested dictionaries.

    ``by_type`` of the facts has fields of the base, the base without one, and whether
    ``rope_scaling`` is meant for layers of that type.
    """
    spec, found = config.facts.get("by_type", {}), {}
    spoken = "rope_type" in scaling or config.facts.get("flat_rope")
    if spec and scaling.get("type") and not spoken:
        raise ValueError(f"{config.model_type} does not look at type in rope_scaling: rope_type.")
    for kind, (*fields, usual, scaled) in spec.items():
        base = config.number(*fields) if fields else None
        if base is None and fields and fields[0] in config.values and found:  # null: as the first
            usual = next(iter(found.values()))["rope_theta"] if scaled else usual
        found[kind] = {"rope_theta": base or usual, **(scaling if scaled else {})}
    return found


def rope_of(config: Configuration, layer_type: str | None, dictionary: Dictionary) -> Rope:
    """A rope dictionary with what the rest of the configuration adds to it."""
    rope_type = rope_type_of(dictionary, config.family)
    values = {key: value for key, value in dictionary.items() if value is not None}
    needed = "share_needed" in config.facts and config.get("rope_parameters")
    if layer_type and needed and SHARE_FIELDS[0] not in values:
        raise ValueError(f"rope_parameters has no {SHARE_FIELDS[0]} for {layer_type!r}.")
    if "truncate" in dictionary:  # null is false; that of a layer type is not looked at
        values["truncate"] = bool(dictionary["truncate"]) or layer_type is not None
    if config.is_known and "by_length" not in config.facts:
        values = {k: v for k, v in values.items() if k not in ("short_mscale", "long_mscale")}
    if rope_type.name == "proportional":
        values.setdefault(SHARE_FIELDS[0], share_of(config))
    if layer_type and config.facts.get("share_inside"):
        values.setdefault(SHARE_FIELDS[0], 1.0)
    switch, long = config.facts.get("longest_if", ("", None))
    start = "original_max_position_embeddings"
    outside, longest = (_length(config.number(name)) for name in (start, "longest"))
    trained = longest = long if config.get(switch) else longest
    if rope_type.keeps_trained_length:
        inside = values.get(start)
        renamed = "max_position_embeddings" in config.facts.get("names", {})
        if renamed and longest and not (inside or outside):
            raise ValueError(f"rope_parameters has no {start}, and its class takes another field.")
        # Phi-3 keeps it outside.
        trained = _length(inside if layer_type else outside or inside) or longest
    head_dim = latent_width(config) or width_of_head(config, layer_type)
    width = rotated_width(config, values, head_dim)
    base = float(_base(config, values, layer_type))
    return Rope(rope_type, values, head_dim, width, base, trained, longest)


def _length(number: float | None) -> int | None:
    return None if number is None else int(number)


def _base(config: Configuration, values: Dictionary, layer_type: str | None) -> float:
    usual = config.facts.get("theta", 10_000.0)
    if isinstance(usual, Mapping):  # by layer type, where the class has more than one
        usual = usual.get(layer_type, next(iter(usual.values())))
    given = (values.get("rope_theta"), config.number(*heeded(config, "base")), usual)
    base = next(each for each in given if each is not None)
    if finite("rope_theta", base) <= 0:
        raise ValueError(f"rope_theta is {base}; a number above 0 is needed.")
    return base


def heeded(config: Configuration, role: str) -> Sequence[str]:
    """The fields of the ``"base"`` or the ``"share"`` that a model's class reads."""
    if "own" in config.facts:
        return tuple(name for name in (config.facts["own"][role],) if name)
    names = {"base": BASE_FIELDS, "share": SHARE_FIELDS}[role]
    return names[:1] if config.is_known else names


# Widths -----------------------------------------------------------------------------------------


def width_of_head(config: Configuration, layer_type: str | None = None) -> int:
    """Width of a head as queries have it."""
    if (latent := latent_width(config)) and config.get("qk_nope_head_dim"):
        return latent + config.whole("qk_nope_head_dim")
    field, usual = config.facts.get("full_head_dim", ("global_head_dim", None))
    if layer_type == FULL and (usual or not config.is_known):
        if config.get(field):
            return config.whole(field)
        if usual and not config.get("per_layer_config"):
            return usual
    types = layer_types(config) or [] if layer_type else []
    for layer, fields in config.dictionary("per_layer_config").items():
        here = str(layer).isdecimal() and types[int(layer) : int(layer) + 1] == [layer_type]
        if here and isinstance(fields, Mapping) and fields.get("head_dim"):
            return Configuration(fields, "").whole("head_dim")
    names = ["head_dim"] if config.is_known else ["head_dim", "kv_channels"]
    name = next((name for name in config.facts.get("head", names) if config.get(name)), None)
    return config.whole(name) if name else config.whole("hidden_size") // config.whole("heads")


def latent_width(config: Configuration) -> int | None:
    """Width of the part of a head that DeepSeek and its kin rotate; None in other models."""
    own = config.facts.get("defaults", config.values)
    if not config.get("qk_rope_head_dim") or "qk_rope_head_dim" not in own:
        return None
    return config.whole("qk_rope_head_dim")


def rotated_width(config: Configuration, values: Dictionary, head_dim: int) -> int:
    """How much of a head is rotated; cut off to a whole number, as models do."""
    kind = values.get("rope_type", values.get("type"))
    partial = "proportional" not in (values.get("rope_type"), values.get("type"))
    share = values.get(SHARE_FIELDS[0])
    if latent_width(config) or (partial and config.is_known and not config.facts.get("partly")):
        # Whole heads rotate; frequencies of a share would not fit.
        share = config.number(SHARE_FIELDS[0]) if share is None else share
        scaled = kind not in ("default", None) or latent_width(config)
        widths = {head_dim, width_of_head(config) if latent_width(config) else head_dim}
        if share is not None and scaled and head_dim not in {int(x * share) for x in widths}:
            raise ValueError(f"{config.model_type} rotates whole heads; {share!r} of one is asked.")
        return head_dim
    reads_channels = config.facts.get("rotary_dim", not config.is_known)
    if share is None and reads_channels and config.get("rotary_dim") is not None:
        share = Fraction(config.whole("rotary_dim"), head_dim)
    share = share_of(config) if share is None else share
    width = int(head_dim * share)
    if not 0 <= share <= 1 or (partial and not width):
        raise ValueError(f"{float(share):g} of a head of {head_dim} channels cannot be rotated.")
    return width


def share_of(config: Configuration) -> float:
    """The share of a head that is rotated where no rope dictionary says."""
    beside = config.number(*heeded(config, "share"))
    return config.facts.get("share", 1.0) if beside is None else beside
