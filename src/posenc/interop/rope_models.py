"""What the code of a model does with queries and keys: whether it turns them, and how."""

from dataclasses import replace

from posenc.interop.configurations import NESTS
from posenc.interop.fields import Configuration, has_own_class
from posenc.numerics.pairing import Pairing

SIGNS = (
    "rope_theta", "rope_scaling", "rope_parameters", "rotary_pct", "rope_pct", "rotary_emb_base",
    "rotary_dim", "partial_rotary_factor", "global_rope_theta", "rope_local_base_freq",
    "qk_rope_head_dim",
)  # fmt: skip
"""Fields of which a rotary model that is not known has at least one, be it null."""

TEMPERATURE = ("llama_4_scaling_beta", "original_max_position_embeddings")
"""Keys of a rope dictionary from which some models read the temperature of their queries."""


def checked(config: Configuration) -> Configuration:
    """``config`` if it is of a rotary model that can be read."""
    given, config = config, of_its_own_code(config)
    facts, turns = given.facts, rotates(config)
    words, why = facts.get("words", ""), refusal(given)
    if why is None and "rotat" in words and not turns:
        why = words
    elif why is None and "axial" in facts:
        why = "it turns by the coordinates of an image, see positional_setup"
    elif why is None and not turns and "parts" in facts:
        why = f"it is made of parts ({', '.join(facts['parts'])}), pass one of them"
    kind = given.model_type or "a model without model_type"
    if why is not None:
        raise ValueError(f"The rotation of {kind} cannot be read: {why}.")
    if not turns:
        raise ValueError(f"There is no rotary encoding in this configuration of {kind}.")
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
    """Whether a model turns its queries and keys, in some layers at least.

    ``rotates`` of the facts has the fields that a model looks at, and their values if it does.
    """
    facts, values = config.facts, config.values
    signs = {*SIGNS} & {*values} - {*strange(config)}
    turns = "pairing" in facts or bool(signs) or "rope_parameters" in facts.get("derived", ())
    if not config.is_known:
        kind = config.get("position_embedding_type", "position_embeddings_type")
        off = values.get("alibi") is True or values.get("qk_rope_head_dim") == 0
        turns = turns and not off and kind in (None, "rotary", "rope")
    switches = facts.get("rotates", turns)
    if isinstance(switches, bool):
        return switches
    return all((values.get(name) or False) == value for name, value in switches.items())


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
    if "sense" in config.facts or rotates(config) or not has_own_class(config):
        return config
    unknown = replace(config, model_type=f"{config.model_type} of its own code")
    return unknown if strange(config) and rotates(unknown) else config


def temperature_keys(config: Configuration) -> tuple[str, ...]:
    """``TEMPERATURE`` for models whose code reads it, whatever the type of the dictionary."""
    read = config.facts.get("temperature", {}).get("fields", ())
    return TEMPERATURE if TEMPERATURE[0] in read else ()


def pairing_of_code(config: Configuration) -> Pairing:
    """The pairing of a model's own code, whatever was done to its weights."""
    switch = config.get("rope_interleave")  # of DeepSeek-V3 and its kin
    if switch is not None:
        return "interleaved" if switch else "half"
    return config.facts.get("pairing", "half")


def softmax_scale(config: Configuration, head_dim: int, factor: float) -> float:
    """What attention multiplies its scores with.

    ``factor`` is the ``softmax_factor`` of the schedule, of which only some models take notice.
    """
    how = config.facts.get("scale", "" if config.is_known else "query_pre_attn_scalar")
    given = config.number(how)
    if given is not None and how == "attention_multiplier":
        return float(given)
    if given is not None and given <= 0:
        raise ValueError(f"{how} is {given}; a number above 0 is needed.")
    width = {"one": 1, "half": head_dim / 2}.get(how, given or head_dim)
    return width**-0.5 * (factor if how == "latent" else 1.0)
