"""How wide heads are, and how much of one is rotated, as a configuration says it."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from posenc.interop import rope_models
from posenc.interop.configurations import Configuration
from posenc.interop.layer_types import layer_types

SHARE_FIELDS = ("partial_rotary_factor", "rotary_pct", "rope_pct")
"""Fields that say how much of a head is rotated, in the order in which they count."""

WIDEST = 1 << 14
"""Channels of a head: exact frequencies of more would take minutes, and no model has them."""


def width_of_head(config: Configuration, layer_type: str | None = None) -> int:
    """Width of a head as queries have it.

    Raises:
        ValueError: Nothing says, or no head is so wide.
    """
    width = _said_width(config, layer_type)
    if width < 1:
        raise ValueError(
            f"hidden_size is {config.get('hidden_size')!r}, and there are {config.get('heads')!r} "
            f"heads; no channel is left for a head. Correct one of them."
        )
    if width > WIDEST:
        raise ValueError(
            f"The configuration means a head of width {width:,}; the widest that is read here has "
            f"{WIDEST:,} channels. Correct head_dim, hidden_size or the number of heads."
        )
    return width


def _said_width(config: Configuration, layer_type: str | None) -> int:
    if (latent := latent_width(config)) and config.get("qk_nope_head_dim"):
        return latent + config.whole("qk_nope_head_dim")
    field, usual = rope_models.FULL_HEADS.get(config.family, ("global_head_dim", None))
    if layer_type == "full_attention" and (usual or not config.facts) and config.get(field):
        return config.whole(field)
    types = layer_types(config) or [] if layer_type else []
    layers = config.dictionary("per_layer_config")
    if layer_type == "full_attention" and usual and not layers:
        return usual
    for layer, fields in layers.items() if types else ():
        if not (str(layer).isdecimal() and int(layer) < len(types) and isinstance(fields, Mapping)):
            raise ValueError(
                f"per_layer_config is {layers!r}; it must have an object by the number of a layer, "
                f"from 0 to {len(types) - 1}. Correct the file."
            )
        if types[int(layer)] == layer_type and fields.get("head_dim"):
            return Configuration(fields, "").whole("head_dim")
    read_channels = not config.facts or config.family in rope_models.CHANNELS_READ
    names = ("head_dim", "kv_channels") if read_channels else ("head_dim",)
    name = next((name for name in names if config.get(name)), None)
    if name and config.family not in rope_models.RATIO:
        return config.whole(name)
    usual = rope_models.HEADS.get(config.family)
    if usual and "head_dim" in config.values:
        raise ValueError(
            f"head_dim is None (null), which transformers takes for hidden_size over the number of "
            f"heads; where {config.model_type} leaves it out, {usual} is meant. Write the number."
        )
    return usual or config.whole("hidden_size") // config.whole("heads")


def latent_width(config: Configuration) -> int | None:
    """Width of the part of a head that DeepSeek and its kin rotate; None in other models."""
    if config.family in rope_models.LATENT_UNREAD or not config.get("qk_rope_head_dim"):
        return None
    if config.facts and "qk_rope_head_dim" not in config.facts.get("defaults", {}):
        return None
    return config.whole("qk_rope_head_dim")


def rotated_width(config: Configuration, values: Mapping[str, Any], head_dim: int) -> int:
    """How much of a head is rotated; cut off to a whole number, as models do."""
    if latent_width(config):  # a size of its own
        return _whole_latent(config, values, head_dim)
    partial = rope_models.PROPORTIONAL not in (values.get("rope_type"), values.get("type"))
    if partial and config.facts and not config.facts.get("partly"):
        return _whole_head(config, values, head_dim)
    share = values.get("partial_rotary_factor")
    beside = config.number(*rope_models.heeded(config, SHARE_FIELDS))
    if share is None and _reads_rotary_dim(config):
        share = Fraction(config.whole("rotary_dim"), head_dim)
        if beside is not None and int(head_dim * beside) != int(head_dim * share):
            raise ValueError(
                f"rotary_dim is {config.get('rotary_dim')}, and {_said(config, values)} "
                f"{beside:g} of a head of width {head_dim}; they mean the same. Keep one of them."
            )
    if share is None:
        share = share_of(config)
    width = int(head_dim * share)
    if not 0 <= share <= 1 or (partial and not width):
        raise ValueError(
            f"{float(share):g} of a head of width {head_dim} is to be rotated; it must be a share "
            f"above 0, of one channel at least, up to 1. Correct {_said(config, values)}."
        )
    return width


def share_of(config: Configuration) -> float:
    """The share of a head that is rotated where no rope dictionary says.

    Raises:
        ValueError: It is no number, or null where that is not the same as leaving it out.
    """
    beside = config.number(*rope_models.heeded(config, SHARE_FIELDS))
    return _usual_share(config) if beside is None else beside


def _reads_rotary_dim(config: Configuration) -> bool:
    known = config.facts and config.family not in rope_models.DIM_READ
    return config.get("rotary_dim") is not None and not known


def _usual_share(config: Configuration) -> float:
    """The share of a head that is rotated where a file does not say.

    Raises:
        ValueError: It says null, which is not the same.
    """
    usual = rope_models.PARTIAL.get(config.family, 1.0)
    null = [name for name in rope_models.heeded(config, SHARE_FIELDS) if name in config.values]
    if null and usual != 1:
        raise ValueError(
            f"{null[0]} is None (null), which transformers takes for all of a head; where "
            f"{config.model_type} leaves it out, {usual:g} of it is meant. Write the number."
        )
    return usual


def _said(config: Configuration, values: Mapping[str, Any]) -> str:
    """The field that says how much of a head is rotated."""
    if SHARE_FIELDS[0] in values:
        return SHARE_FIELDS[0]
    names = (*rope_models.heeded(config, SHARE_FIELDS), "rotary_dim")
    return config.field(*names) or " or ".join(names)


def _whole_head(config: Configuration, values: Mapping[str, Any], head_dim: int) -> int:
    """The width, of a model whose code looks at no share: but for types that do, and then it fails.

    Raises:
        ValueError: The model cannot run.
    """
    share = values.get(SHARE_FIELDS[0], config.number(SHARE_FIELDS[0]))
    plain = values.get("rope_type", values.get("type", "default")) in ("default", None)
    if share is None or plain or int(head_dim * share) == head_dim:
        return head_dim
    raise ValueError(
        f"partial_rotary_factor is {share!r}; {config.family} rotates whole heads, and fails with "
        f"frequencies for a part of one. Leave it out."
    )


def _whole_latent(config: Configuration, values: Mapping[str, Any], width: int) -> int:
    """The width of what DeepSeek and its kin rotate, which a share of a head may say once more.

    Raises:
        ValueError: It says another, and the model cannot run.
    """
    share = values.get(SHARE_FIELDS[0], config.number(SHARE_FIELDS[0]))
    if share is None or int(width * share) == width or int(width_of_head(config) * share) == width:
        return width
    raise ValueError(
        f"partial_rotary_factor is {share!r}; {config.family} rotates the {width} channels of "
        f"qk_rope_head_dim, and fails with frequencies for a part of them. Leave it out."
    )
