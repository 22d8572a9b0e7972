"""Whether the code of a model turns queries and keys, and how; which fields it does not read."""

from dataclasses import replace
from warnings import warn

from posenc.interop.configurations import NESTS
from posenc.interop.fields import Configuration, has_own_class
from posenc.interop.rope_layers import FIELDS, heeded, width_of_head
from posenc.numerics.pairing import Pairing

SIGNS = (
    "rope_theta", "rope_scaling", "rope_parameters", "rotary_pct", "rope_pct", "rotary_emb_base",
    "rotary_dim", "partial_rotary_factor", "global_rope_theta", "rope_local_base_freq",
    "qk_rope_head_dim",
)  # fmt: skip
"""Fields of which a rotary model that is not known has at least one, be it null."""

SWITCHED = ("use_dynamic_ntk", "use_logn_attn")
"""Switches of the first Qwen's code, for sequences beyond its length, which is ``seq_length``."""


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
    signs = any(name in values for name in SIGNS) and not strange(config)
    turns = "pairing" in facts or signs or "rope_parameters" in facts.get("derived", ())
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


def unheeded(config: Configuration) -> list[str]:
    """Fields of a rotation that stand in a file, and that the class of the model does not read.

    Of a model that is not known here: those that are not read.
    """
    given = {name: value for name, value in config.values.items() if value not in (None, False)}
    if not config.is_known:
        spoken = [n for n in given if n in SWITCHED or "rope" in n or "rotary" in n]
        other = given.get("seq_length", config.get("longest")) != config.get("longest")
        read = (*SIGNS, "rope_interleave", "use_mem_rope")
        return [*(n for n in spoken if n not in read), *(["seq_length"] if other else [])]
    means, read = dict.fromkeys(strange(config)), config.own
    if rotates(config):
        base, rope = heeded(config, "base"), config.dictionary("rope_parameters")
        share = heeded(config, "share") if config.facts.get("partly") else ()
        usual = config.get(*base) or rope.get("rope_theta", config.facts.get("theta"))
        means = {**dict.fromkeys(FIELDS["base"], usual), **dict.fromkeys(FIELDS["share"], 1)}
        if not config.facts.get("rotary_dim") and not share:
            means["rotary_dim"] = width_of_head(config)
        read = {*base, *share, *read}
    means |= dict.fromkeys(SWITCHED)
    return [n for n, value in means.items() if n in given and n not in read and given[n] != value]


def check_unheeded(config: Configuration, length: int | None) -> None:
    """Refuse numbers of rotations that an unknown model may read; warn of other fields."""
    if config.is_known or not (found := unheeded(config)):
        return
    kind = config.model_type or "a model without model_type"
    for name in found:
        value = config.values[name]
        if isinstance(value, int | float) and value not in (True, 1) and name != "seq_length":
            raise ValueError(f"{name} is {value!r}; what {kind} rotates by it is not known.")
    trained = config.number("seq_length", "longest") or 0
    if SWITCHED[0] in found and (length or 0) > trained:
        raise ValueError(f"{SWITCHED[0]} changes the frequencies of {length} tokens; not read.")
    warn(f"{', '.join(found)} of {kind}: not read.", stacklevel=3)


def temperature_keys(config: Configuration) -> tuple[str, ...]:
    """From which a model reads its temperature, whatever the type of its rope dictionary."""
    return tuple(config.facts.get("temperature", {}).get("fields", ()))


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
