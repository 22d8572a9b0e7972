"""Which rope dictionary holds for which layers: the old form, the new form, and nested ones."""

from collections.abc import Mapping
from typing import Any

from posenc.frequencies.huggingface import COMMON, Rope
from posenc.frequencies.registry import ROPE_TYPES
from posenc.interop import rope_models
from posenc.interop.configurations import (
    FILL_IN,
    NESTS,
    Configuration,
    has_own_class,
    is_made_of_parts,
    missing_parts,
)
from posenc.interop.image_models import AXIAL
from posenc.interop.layer_types import layer_types
from posenc.interop.rope_types import rope_type_of
from posenc.interop.rope_widths import (
    SHARE_FIELDS,
    latent_width,
    rotated_width,
    share_of,
    width_of_head,
)

SIGNS = (
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "rotary_pct",
    "rope_pct",
    "rotary_emb_base",
    "rotary_dim",
    "partial_rotary_factor",
    "global_rope_theta",
    "rope_local_base_freq",
    "qk_rope_head_dim",
)
"""Fields of which a rotary model has at least one, be it null."""

Dictionary = Mapping[str, Any]


def checked(config: Configuration) -> Configuration:
    """``config`` if it is of a rotary model that can be read.

    Raises:
        ValueError: It is not.
    """
    _check_kinds(config)
    _check_default_base(config)
    family = config.family
    if why := rope_models.refusal(config):
        raise ValueError(
            f"The rotary encoding of {family} cannot be read from its configuration: "
            f"{why}. Build it from posenc.Rotary by hand."
        )
    if config.model_type in AXIAL:
        raise ValueError(
            f"{config.model_type} rotates by the two coordinates of an image. Read it with "
            f"posenc.interop.huggingface.positional_setup, or build posenc.AxialRotary."
        )
    if is_made_of_parts(config):
        raise ValueError(
            f"{config.model_type} is made of parts ({missing_parts(config)}), and has no layers "
            f"beside them. Pass the configuration of one, or read all of them with "
            f"posenc.interop.huggingface.positional_setup."
        )
    config = of_its_own_code(config)
    if not rotates(config) and (stray := strange(config)) and not has_own_class(config):
        raise ValueError(
            f"There is no rotary encoding in a {config.model_type}: its class does not look at "
            f"{', '.join(stray)}. Correct model_type, or read what it has with "
            f"posenc.interop.huggingface.positional_setup."
        )
    if not rotates(config):
        raise ValueError(
            f"There is no rotary encoding in this configuration (model type "
            f"{config.model_type or 'not given'!r}): it has no rope_parameters, rope_theta or the "
            f"like, or names another encoding. Give the config.json of a rotary model, or read "
            f"whatever it has with posenc.interop.huggingface.positional_setup."
        )
    scaled = config.get("rope_scaling") and config.family not in rope_models.BY_TYPE_ALONE
    if not config.get("rope_parameters") and not scaled:
        _check_left_out(config)
    return config


NUMBERS = (
    "head_dim", "kv_channels", "global_head_dim", "qk_rope_head_dim", "qk_nope_head_dim",
    "rope_theta", "rotary_emb_base", "rope_local_base_freq", "global_rope_theta",
    "local_rope_theta", "swa_rope_theta", "rotary_dim", *SHARE_FIELDS, "no_rope_layer_interval",
    "max_position_embeddings", "original_max_position_embeddings",
)  # fmt: skip
"""Fields of numbers, of which 0 may stand for none, as the classes of transformers read it."""

SWITCHES = ("rope_interleave", "use_mem_rope", "use_sliding_window")


def _check_kinds(config: Configuration) -> None:
    """Refuse what is empty or false instead of a number, and what is neither true nor false."""
    for name in NUMBERS:
        value = config.values.get(name)
        if (
            value is not None
            and not value
            and (value is False or not isinstance(value, int | float))
        ):
            raise ValueError(
                f"{name} is {value!r}; it must be a number. Correct it or leave it out."
            )
    for name in SWITCHES:
        value = config.values.get(name)
        if not isinstance(value, bool | None):
            raise ValueError(f"{name} is {value!r}; it must be true or false. Correct the file.")


def _check_default_base(config: Configuration) -> None:
    """Refuse a base of a class's own that stands in for one, which some classes look at alone."""
    default = config.values.get("default_theta")
    rope = {**config.dictionary("rope_parameters"), **config.dictionary("rope_scaling")}
    inside = [rope, *(each for each in rope.values() if isinstance(each, Mapping))]
    beside = config.get(*BASE_FIELDS, "global_rope_theta", "layer_rope_theta")
    told = beside is not None or any("rope_theta" in each for each in inside)
    if default is not None and not told:
        raise ValueError(
            f"default_theta is {default!r}, and no rope_theta stands beside it; of the classes of "
            f"transformers some look at it and some do not. Write rope_theta."
        )


def _check_left_out(config: Configuration) -> None:
    """Refuse a file without a rope dictionary where the class of its model has one of its own."""
    family, share = config.family, config.get(SHARE_FIELDS[0])
    suffices = share is not None and family in rope_models.SHARE_SUFFICES
    if family in rope_models.ROPE_NEEDED and not suffices:
        raise ValueError(
            f"This configuration of {config.model_type} leaves rope_parameters out, for which its "
            f"class has values of its own: {FILL_IN}"
        )
    for name, own in rope_models.OWN_VALUES.get(family, {}).items():
        if (given := config.get(name)) not in (None, own):
            raise ValueError(
                f"{name} is {given!r}; without rope_parameters the class of {config.model_type} "
                f"has {own:g}, whatever stands beside them. Give rope_parameters."
            )


BASE_FIELDS = ("rope_theta", "rotary_emb_base")
"""Fields of the base, likewise."""


NO_ROTATION = ("alibi", "use_mem_rope", "qk_rope_head_dim")
"""Fields that may say that a model does not rotate, of models whose class has them."""


def rotates(config: Configuration) -> bool:
    """Whether a model turns its queries and keys, in some layers at least.

    ``position_embedding_type`` counts where the code looks at it, and in models that transformers
    does not have; ModernBERT's files say ``absolute``, and it rotates.

    Example:
        >>> rotates(Configuration({"position_embedding_type": "rotary"}, "esm"))
        True
    """
    own = config.facts.get("defaults", config.values)
    told = {name: config.values.get(name) for name in NO_ROTATION if name in own}
    if config.family in rope_models.UNROTATED or told.get("alibi") or is_made_of_parts(config):
        return False
    if told.get("use_mem_rope") is False or told.get("qk_rope_head_dim") == 0:
        return False
    kind = config.get("position_embedding_type", "position_embeddings_type")
    if config.family in rope_models.NAMED_BY_FIELD:
        return kind in ("rotary", "rope")
    if not config.facts and kind not in (None, "rotary", "rope"):
        return False
    known = rope_models.HALF | rope_models.INTERLEAVED
    signs = {*SIGNS} & {*config.values} - {*strange(config)}
    derived = "rope_parameters" in config.facts.get("derived", ())
    return config.family in known or bool(signs) or derived


def strange(config: Configuration) -> list[str]:
    """Fields of a rotation in the file of a model whose class has none of them.

    Beside the parts of a model of several they may be those of its language model.

    Example:
        >>> strange(Configuration({"rope_theta": 1e4}, "gpt2"))
        ['rope_theta']
    """
    facts = config.facts
    own = {*facts.get("defaults", {}), *facts.get("names", {}), *facts.get("derived", ())}
    if not facts or {*NESTS} & {*facts.get("parts", {})} or own & {*SIGNS}:
        return []
    return [name for name in SIGNS if name in config.values]


def of_its_own_code(config: Configuration) -> Configuration:
    """As of a type that is not known, where a file names a class of its own and rotates by fields
    that the class of its ``model_type`` does not look at.

    What a model of images or sounds would rotate by such fields is not told by them.

    Example:
        >>> file = {"rope_theta": 1e4, "auto_map": {"AutoModel": "modeling.NewModel"}}
        >>> of_its_own_code(Configuration(file, "bert")).model_type
        'bert of its own code'
        >>> of_its_own_code(Configuration(file, "llama")).model_type
        'llama'
    """
    if rotates(config) or not strange(config) or not has_own_class(config):
        return config
    unknown = Configuration(config.values, f"{config.model_type} of its own code")
    return unknown if rotates(unknown) and "sense" not in config.facts else config


def dictionaries(config: Configuration) -> dict[str | None, Dictionary | None]:
    """The rope dictionary of each layer type, or one for all layers, under None.

    A dictionary is None where layers of that type have no rotary encoding.

    Example:
        >>> dictionaries(Configuration({"rope_theta": 1e6, "rope_local_base_freq": 1e4}, "gemma3"))
        {'full_attention': {'rope_theta': 1000000.0}, 'sliding_attention': {'rope_theta': 10000.0}}
    """
    given = config.dictionary("rope_parameters")
    if nested := {key: value for key, value in given.items() if _is_layer_type(key, value)}:
        if stray := sorted(set(given) - set(nested) - COMMON):
            raise ValueError(
                f"rope_parameters has {', '.join(map(repr, stray))} beside the layer types "
                f"{', '.join(nested)}. Move it into the dictionary of the type that it is for."
            )
        if config.facts and config.family not in rope_models.BY_TYPE:
            raise ValueError(
                f"rope_parameters is by layer type ({', '.join(nested)}); the class of "
                f"{config.model_type} looks at one dictionary for all layers, and scales none by "
                f"these. Give one dictionary."
            )
        return _nested(config, nested)
    if by_type := _by_layer_type(config):
        if given:
            raise ValueError(
                f"rope_parameters of {config.family} are flat; its layers differ. Give one "
                f"dictionary for each of {', '.join(map(str, by_type))}."
            )
        return by_type
    old = config.dictionary("rope_scaling")
    if old and config.family in rope_models.SCALING_UNREAD:
        raise ValueError(
            f"rope_scaling is {old!r}; the code of {config.model_type} does not look at it. "
            f"Remove it, or say what is meant in rope_parameters."
        )
    if given and old and _meant(config, given) != _meant(config, old):
        raise ValueError(
            f"rope_parameters is {given!r}, and rope_scaling, its name of old, {old!r}; "
            f"transformers takes the latter. Keep one of them."
        )
    return {None: given or old}


def _nested(
    config: Configuration, nested: Mapping[str, Dictionary | None]
) -> dict[str | None, Dictionary | None]:
    """Dictionaries by layer type, with the bases that their class has where they are silent.

    Raises:
        ValueError: They are read in one way here and in another there.
    """
    if old := config.dictionary("rope_scaling"):
        raise ValueError(
            f"rope_scaling is {old!r}, beside rope_parameters by layer type, with which models "
            f"mix it in different ways. Keep rope_parameters alone."
        )
    absent = sorted({kind for kind in layer_types(config) or () if not nested.get(kind)})
    if absent and config.family in rope_models.BY_TYPE_ALONE:
        raise ValueError(
            f"rope_parameters has nothing for {', '.join(map(repr, absent))}; the class of "
            f"{config.model_type} then looks at none of it. Give one for each layer type."
        )
    silent = [k for k, each in nested.items() if each is not None and "rope_theta" not in each]
    if silent and config.family in rope_models.THETA_NEEDED:
        raise ValueError(
            f"rope_parameters has no rope_theta for {silent[0]!r}; the class of "
            f"{config.model_type} looks at none that stands elsewhere. Write it there."
        )
    nested = _shared(config, nested)
    usual = _by_layer_type(config)
    named = {k: {"rope_theta": (usual[k] or {})["rope_theta"]} for k in silent if k in usual}
    return {**usual, **nested, **{k: {**(nested[k] or {}), **base} for k, base in named.items()}}


def _shared(
    config: Configuration, nested: Mapping[str, Dictionary | None]
) -> Mapping[str, Dictionary | None]:
    """Dictionaries by layer type, where the class looks for the rotated share in them alone.

    Raises:
        ValueError: transformers hands it on to some of them.
    """
    share = config.get(SHARE_FIELDS[0])
    if share is None or config.family not in rope_models.SHARE_INSIDE:
        return nested
    silent = {k: each for k, each in nested.items() if each and SHARE_FIELDS[0] not in each}
    named = {rope_type_of(each, config.family).name for each in nested.values() if each}
    if silent and named != {"default"}:
        raise ValueError(
            f"{SHARE_FIELDS[0]} is {share!r} beside rope_parameters by layer type, not all of "
            f"which are of the default type; which of them the class of {config.model_type} then "
            f"gives it to depends on their order. Write it into each of them."
        )
    return {**nested, **{k: {**each, SHARE_FIELDS[0]: 1.0} for k, each in silent.items()}}


def _meant(config: Configuration, dictionary: Dictionary) -> Dictionary:
    """A dictionary with what it means where it is silent, to hold it against another."""
    said = {key: value for key, value in dictionary.items() if value is not None}
    named = said.pop("rope_type", said.pop("type", "default"))
    beside = {
        "rope_theta": _base(config, said),
        "rope_type": rope_type_of({"rope_type": named}).name,
    }
    return {**said, **beside}


def _is_layer_type(key: str, value: object) -> bool:
    known = COMMON.union(*(each.keys for each in ROPE_TYPES.values()))
    return key not in known and isinstance(value, Mapping | None)


def _by_layer_type(config: Configuration) -> dict[str | None, Dictionary | None]:
    """What models whose layers differ had before there were nested dictionaries."""
    scaling = config.dictionary("rope_scaling")
    if config.family in rope_models.UPDATED and scaling.get("type") and "rope_type" not in scaling:
        raise ValueError(
            f"rope_scaling names its type {scaling['type']!r} by the old key type, at which the "
            f"class of {config.model_type} does not look. Call it rope_type."
        )
    base = rope_models.BASES.get(config.family, 10_000.0)
    if config.family in ("gemma3", "gemma3n", "t5gemma2", "t5gemma2_decoder"):
        everywhere = config.get("rope_theta") or base
        local = config.get("rope_local_base_freq") or 10_000.0
        return _two({"rope_theta": everywhere, **scaling}, {"rope_theta": local})
    if config.family in ("modernbert", "modernbert_decoder"):
        everywhere = config.get("global_rope_theta") or base
        local = config.values.get("local_rope_theta", 10_000.0) or everywhere
        return _two({"rope_theta": everywhere, **scaling}, {"rope_theta": local, **scaling})
    if config.family == "mimo_v2_flash" and not config.get("rope_parameters"):
        everywhere, local = config.number("rope_theta"), config.number("swa_rope_theta")
        return _two({"rope_theta": everywhere or 5e6, **scaling}, {"rope_theta": local or 1e4})
    if config.family == "step3p5":
        plain = {"rope_theta": config.number("rope_theta") or base}
        return _two({**plain, **scaling}, plain)
    if config.family == "olmo3":
        base, named = config.facts.get("theta", base), config.number("rope_theta")
        if named not in (None, base):
            raise ValueError(
                f"rope_theta is {named!r}; transformers 4 gave it to all layers of OLMo 3, and 5 "
                f"gives it to those of full attention alone, the others have {base:g}. Say which, "
                f"with rope_parameters by layer type."
            )
        plain = {"rope_theta": base}
        return _two({**plain, **scaling}, plain)
    return {}


def _two(full: Dictionary, sliding: Dictionary) -> dict[str | None, Dictionary | None]:
    return {"full_attention": full, "sliding_attention": sliding}


def rope_of(config: Configuration, layer_type: str | None, dictionary: Dictionary) -> Rope:
    """A rope dictionary with what the rest of the configuration adds to it.

    Raises:
        ValueError: A key is unknown, or a width is missing.
    """
    rope_type = rope_type_of(dictionary, config.family)
    _check_by_engine(config, layer_type, dictionary)
    values = {key: value for key, value in dictionary.items() if value is not None}
    if rope_type.name == rope_models.PROPORTIONAL and SHARE_FIELDS[0] not in values:
        values[SHARE_FIELDS[0]] = share_of(config)
    head_dim = latent_width(config) or width_of_head(config, layer_type)
    longest = _positions(config, "longest") or rope_models.LONGEST.get(config.family)
    switch, long = rope_models.LONG.get(config.family, ("", 0))
    longest = long if config.get(switch) else longest
    trained = longest
    if rope_type.keeps_trained_length:
        inside = values.get("original_max_position_embeddings")
        outside = _positions(config, "original_max_position_embeddings")
        # Phi-3 keeps it outside, and there it counts before the one inside; of dictionaries by
        # layer type only the one inside counts.
        given = inside if layer_type else outside or inside
        trained = int(given) if given and given == int(given) else given or longest
    return Rope(
        rope_type,
        values,
        head_dim,
        rotated_width(config, values, head_dim),
        float(_base(config, values, layer_type)),
        trained,
        longest,
    )


def _check_by_engine(config: Configuration, layer_type: str | None, dictionary: Dictionary) -> None:
    """Refuse keys that are read in one way here and in another there.

    Raises:
        ValueError: There is one.
    """
    shared = dictionary.get("partial_rotary_factor") is not None
    by_type = bool(layer_type) and "rope_parameters" in config.values
    beside = dictionary.get("original_max_position_embeddings") or config.get(
        "original_max_position_embeddings"
    )
    called = config.facts.get("names", {}).get("max_position_embeddings")
    extended = rope_type_of(dictionary, config.family).keeps_trained_length
    if called and extended and not beside and config.get("max_position_embeddings"):
        raise ValueError(
            f"rope_parameters has no original_max_position_embeddings, and the class of "
            f"{config.model_type} takes {called} for it before it looks at "
            f"max_position_embeddings. Write it down."
        )
    if by_type and not shared and config.family in rope_models.SHARE_NEEDED:
        raise ValueError(
            f"rope_parameters has no partial_rotary_factor for {layer_type!r}; the class of "
            f"{config.model_type} has one of its own for each layer type. Write it down."
        )
    if "truncate" in dictionary and dictionary["truncate"] is None:
        raise ValueError(
            "truncate is None (null); transformers takes null for false there, and a key that is "
            "left out for true. Write true or false."
        )
    if layer_type and dictionary.get("truncate") is False:
        raise ValueError(
            f"truncate is false in the dictionary of {layer_type!r}; transformers looks for it "
            f"beside the layer types alone, and truncates. Leave it out for what runs there, or "
            f"build posenc.frequencies.YaRN with truncate=False for what is meant."
        )
    odd = [key for key in ("short_mscale", "long_mscale") if dictionary.get(key) is not None]
    if odd and config.facts and config.family not in rope_models.BY_LENGTH:
        raise ValueError(
            f"{odd[0]} is {dictionary[odd[0]]!r}; the code of {config.model_type} does not look at "
            f"it. Write attention_factor, or leave it out."
        )


def _positions(config: Configuration, name: str) -> int | None:
    length = config.number(name)
    if length is not None and (length < 1 or length != int(length)):
        raise ValueError(
            f"{config.field(name)} is {length!r}; it must be a whole number of positions from 1 "
            f"on. Correct the file."
        )
    return None if length is None else int(length)


def _base(config: Configuration, values: Dictionary, layer_type: str | None = None) -> float:
    named = values.get("rope_theta")
    if named is None:
        named = config.number(*rope_models.heeded(config, BASE_FIELDS))
    if named is None:
        named = config.facts.get("theta", rope_models.BASES.get(config.family, 10_000.0))
    if isinstance(named, Mapping):  # by layer type, where the class has more than one
        named = named.get(layer_type, next(iter(named.values())))
    if named <= 0:
        raise ValueError(f"rope_theta is {named}; a base must be above 0. Correct the file.")
    return named
