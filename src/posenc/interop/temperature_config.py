"""From the configuration of a Hugging Face model to the temperatures of its queries."""

from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.scores.temperature import LogTemperature
from posenc.interop.configurations import Config, read, warn_of_strays
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types, unrotated
from posenc.interop.rope_layers import width_of_head
from posenc.interop.rope_models import TEMPERATURE

QueryTemperatures = tuple[QueryTemperature | LogTemperature | None, ...]


def temperatures_from_config(config: Config) -> QueryTemperatures:
    """The query temperature of each layer, and None for layers that have none.

    Llama 4 (``attn_temperature_tuning``) and Beam have one in their layers without rotary
    positions, Ministral 3 and Mistral 4 (``llama_4_scaling_beta``) in all layers, Inkling
    (``log_scaling_n_floor``) in those that see the whole text, Inkling 2 in all. Layers of other
    models have none. A ``LogTemperature`` is an encoding of scores, since Inkling's changes
    relative logits, too; the others act on queries.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.

    Example:
        >>> config = {"model_type": "llama4_text", "head_dim": 16, "num_hidden_layers": 4}
        >>> temperatures_from_config(config)
        (None, None, None, QueryTemperature(16))
    """
    warn_of_strays(config)
    return temperatures_of(read(config))


def temperatures_of(known: Configuration) -> QueryTemperatures:
    """The same, of a configuration that is read already."""
    types = layer_types(known) or [None] * known.whole("layers")
    reader = READERS.get(known.facts.get("temperature", ""))
    return (None,) * len(types) if reader is None else reader(known, types)


def _llama4(config: Configuration, types: list) -> QueryTemperatures:
    if config.get("attn_temperature_tuning") is False:
        return (None,) * len(types)
    scale, floor = config.get("attn_scale") or 0.1, config.get("floor_scale") or 8192
    made = QueryTemperature(width_of_head(config), scale, floor)
    return tuple(made if none else None for none in unrotated(config, types, len(types)))


def _mistral(config: Configuration, types: list) -> QueryTemperatures:
    rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
    beta, period = map(rope.get, TEMPERATURE)
    if beta is None or period is None:
        raise ValueError(f"{' or '.join(TEMPERATURE)} is not given.")
    return (QueryTemperature(width_of_head(config), beta, period, form="mistral"),) * len(types)


def _beam(config: Configuration, types: list) -> QueryTemperatures:
    rope = config.dictionary("rope_parameters") or {"full_attention": None}
    made = QueryTemperature(width_of_head(config), 0.1, 2048, form="beam")
    return tuple(made if kind in rope and rope[kind] is None else None for kind in types)


def _inkling(config: Configuration, types: list) -> QueryTemperatures:
    first, alpha = config.family == "inkling", config.get("log_scaling_alpha") or 0.1
    floor = config.get("log_scaling_n_floor") or (None if first else 128_000)
    if floor is None:
        return (None,) * len(types)
    wide = LogTemperature(config.whole("heads"), floor, alpha)
    narrow = LogTemperature(config.whole("swa_num_attention_heads"), floor, alpha)
    local = None if first else narrow
    return tuple(local if kind == "hybrid_sliding" else wide for kind in types)


READERS = {"llama4": _llama4, "mistral": _mistral, "beam": _beam, "inkling": _inkling}
"""By what ``families.json`` says of a type."""
