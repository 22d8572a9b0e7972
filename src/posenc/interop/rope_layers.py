"""Which rope dictionary holds for which layers, and how much of a head it rotates."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from posenc.arguments import check_whole
from posenc.frequencies import Schedule
from posenc.frequencies.huggingface import COMMON, Rope, RopeType
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop.fields import Configuration, finite
from posenc.interop.layer_types import FULL, layer_types, of_layer

SHARE, START = "partial_rotary_factor", "original_max_position_embeddings"

FIELDS = {"base": ("rope_theta", "rotary_emb_base"), "share": (SHARE, "rotary_pct", "rope_pct")}
"""Fields of the base, and of how much of a head is rotated; the first is the usual one."""

TEMPERATURE = ("llama_4_scaling_beta", "original_max_position_embeddings")
"""Keys of a rope dictionary from which some models read the temperature of their queries."""

OURS = "posenc_"
"""Before the names under which transformers knows the exact types, once they are registered."""

Dictionary = Mapping[str, Any]


def rope_type_of(values: Mapping[str, Any], family: str = "") -> RopeType:
    """The rope type that a dictionary means, old names included."""
    given = (values.get("rope_type"), values.get("type"), "default")
    name = str(next(each for each in given if each is not None)).removeprefix(OURS)
    types = ROPE_TYPES.values()
    found = next((each for each in types if each.claims(name, values, family)), None)
    found = found or next((each for each in types if name in (each.name, *each.aliases)), None)
    if found is None:
        raise ValueError(f"rope_type is {name!r}; known are {', '.join(ROPE_TYPES)}.")
    if unknown := sorted({*values} - {*COMMON, *found.keys, *TEMPERATURE}):
        named = ", ".join(map(repr, unknown))
        raise ValueError(f"The rope dictionary has the unknown key {named}.")
    return found


def rope_dictionary(schedule: Schedule, head_dim: int) -> dict[str, Any] | None:
    """The ``rope_parameters`` that mean a schedule, or ``None`` where none do.

    It is the inverse of reading them. NTK scaling has no name there, and one list of LongRoPE does
    not tell the other.

    Args:
        schedule: The frequencies.
        head_dim: Width of the head of which they rotate all or a part.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> rope_dictionary(Linear(Geometric(64, 500_000.0), 4.0), 64)
        {'rope_type': 'linear', 'rope_theta': 500000.0, 'factor': 4.0}
    """
    check_whole(head_dim=head_dim)
    for rope_type in ROPE_TYPES.values():
        if (said := rope_type.write(schedule, head_dim)) is not None:
            return {"rope_type": rope_type.name, **said}
    return None


def dictionaries(config: Configuration) -> dict[Any, Dictionary | None]:
    """The rope dictionary of each layer type, or one for all layers, under None.

    A dictionary is None where layers of that type have no rotary encoding.
    """
    given, old = config.dictionary("rope_parameters"), config.dictionary("rope_scaling")
    if "rope_scaling" in config.facts.get("unread", ()):
        old = {}
    fields = _by_fields(config, old)
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
    if config.facts.get("share_inside") and config.get(SHARE) and len(kinds) > 1:
        raise ValueError(f"{SHARE} must stand in each dictionary of rope_parameters.")
    bases = {kind: {"rope_theta": each["rope_theta"]} for kind, each in fields.items()}
    return {**fields, **{k: each and {**bases.get(k, {}), **each} for k, each in nested.items()}}


def _by_fields(config: Configuration, scaling: Dictionary) -> dict[Any, Any]:
    """What models whose layers differ had before there were nested dictionaries.

    ``by_type`` of the facts has fields of the base, the base without one, and whether
    ``rope_scaling`` is meant for layers of that type.
    """
    spec, found = config.facts.get("by_type", {}), {}
    if spec and scaling.get("type") and "rope_type" not in scaling:
        raise ValueError(f"{config.model_type} does not look at type in rope_scaling: rope_type.")
    for kind, (*fields, usual, scaled) in spec.items():
        base = config.number(*fields) or usual
        found[kind] = {"rope_theta": base, **(scaling if scaled else {})}
    return found


def rope_of(config: Configuration, layer_type: str | None, dictionary: Dictionary) -> Rope:
    """A rope dictionary with what the rest of the configuration adds to it."""
    facts, rope_type = config.facts, rope_type_of(dictionary, config.family)
    values = {key: value for key, value in dictionary.items() if value is not None}
    needed = "share_needed" in facts and config.get("rope_parameters")
    if layer_type and needed and SHARE not in values:
        raise ValueError(f"rope_parameters has no {SHARE} for {layer_type!r}.")
    if "truncate" in dictionary:  # null is false; that of a layer type is not looked at
        values["truncate"] = bool(dictionary["truncate"]) or layer_type is not None
    if config.is_known and "by_length" not in facts:
        values = {k: v for k, v in values.items() if k not in ("short_mscale", "long_mscale")}
    if rope_type.name == "proportional":
        values.setdefault(SHARE, share_of(config))
    if layer_type and facts.get("share_inside"):
        values.setdefault(SHARE, 1.0)
    switch, long = facts.get("longest_if", ("", None))
    outside, longest = (config.number(name) for name in (START, "longest"))
    trained = longest = long if config.get(switch) else longest
    if rope_type.keeps_trained_length:  # Phi-3 keeps it outside
        inside = values.get(START)
        trained = (not layer_type and outside) or inside or longest
        if "max_position_embeddings" in facts.get("names", {}) and not (inside or outside):
            raise ValueError(f"rope_parameters has no {START}, and its class takes another field.")
    head_dim = latent_width(config) or width_of_head(config, layer_type)
    width = rotated_width(config, rope_type, values, head_dim)
    base = _base(config, values, layer_type)
    trained, longest = (None if each is None else int(each) for each in (trained, longest))
    return Rope(rope_type, values, head_dim, width, base, trained, longest)


def _base(config: Configuration, values: Dictionary, layer_type: str | None) -> float:
    usual = config.facts.get("theta", 10_000.0)
    if isinstance(usual, Mapping):  # by layer type, where the class has more than one
        usual = usual.get(layer_type, next(iter(usual.values())))
    given = (values.get("rope_theta"), config.number(*heeded(config, "base")), usual)
    return float(finite("rope_theta", next(each for each in given if each is not None)))


def heeded(config: Configuration, role: str) -> Sequence[str]:
    """The fields of the ``"base"`` or the ``"share"`` that a model's class reads."""
    usual = FIELDS[role][:1] if config.is_known else FIELDS[role]
    return config.facts.get("own", {}).get(role, usual)


# Widths -----------------------------------------------------------------------------------------


def width_of_head(config: Configuration, layer_type: str | None = None) -> int:
    """Width of a head as queries have it."""
    if (latent := latent_width(config)) and config.get("qk_nope_head_dim"):
        return latent + config.whole("qk_nope_head_dim")
    usual = config.facts.get("full_head_dim")  # Gemma 4's layers that see the whole text
    if layer_type == FULL and (usual or not config.is_known):
        if config.get("global_head_dim"):
            return config.whole("global_head_dim")
        if usual and not config.get("per_layer_config"):
            return usual
    types = layer_types(config) or [] if layer_type else []
    if layer_type in types:
        config = of_layer(config, types.index(layer_type))
    names = ["head_dim"] if config.is_known else ["head_dim", "kv_channels"]
    names = config.facts.get("head", names)
    if config.field(*names) is not None:
        return config.whole(*names)
    return config.whole("hidden_size") // config.whole("heads")


def latent_width(config: Configuration) -> int | None:
    """Width of the part of a head that DeepSeek and its kin rotate; None in other models."""
    own = config.facts.get("defaults", config.values)
    if not config.get("qk_rope_head_dim") or "qk_rope_head_dim" not in own:
        return None
    return config.whole("qk_rope_head_dim")


def rotated_width(
    config: Configuration, rope_type: RopeType, values: Dictionary, head_dim: int
) -> int:
    """How much of a head is rotated; cut off to a whole number, as models do."""
    share, latent = values.get(SHARE), latent_width(config)
    partial = rope_type.name != "proportional"
    if latent or (partial and config.is_known and not config.facts.get("partly")):
        # Whole heads rotate; frequencies of a share would not fit.
        share = config.number(SHARE) if share is None else share
        scaled = rope_type.name != "default" or latent
        widths = {head_dim, width_of_head(config) if latent else head_dim}
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
