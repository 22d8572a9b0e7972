"""Fields that speak of a rotation, and that nothing reads."""

from warnings import warn

from posenc.interop import rope_models
from posenc.interop.configurations import Configuration
from posenc.interop.rope_layers import BASE_FIELDS, SIGNS, dictionaries, rotates, strange
from posenc.interop.rope_widths import SHARE_FIELDS, width_of_head

READ = {*SIGNS, "rope_interleave", "use_mem_rope"}
"""Fields of rotations that count whatever the model."""

SWITCHED = ("use_dynamic_ntk", "use_logn_attn")
"""Switches of the first Qwen's code, for frequencies and queries of sequences beyond its length."""

LENGTH = "seq_length"
"""What it calls that length, in files whose ``max_position_embeddings`` may be another."""


def unheeded(config: Configuration) -> list[str]:
    """Fields of a rotation that stand in a file, and that the class of the model does not read.

    Of a model that is not known here: those that are not read.

    Example:
        >>> unheeded(Configuration({"rope_theta": 1e4, "use_dynamic_ntk": True}, "qwen"))
        ['use_dynamic_ntk']
    """
    if not config.facts:
        return [name for name, value in config.values.items() if value and _is_unread(config, name)]
    own = {*config.facts.get("defaults", {}), *config.facts.get("derived", ())}
    switched = [name for name in SWITCHED if config.values.get(name) and name not in own]
    if not rotates(config):
        return [*(name for name in strange(config) if config.get(name) is not None), *switched]
    told = {*own, *SHARE_FIELDS, *BASE_FIELDS, "rotary_dim"}
    others = [
        name
        for name, value in config.values.items()
        if name.startswith("rotary_") and name not in told
        if value is True or value not in (None, False, 1)
    ]
    return [*_of_rotation(config), *switched, *others]


def _is_unread(config: Configuration, name: str) -> bool:
    if name == LENGTH:
        return config.values[name] != config.get("longest")
    spoken = name in SWITCHED or any(word in name for word in ("rope", "rotary"))
    return spoken and name not in READ


def check_unheeded(config: Configuration, length: int | None) -> None:
    """Refuse numbers of a rotation that are not read of a model that is not known; warn of others.

    Raises:
        ValueError: There is such a number, or sequences are beyond a length at which the
            frequencies change in a way that is not read.
    """
    if config.facts or not (found := unheeded(config)):
        return
    for name in found:
        value = config.values[name]
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and value != 1
        if is_number and name != LENGTH:
            raise ValueError(
                f"{name} is {value!r}; what {config.model_type or 'a model without model_type'} "
                f"rotates by it is not read here. Say it in rope_parameters, rope_theta or "
                f"partial_rotary_factor and remove it, or build posenc.Rotary by hand."
            )
    trained = config.number(LENGTH) or config.number("longest") or 0
    if SWITCHED[0] in found and length is not None and length > trained:
        raise ValueError(
            f"{SWITCHED[0]} is true, which changes the frequencies of {length} tokens in a way "
            f"that is not read here. Leave length out for those of the trained length, or build "
            f"posenc.frequencies.NTK by hand."
        )
    warn(
        f"{', '.join(found)} of {config.model_type or 'a model without model_type'} are not read "
        f"here: frequencies are those of the trained length. Build what they mean by hand.",
        stacklevel=3,
    )


def _of_rotation(config: Configuration) -> list[str]:
    """Those of a model that rotates, and whose class is known."""
    told = {name: config.values.get(name) for name in (*SHARE_FIELDS, *BASE_FIELDS)}
    read = {*rope_models.heeded(config, SHARE_FIELDS), *rope_models.heeded(config, BASE_FIELDS)}
    stray = [name for name in told if name not in read and told[name] is not None]
    inside = config.dictionary("rope_parameters").get("rope_theta")
    usual = config.facts.get("theta", rope_models.BASES.get(config.family, 10_000.0))
    base = config.get(*rope_models.heeded(config, BASE_FIELDS)) or inside or usual
    stray = [name for name in stray if name not in BASE_FIELDS or told[name] != base]
    inner = config.get("attn_config")
    if isinstance(inner, dict) and inner.get("rope_theta") is not None:  # DBRX, since version 5
        stray.append("rope_theta in attn_config")
    if config.facts.get("partly"):
        return [*stray, *_share_of_none(config)]
    narrow = config.get("rotary_dim") not in (None, width_of_head(config))
    whole = "partial_rotary_factor" in stray or told["partial_rotary_factor"] in (None, 1, 1.0)
    stray += ["rotary_dim"] if narrow else []
    return stray if whole else [*stray, "partial_rotary_factor"]


def _share_of_none(config: Configuration) -> list[str]:
    """The rotated share beside dictionaries by layer type, where the class gives it to none."""
    beside = config.get(SHARE_FIELDS[0]) is not None
    inside = config.family in rope_models.SHARE_INSIDE and None not in dictionaries(config)
    return [SHARE_FIELDS[0]] if beside and inside else []
