"""Which layers of a model are alike, and which have no rotary encoding."""

from collections.abc import Callable, Sequence

from posenc.interop import rope_models
from posenc.interop.configurations import Configuration

FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"

Rule = Callable[[int, int], str]
"""From the number of a layer, and of all layers, to its type."""

PATTERNS: dict[str, Rule] = {
    "gemma2": lambda i, n: SLIDING if (i + 1) % 2 else FULL,
    "granite_swa": lambda i, n: SLIDING if i % 4 else FULL,
    "granitemoe_swa": lambda i, n: SLIDING if i % 4 else FULL,
    "mimo_v2_flash": lambda i, n: FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING,
    "minimax": lambda i, n: FULL if (i + 1) % 2 else LINEAR,
    "muse_glimmer": lambda i, n: SLIDING if (n - 1 - i) % 4 else FULL,
    "vaultgemma": lambda i, n: SLIDING if (i + 1) % 2 else FULL,
    "muse_spark": lambda i, n: SLIDING if (n - 1 - i) % 4 else FULL,
    "cohere_compass": lambda i, n: FULL,
    "step3p5": lambda i, n: FULL,
    "jamba": lambda i, n: FULL,
}
"""How models lay their layers out where a file does not list the types, beside the periods."""


ENDING_FULL = frozenset({"diffusion_gemma", "embedding_gemma2", "gemma4", "gemma4_unified"})
"""Models whose last layer attends to everything, whatever their list of types says."""

CROSSED = [3, 8, 13, 18, 23, 28, 33, 38]
"""The layers of Llama 3.2 that look at the image, where its file does not say."""


def layer_types(config: Configuration) -> list[str] | None:
    """The type of each layer; None where all are alike.

    Raises:
        ValueError: A field that lists layers is no list of them.

    Example:
        >>> layer_types(Configuration({"num_hidden_layers": 6}, "gemma3"))[-2:]
        ['sliding_attention', 'full_attention']
    """
    if (listed := config.get("layer_types")) is not None:
        types = [str(each) for each in _listed(config, "layer_types", listed)]
        return [*types[:-1], FULL] if types and config.family in ENDING_FULL else types
    for reader in (_blocks, _attention_types, _indices, _crossed, _after_dense):
        if (types := reader(config)) is not None:
            return types
    if config.family == "llama4":
        count = config.whole("layers")
        return ["chunked_attention" if x else FULL for x in _rotated(config, count) or ()]
    count = config.whole("layers") if config.family in PATTERNS else 0
    if count:
        return [PATTERNS[config.family](index, count) for index in range(count)]
    return _periodic(config)


def _listed(config: Configuration, name: str, value: object) -> Sequence:
    if isinstance(value, list | tuple):
        return value
    raise ValueError(f"{name} is {value!r}; it must be a list, of one entry a layer. Correct it.")


def _blocks(config: Configuration) -> list[str] | None:
    """Griffin's ``block_types``, repeated until all layers have one."""
    if (blocks := config.get("block_types")) is None:
        return None
    blocks = _listed(config, "block_types", blocks)
    if not blocks:
        raise ValueError("block_types is empty; it must name the type of one layer at least.")
    return [
        SLIDING if blocks[i % len(blocks)] == "attention" else "recurrent"
        for i in range(config.whole("layers"))
    ]


def _attention_types(config: Configuration) -> list[str] | None:
    """MiniMax's ``attn_type_list``: 1 for softmax attention, 0 for linear."""
    if (kinds := config.get("attn_type_list")) is None:
        return None
    return [FULL if kind else LINEAR for kind in _listed(config, "attn_type_list", kinds)]


def _indices(config: Configuration) -> list[str] | None:
    for name, elsewhere in rope_models.LISTED.items():
        if (full := config.get(name)) is not None:
            full = _listed(config, name, full)
            layers = range(config.whole("layers"))
            return [FULL if index in full else elsewhere for index in layers]
    return None


def _crossed(config: Configuration) -> list[str] | None:
    """Llama 3.2's ``cross_attention_layers``, which look at the image and rotate nothing."""
    crossed = config.get("cross_attention_layers")
    if crossed is None and config.family == "mllama":
        crossed = CROSSED
    if crossed is None:
        return None
    crossed = _listed(config, "cross_attention_layers", crossed)
    layers = range(config.whole("layers"))
    return ["cross_attention" if index in crossed else FULL for index in layers]


def _after_dense(config: Configuration) -> list[str] | None:
    """Command's ``first_k_dense_replace``: a period for dense layers, and one for those after."""
    first = config.get("first_k_dense_replace")
    if config.family != "cohere2_moe" or not first:
        return None
    before = range(config.whole("first_k_dense_replace"))
    after = range(config.whole("layers") - len(before))
    periods = (config.whole("prefix_dense_sliding_window_pattern"),
               config.whole("sliding_window_pattern"))  # fmt: skip
    return [
        SLIDING if (index + 1) % period else FULL
        for layers, period in zip((before, after), periods, strict=True)
        for index in layers
    ]


def _dense(config: Configuration, count: int) -> list[bool]:
    """For each layer, whether it is one of Command's that are dense and always rotate."""
    if config.family != "cohere2_moe" or config.get("prefix_dense_sliding_window_pattern") != 1:
        return [False] * count
    if (kinds := config.get("mlp_layer_types")) is not None:
        return [kind == "dense" for kind in _as_many(config, "mlp_layer_types", kinds, count)]
    return [index < (config.get("first_k_dense_replace") or 0) for index in range(count)]


def _periodic(config: Configuration) -> list[str] | None:
    if (period := _period(config)) is None:
        return None
    layers = range(config.whole("layers"))
    if isinstance(period, str):  # "LLLG": local, local, local, global, and the last global too
        local = [period[i % len(period)] == "L" and i != layers[-1] for i in layers]
    elif config.family in ("modernbert", "modernbert_decoder"):  # counted from the first layer
        local = [i % period != 0 for i in layers]
    else:
        local = [(i + 1) % period != 0 for i in layers]
    other = LINEAR if config.family in rope_models.LINEAR else SLIDING
    return [other if is_local else FULL for is_local in local]


def _period(config: Configuration) -> int | str | None:
    """Every so many layers one attends to everything; or a pattern as ``"LLLG"``."""
    periods = rope_models.PERIODS
    windowless = _windowless(config) and config.family.startswith("exaone")
    if config.family not in periods or windowless:
        return None
    field, usual = periods[config.family]
    period = config.get(field) or usual
    is_pattern = isinstance(period, str) and set(period) <= {"L", "G"}
    if is_pattern or (isinstance(period, int) and period > 0):
        return period
    raise ValueError(
        f"{field} is {period!r}; it must be 1 or more, or a pattern as 'LLLG' of "
        f"local and global layers. Correct it."
    )


def unrotated(config: Configuration, types: list[str] | None, count: int) -> list[bool]:
    """For each layer, whether it has no rotary encoding (NoPE, or no attention).

    Raises:
        ValueError: A field has an entry for fewer layers than there are.

    Example:
        >>> unrotated(Configuration({}, "smollm3"), None, 4)
        [False, False, False, True]
    """
    none = [kind in rope_models.ELSEWHERE for kind in types or [""] * count]
    if config.family == "zamba2":  # its other layers are Mamba's
        return [kind != "hybrid" for kind in types or ["hybrid"] * count]
    if (flags := _rotated(config, count)) is not None:
        return [absent or not rotated for absent, rotated in zip(none, flags, strict=True)]
    everywhere = config.family in rope_models.WINDOWLESS and _windowless(config)
    if config.family in rope_models.SLIDING_ONLY and types and not everywhere:
        dense = _dense(config, count)
        return [not (kind == SLIDING or each) for kind, each in zip(types, dense, strict=True)]
    return none


def _windowless(config: Configuration) -> bool:
    return "sliding_window" in config.values and config.get("sliding_window") is None


def _rotated(config: Configuration, count: int) -> Sequence | None:
    """For each layer whether it rotates, of models that say so layer by layer."""
    if (bases := layer_bases(config, count)) is not None:
        return bases
    if config.family in ("muse_glimmer", "muse_spark"):
        return [(count - 1 - index) % 4 for index in range(count)]
    if config.family not in ("smollm3", "llama4", "mistral_large4"):
        return None
    period = config.whole("no_rope_layer_interval") if config.get("no_rope_layer_interval") else 4
    flags = config.get("no_rope_layers")
    if flags is None or flags == []:
        flags = [(i + 1) % period for i in range(count)]
    return _as_many(config, "no_rope_layers", flags, count)


def layer_bases(config: Configuration, count: int) -> Sequence | None:
    """``layer_rope_theta``: the base of each layer, 0 where it has no rotary encoding."""
    if (bases := config.get("layer_rope_theta")) is None:
        return None
    return _as_many(config, "layer_rope_theta", bases, count)


def _as_many(config: Configuration, name: str, values: object, count: int) -> Sequence:
    values = _listed(config, name, values)
    if len(values) != count:
        raise ValueError(
            f"{name} has {len(values)} entries; the configuration has {count} layers. Correct one."
        )
    return values
