"""Configurations of Hugging Face models: objects, dictionaries and files, read as one thing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any
from warnings import warn

from posenc.arguments import check_whole
from posenc.interop.model_types import known, respelled, spelled
from posenc.interop.schemes import counts_from_padding

NESTS = ("text_config", "llm_config", "language_config", "thinker_config", "vlm_config")
"""Where a model of several modalities keeps the configuration of its language model."""

BESIDE = frozenset(
    {
        "quantization_config",
        "attn_config",
        "ffn_config",
        "generation_config",
        "dual_chunk_attention_config",
        "streaming_config",
    }
)
"""Nested objects that are no part of their own: they speak of the model that they stand in."""

FILL_IN = (
    "load it with transformers.AutoConfig, which fills them in, and pass the object, or the file "
    "that its save_pretrained writes."
)
"""What to do about a file that leaves out what its class has."""

ALIASES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "layers": (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "layers",
        "num_attention_layers",
    ),
    "longest": ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len"),
}
"""What models call the same thing."""

MOST = 1 << 20
"""No model is as wide or as deep."""


@dataclass(frozen=True)
class Configuration:
    """The configuration of one language model.

    Attributes:
        values: Its fields.
        model_type: As the file has it; ``""`` where it does not say.
    """

    values: Mapping[str, Any]
    model_type: str

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the class of this type says in transformers; empty for types that it has not."""
        return known(self.model_type)

    @property
    def family(self) -> str:
        """The model type without the part that tells a text model from what it is a part of.

        Example:
            >>> Configuration({}, "gemma3_text").family
            'gemma3'
        """
        return self.model_type.replace("-", "_").removesuffix("_model").removesuffix("_text")

    def get(self, *names: str) -> Any:
        """The first of the fields that is there and not null; None without any."""
        field = self.field(*names)
        return None if field is None else self.values[field]

    def field(self, *names: str) -> str | None:
        """What the file calls that one of the fields; None without any.

        Example:
            >>> Configuration({"n_embd": 768}, "gpt2").field("hidden_size")
            'n_embd'
        """
        for name in names:
            for alias in ALIASES.get(name, (name,)):
                for called in (alias, self.facts.get("names", {}).get(alias)):
                    if self.values.get(called) is not None:
                        return called
        return None

    def with_defaults(self) -> "Configuration":
        """The same, with what the class of this type has where the file says nothing.

        Example:
            >>> Configuration({}, "gpt2").with_defaults().get("heads")
            12
        """
        values = respelled(self.model_type, self.values)
        usual = respelled(self.model_type, self.facts.get("defaults", {}))
        absent = {name: value for name, value in usual.items() if name not in values}
        return Configuration({**absent, **values}, self.model_type)

    def whole(self, name: str) -> int:
        """A whole number that must be there.

        Raises:
            ValueError: It is not.
        """
        field = self.field(name)
        if field is None:
            named = self.facts.get("names", {}).get(name, name)
            names = " or ".join(dict.fromkeys((named, *ALIASES.get(name, (name,)))))
            raise ValueError(
                f"The configuration has no {names}; a whole number from 1 to {MOST:,} is needed. "
                f"Files may leave defaults out: {FILL_IN}"
            )
        value = self.values[field]
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MOST:
            raise ValueError(
                f"{field} is {value!r}; it must be a whole number from 1 to {MOST:,}. Correct the "
                f"file."
            )
        return value

    def number(self, *names: str) -> float | None:
        """The first of the fields that is there; None without any.

        Raises:
            ValueError: It is not a finite number.
        """
        field = self.field(*names)
        return None if field is None else finite(field, self.values[field])

    def dictionary(self, name: str) -> Mapping[str, Any]:
        """A field that holds a dictionary, or nothing.

        Raises:
            ValueError: It holds something else.
        """
        value = self.get(name)
        if not isinstance(value, Mapping | None):
            raise ValueError(f"{name} is {value!r}; it must be an object, {{…}}, or null.")
        return value or {}


def check_length(length: int | None) -> None:
    """Refuse a length of sequences that is no number of tokens; None: it is not told.

    Raises:
        ValueError: It is no whole number from 1 on.

    Example:
        >>> check_length(None)
        >>> check_length(2.5)
        Traceback (most recent call last):
        ...
        ValueError: length is 2.5; it must be a whole number from 1 on.
    """
    if length is not None:
        check_whole(length=length)


def finite(name: str, value: object) -> float:
    """``value`` if it is a finite number.

    Raises:
        ValueError: It is not.

    Example:
        >>> finite("factor", 8)
        8
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{name} is {value!r}; it must be a finite number. Correct the file.")
    return value


def read(config: object) -> Configuration:
    """The configuration of the language model in ``config``.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not JSON, or not an object.
        TypeError: ``config`` is something else.

    Example:
        >>> read({"model_type": "llava", "text_config": {"model_type": "llama"}}).model_type
        'llama'
    """
    return _nests(read_whole(config))[-1].with_defaults()


def strays(config: object) -> list[str]:
    """Fields that ``read`` takes from where the class of the model does not look for them.

    Raises:
        OSError, ValueError, TypeError: As of ``read``.

    Example:
        >>> strays({"model_type": "llava", "rope_theta": 1e6})
        ['rope_theta']
    """
    return [name for each in _nests(read_whole(config)) for name in unreached(each)]


def standing(fields: Sequence[str]) -> tuple[str, str, str]:
    """Fields with their verb, whether they are or it is, and what they are called after that.

    Example:
        >>> standing(["rope_theta"]), standing(["head_dim", "rope_theta"])
        (('rope_theta stands', 'is', 'it'), ('head_dim, rope_theta stand', 'are', 'them'))
    """
    told = ", ".join(fields)
    return (f"{told} stands", "is", "it") if len(fields) == 1 else (f"{told} stand", "are", "them")


def warn_of_strays(config: object) -> None:
    """Say that fields of the language model stand where its class does not look for them.

    Raises:
        OSError, ValueError, TypeError: As of ``read``.
    """
    if found := strays(config):
        whole = read_whole(config)
        parts = missing_parts(whole)
        made = "left out" if leaves_out(whole) else "read as its own"
        stand, are, them = standing(found)
        warn(
            f"{stand} beside a missing {parts} and {are} {made}; the class of this model in "
            f"transformers does not look for {them} there, and takes its defaults. Write {them} "
            f"into {parts}.",
            stacklevel=3,
        )


def _nests(config: Configuration) -> list[Configuration]:
    """A configuration, and those of language models within it, the innermost last."""
    parts = parts_of(config)
    name = next((name for name in NESTS if name in parts), None)
    return [config] if name is None else [config, *_nests(parts[name])]


def read_whole(config: object) -> Configuration:
    """All of a configuration, its parts still nested, and nothing filled in.

    Raises:
        OSError, ValueError, TypeError: As of ``read``.
    """
    values = _values(config)
    named = values.get("model_type")
    if named is not None and not isinstance(named, str):
        raise ValueError(f"model_type is {named!r}; it must be a name, as 'llama'. Correct it.")
    return Configuration(respelled(named or "", values), spelled(named or "", values))


def has_own_class(config: Configuration) -> bool:
    """Whether a file names a class of its own, whatever ``model_type`` it has.

    Example:
        >>> has_own_class(Configuration({"auto_map": {"AutoModel": "modeling.NewModel"}}, "bert"))
        True
    """
    named = config.values.get("auto_map")
    return isinstance(named, Mapping) and any(str(name).startswith("AutoModel") for name in named)


def parts_of(config: Configuration) -> dict[str, Configuration]:
    """The configurations nested in one, by the field that each stands in.

    Older files keep the fields of the language model beside the nested ones, and they are read as
    those of ``text_config``; ``unreached`` says where the class of the model does not do so. A
    class that hands such fields on to its part hands on some alone, and the others are left out.
    Where it hands on none, fields that it has itself are its own. A class of the file's own that
    ``auto_map`` names is that of all parts.

    Raises:
        ValueError: One of them is no object.

    Example:
        >>> list(parts_of(Configuration({"vision_config": {"depth": 2}}, "qwen2_vl")))
        ['text_config', 'vision_config']
    """
    types = config.facts.get("parts", {})
    for name in {*types, *NESTS, *SENSES} & set(config.values):
        value = config.values[name]
        if not (value is None or isinstance(value, Mapping)):
            raise ValueError(f"{name} is {value!r}; it must be an object, or null. Correct it.")
    absent = not any(isinstance(config.values.get(name), Mapping) for name in types)
    found = {}
    for name, value in config.values.items():
        if name in BESIDE or not isinstance(value, Mapping) or not value:
            continue
        if name in types or name in NESTS or _is_model(config, name, value):
            model_type = _type_of(config, name, value)
            filled = respelled(model_type, config.facts.get("filled", {}).get(name, {}))
            value = {**filled, **respelled(model_type, value)}
            found[name] = Configuration(value, spelled(model_type, value))
    kept = () if config.facts.get("flat") else _own(config)
    kept = {*config.facts.get("dropped", ()), *kept}
    for name, model_type in types.items():
        if name == "text_config" and config.facts.get("flat"):
            model_type = model_type or config.facts.get("usual", {}).get(name)
        if name in found or not model_type or not (absent or name in ESSENTIAL):
            continue
        flat = {k: v for k, v in config.values.items() if not isinstance(v, Mapping)}
        rope = {k: v for k, v in config.values.items() if k in ("rope_scaling", "rope_parameters")}
        beside = {k: v for k, v in {**flat, **rope}.items() if k not in kept}
        beside = beside if name == "text_config" else {}
        value = respelled(model_type, {**beside, "model_type": model_type})
        found[name] = Configuration(value, model_type)
    if has_own_class(config):
        found = {name: _of_own_class(config, part) for name, part in found.items()}
    return {name: found[name] for name in sorted(found, key=_order)}


def _of_own_class(config: Configuration, part: Configuration) -> Configuration:
    """A part with the class that the file names for the whole, where it names none itself."""
    if has_own_class(part):
        return part
    return replace(part, values={**part.values, "auto_map": config.values["auto_map"]})


def unreached(config: Configuration) -> list[str]:
    """Fields of the language model beside its missing part, where its class does not look for them.

    The code of the authors may (LLaVA's), but transformers builds the part of its defaults. Of a
    class that hands on what stands there: the fields that it does not.

    Example:
        >>> unreached(Configuration({"hidden_size": 64, "rope_theta": 1e6}, "llava"))
        ['hidden_size', 'rope_theta']
        >>> unreached(Configuration({"sliding_window": 512}, "gemma3"))
        ['sliding_window']
        >>> unreached(Configuration({"hidden_size": 64, "head_dim": 16}, "qwen2_vl"))
        ['head_dim']
    """
    parts = config.facts.get("parts", {})
    nests = [name for name in NESTS if name in parts] or (
        list(parts) if is_made_of_parts(config) else []
    )
    there = any(isinstance(config.values.get(name), Mapping) for name in nests)
    if not nests or there:
        return []
    if config.facts.get("flat"):
        dropped = config.facts.get("dropped", ())
        return [name for name in config.values if name in dropped and config.get(name) is not None]
    own = _own(config)
    told = {alias for names in ALIASES.values() for alias in names} | {"head_dim"}
    for name in nests:
        told |= _of_class(parts[name] or config.facts.get("usual", {}).get(name, ""))
    return [
        name
        for name, value in config.values.items()
        if name not in own and value is not None
        if name in told or "rope_" in name or "rotary_" in name
    ]


def _of_class(model_type: str) -> set[str]:
    """Fields that the class of a type has; ``pad_token_id`` where positions count from it."""
    facts = known(model_type)
    found = {*facts.get("defaults", {}), *facts.get("names", {}), *facts.get("derived", ())}
    return found if counts_from_padding(model_type) else found - {"pad_token_id"}


def _own(config: Configuration) -> set[str]:
    """Fields that the class of a model has itself."""
    return {*config.facts.get("defaults", {}), *config.facts.get("names", {})}


def is_made_of_parts(config: Configuration) -> bool:
    """Whether the class of a model has neither layers of its own nor those of a language model.

    Example:
        >>> [is_made_of_parts(Configuration({}, name)) for name in ("t5gemma", "csm", "llava")]
        [True, False, False]
    """
    parts = {*config.facts.get("parts", {})}
    own = _own(config) | {*config.facts.get("derived", ())}
    sizes = {*ALIASES["hidden_size"], *ALIASES["layers"], "rope_parameters"}
    return bool(parts) and not parts & {*NESTS} and not own & sizes


def leaves_out(config: Configuration) -> bool:
    """Whether fields that ``unreached`` names are not read, as the class does not."""
    return bool(config.facts.get("flat")) or is_made_of_parts(config)


def missing_parts(config: Configuration) -> str:
    """The parts beside which such fields stand, in words."""
    return " or ".join(config.facts.get("parts", ())) if is_made_of_parts(config) else "text_config"


SENSES = ("vision_config", "audio_config")
"""Parts whatever they hold: in some files the names of all their fields begin with letters of their
own."""

ESSENTIAL = ("text_config", "vision_config")
"""Parts that a model has although its file leaves them out: those of the defaults of its class."""


def _order(name: str) -> tuple[bool, str]:
    return name not in NESTS, name


def _is_model(config: Configuration, name: str, value: Mapping[str, Any]) -> bool:
    """Whether an object is a part although the class of the whole does not list it as one.

    Files of Llama may keep a ``perceiver_config`` of a type that nothing knows, and those of models
    that are not known here an object of settings (``sparse_attention_config``).
    """
    named = value.get("model_type")
    if config.facts or not name.endswith("_config"):
        return isinstance(named, str) and bool(known(spelled(named, value)))
    sizes = ("layers", "hidden_size", "heads")
    sized = any(alias in value for size in sizes for alias in ALIASES[size])
    return sized or name in SENSES or (isinstance(named, str) and named != config.model_type)


def _type_of(config: Configuration, name: str, value: Mapping[str, Any]) -> str:
    """The type of a part: the class of the whole decides, and where it leaves it open, the file; if
    that is silent, what the class usually has there.

    Files of Qwen-VL, GLM-V and Idefics name the whole model in its part of images, and some give
    SigLIP where they mean its part of images.
    """
    if settled := config.facts.get("parts", {}).get(name):
        return settled
    usual = config.facts.get("usual", {}).get(name)
    usual = usual or (config.model_type if name in NESTS else "")
    named = str(value.get("model_type") or usual)
    within = known(spelled(named, value)).get("parts", {})
    return named if name in value or not within.get(name) else within[name]


def _values(config: object) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    if isinstance(config, str | Path):
        return _parsed(Path(config))
    if hasattr(config, "to_dict"):
        return config.to_dict()  # type: ignore[attr-defined]
    raise TypeError(
        f"config is a {type(config).__name__}; it must be a transformers configuration, a "
        f"dictionary, or the path of a config.json."
    )


def _once(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON whose fields stand there once, of which a parser would take the last."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise RepeatedFieldError(
                f"{path} has {name} twice, as {found[name]!r} and as {value!r}. Keep one of them."
            )
        found[name] = value
    return found


class RepeatedFieldError(ValueError):
    """A field stands twice in one object, with two values."""


def _parsed(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text, object_pairs_hook=lambda pairs: _once(path, pairs))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not JSON ({error}). Give the config.json of a model."
        ) from None
    if not isinstance(values, dict):
        raise ValueError(
            f"{path} holds a {type(values).__name__}; a config.json holds one object, {{…}}."
        )
    return values
