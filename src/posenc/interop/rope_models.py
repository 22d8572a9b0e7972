"""What the code of a model does with queries and keys, and no configuration says."""

from posenc.interop.fields import Configuration
from posenc.numerics.pairing import Pairing, checked_pairing

TEMPERATURE = ("llama_4_scaling_beta", "original_max_position_embeddings")
"""Keys of a rope dictionary from which some models read the temperature of their queries."""


def temperature_keys(config: Configuration) -> tuple[str, ...]:
    """These keys in models whose code reads them, whatever the type of the dictionary."""
    return TEMPERATURE if config.facts.get("temperature") == "mistral" else ()


def pairing_of(config: Configuration) -> Pairing:
    """Which channels form a pair: by the code of a model, or as its weights were converted."""
    converted = config.get("posenc_pairing")
    return pairing_of_code(config) if converted is None else checked_pairing(converted)


def pairing_of_code(config: Configuration) -> Pairing:
    """The pairing of a model's own code, whatever was done to its weights."""
    switch = config.get("rope_interleave")  # of DeepSeek-V3 and its kin
    if switch is not None:
        return "interleaved" if switch else "half"
    return config.facts.get("pairing", "half")


def pairing_is_known(config: Configuration) -> bool:
    """Whether the pairing is that of the model's code, and not just the usual one."""
    return config.get("rope_interleave") is not None or "pairing" in config.facts


def softmax_scale(config: Configuration, head_dim: int, factor: float) -> float:
    """What attention multiplies its scores with.

    ``factor`` is the ``softmax_factor`` of the schedule, of which only some models take notice.
    """
    how = config.facts.get("scale", "" if config.is_known else "query_pre_attn_scalar")
    if how == "one":
        return 1.0
    if how == "half":
        return (head_dim / 2) ** -0.5
    given = config.number(how) if how.endswith(("multiplier", "scalar")) else None
    if given is not None and how == "attention_multiplier":
        return float(given)
    if given is not None and given <= 0:
        raise ValueError(f"{how} is {given}; a number above 0 is needed.")
    return (given or head_dim) ** -0.5 * (factor if how == "latent" else 1.0)
