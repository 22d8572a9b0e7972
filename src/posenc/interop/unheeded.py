"""Fields that speak of a rotation, and that nothing reads."""

from warnings import warn

from posenc.interop.fields import Configuration
from posenc.interop.rope_layers import (
    BASE_FIELDS,
    SHARE_FIELDS,
    SIGNS,
    heeded,
    rotates,
    strange,
    width_of_head,
)

READ = (*SIGNS, "rope_interleave", "use_mem_rope")
"""Fields of rotations that count whatever the model."""

SWITCHED = ("use_dynamic_ntk", "use_logn_attn")
"""Switches of the first Qwen's code, for sequences beyond its length, which is ``seq_length``."""


def unheeded(config: Configuration) -> list[str]:
    """Fields of a rotation that stand in a file, and that the class of the model does not read.

    Of a model that is not known here: those that are not read.
    """
    given = {name: value for name, value in config.values.items() if value not in (None, False)}
    if not config.is_known:
        spoken = [n for n in given if n in SWITCHED or "rope" in n or "rotary" in n]
        other = given.get("seq_length", config.get("longest")) != config.get("longest")
        return [*(n for n in spoken if n not in READ), *(["seq_length"] if other else [])]
    switched = [name for name in SWITCHED if name in given and name not in config.own]
    if not rotates(config):
        return [*(name for name in strange(config) if name in given), *switched]
    share = heeded(config, "share") if config.facts.get("partly") else ()
    read, base = {*heeded(config, "base"), *share, *config.own}, heeded(config, "base")
    rope = config.dictionary("rope_parameters")
    usual = config.get(*base) or rope.get("rope_theta", config.facts.get("theta"))
    means = {**dict.fromkeys(BASE_FIELDS, usual), **dict.fromkeys(SHARE_FIELDS, 1)}
    if not config.facts.get("rotary_dim") and not share:
        means["rotary_dim"] = width_of_head(config)
    stray = [n for n, value in means.items() if n in given and n not in read and given[n] != value]
    return [*stray, *switched]


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
