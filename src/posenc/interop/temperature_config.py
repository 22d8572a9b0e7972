"""From the configuration of a Hugging Face model to the temperatures of its queries."""

from posenc.encodings.queries_keys.temperature import QueryTemperature
from posenc.encodings.scores.temperature import LogTemperature
from posenc.interop.configurations import Config, read, warn_of_strays
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.rope_layers import width_of_head
from posenc.interop.rotary_config import read_layers_of

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


def temperatures_of(config: Configuration) -> QueryTemperatures:
    """The same, of a configuration that is read already.

    ``temperature`` of the facts has a form, and the fields of its scale and its period.
    """
    types, said = (
        layer_types(config) or [None] * config.whole("layers"),
        config.facts.get("temperature"),
    )
    if said is None or config.get("attn_temperature_tuning") is False:
        return (None,) * len(types)
    rope = config.dictionary("rope_parameters") or config.dictionary("rope_scaling")
    given = [rope.get(name, config.get(name)) for name in said["fields"]]
    pairs = zip(given, said["usual"], strict=True)
    scale, period = (usual if each is None else each for each, usual in pairs)
    if said["form"] == "log" and period is None:
        return (None,) * len(types)
    if None in (scale, period):
        raise ValueError(f"{' or '.join(said['fields'])} is not given.")
    if said["form"] == "log":
        wide = LogTemperature(config.whole("heads"), period, scale)
        narrow = LogTemperature(config.whole("swa_num_attention_heads"), period, scale)
        local = narrow if said["local"] else None
        return tuple(local if kind == "hybrid_sliding" else wide for kind in types)
    made = QueryTemperature(width_of_head(config), scale, period, form=said["form"])
    if said["form"] == "mistral":
        return (made,) * len(types)
    return tuple(None if layer else made for layer in read_layers_of(config))
