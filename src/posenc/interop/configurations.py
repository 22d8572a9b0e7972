"""Configurations of Hugging Face models: objects, dictionaries and files, and their parts."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from warnings import warn

from posenc.interop.families import known, respelled, spelled
from posenc.interop.fields import ALIASES, Configuration, has_own_class

Config = Any | dict[str, Any] | str | Path
"""A PreTrainedConfig, a dictionary, or the path of a config.json."""

NESTS = ("text_config", "llm_config", "language_config", "thinker_config", "vlm_config")
"""Where a model of several modalities keeps the configuration of its language model."""

SENSES = ("vision_config", "audio_config")
"""Parts whatever they hold."""

SIZES = ("layers", "hidden_size", "heads")

ESSENTIAL = ("text_config", "vision_config")
"""Parts that a model has although its file leaves them out: those of the defaults of its class."""


def read(config: object) -> Configuration:
    """The configuration of the language model in ``config``.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
    """
    return _nests(read_whole(config))[-1].with_defaults()


def read_whole(config: object) -> Configuration:
    """All of a configuration, its parts still nested, and nothing filled in."""
    values = _values(config)
    named = values.get("model_type") or ""
    if not isinstance(named, str):
        raise ValueError(f"model_type is {named!r}; a name is needed.")
    return Configuration(respelled(named, values), spelled(named))


def _values(config: object) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    if hasattr(config, "to_dict"):
        return config.to_dict()  # type: ignore[attr-defined]
    if not isinstance(config, str | Path):
        raise TypeError(f"config is a {type(config).__name__}; a path or a dictionary is needed.")
    try:
        values = json.loads(Path(config).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{config} is not JSON ({error}).") from None
    if not isinstance(values, dict):
        raise ValueError(f"{config} holds a {type(values).__name__}; an object is needed.")
    return values


def _nests(config: Configuration) -> list[Configuration]:
    """A configuration, and those of language models within it, the innermost last."""
    parts = parts_of(config)
    name = next((name for name in NESTS if name in parts), None)
    return [config] if name is None else [config, *_nests(parts[name])]


def parts_of(config: Configuration) -> dict[str, Configuration]:
    """The configurations nested in one, by the field that each stands in.

    Older files keep the fields of the language model beside the nested ones, and they are read as
    those of ``text_config``; ``strays`` says where the class of the model does not do so.
    """
    types = config.facts.get("parts", {})
    found = {}
    for name, value in config.values.items():
        if not isinstance(value, Mapping) or not value:
            continue
        if name in types or name in NESTS or _is_model(config, name, value):
            model_type = _type_of(config, name, value)
            filled = respelled(model_type, config.facts.get("filled", {}).get(name, {}))
            value = {**filled, **respelled(model_type, value)}
            found[name] = Configuration(value, spelled(model_type))
    absent = not any(isinstance(config.values.get(name), Mapping) for name in types)
    for name, model_type in types.items():
        if name == "text_config" and config.facts.get("flat"):
            model_type = model_type or config.facts.get("usual", {}).get(name)
        if name not in found and model_type and (absent or name in ESSENTIAL):
            beside = _beside(config) if name == "text_config" else {}
            value = respelled(model_type, {**beside, "model_type": model_type})
            found[name] = Configuration(value, model_type)
    if has_own_class(config):  # the code of a whole is that of its parts
        code = {"auto_map": config.values["auto_map"]}
        found = {
            name: replace(part, values={**code, **part.values}) for name, part in found.items()
        }
    return dict(sorted(found.items(), key=lambda each: (each[0] not in NESTS, each[0])))


def _beside(config: Configuration) -> dict[str, Any]:
    """Fields beside a missing ``text_config`` that are read as its own."""
    kept = {*config.facts.get("dropped", ())}
    if not config.facts.get("flat"):
        kept |= _kept(config)
    ropes = ("rope_scaling", "rope_parameters")
    return {
        name: value
        for name, value in config.values.items()
        if name not in kept and (name in ropes or not isinstance(value, Mapping))
    }


def _kept(config: Configuration) -> set[str]:
    """Fields that the class of a whole has itself."""
    return {*config.facts.get("defaults", {}), *config.facts.get("names", {})}


def _unreached(config: Configuration) -> list[str]:
    """Fields of the language model beside its missing part, where its class does not look for them.

    The code of the authors may (LLaVA's), but transformers builds the part of its defaults.
    """
    parts = config.facts.get("parts", {})
    nests: Iterable[str] = [name for name in NESTS if name in parts]
    nests = nests or (parts if is_made_of_parts(config) else ())
    if not nests or any(isinstance(config.values.get(name), Mapping) for name in nests):
        return []
    there = [name for name, value in config.values.items() if value is not None]
    if config.facts.get("flat"):
        return [name for name in there if name in config.facts.get("dropped", ())]
    told = {alias for names in ALIASES.values() for alias in names} | {"head_dim"}
    for name in nests:
        told |= Configuration({}, parts[name] or config.facts.get("usual", {}).get(name, "")).own
    told -= {*_kept(config), "pad_token_id"}
    return [
        name
        for name in there
        if name in told or (("rope_" in name or "rotary_" in name) and name not in _kept(config))
    ]


def is_made_of_parts(config: Configuration) -> bool:
    """Whether the class of a model has neither layers of its own nor those of a language model."""
    parts = {*config.facts.get("parts", {})}
    sizes = {*ALIASES["hidden_size"], *ALIASES["layers"]}
    return bool(parts) and not parts & {*NESTS} and not config.own & sizes


def strays(config: Configuration) -> tuple[tuple[str, ...], str]:
    """Fields beside a missing part where the class of a whole does not look, and what to say."""
    fields, whole = tuple(_unreached(config)), is_made_of_parts(config)
    parts = " or ".join(config.facts.get("parts", ())) if whole else "text_config"
    done = "left out" if whole or config.facts.get("flat") else "read as its own"
    return fields, (
        f"transformers does not look for fields beside a missing {parts} ({done} here): "
        f"{', '.join(fields)}"
    )


def warn_of_strays(config: object) -> None:
    """Say that fields of the language model stand where its class does not look for them."""
    for fields, words in map(strays, _nests(read_whole(config))):
        if fields:
            warn(words, stacklevel=3)


def _is_model(config: Configuration, name: str, value: Mapping[str, Any]) -> bool:
    """Whether an object is a part although the class of the whole does not list it as one."""
    named = value.get("model_type")
    if config.is_known or not name.endswith("_config"):
        return isinstance(named, str) and bool(known(spelled(named)))
    sized = any(alias in value for size in SIZES for alias in ALIASES[size])
    return sized or name in SENSES or (isinstance(named, str) and named != config.model_type)


def _type_of(config: Configuration, name: str, value: Mapping[str, Any]) -> str:
    """The type of a part: the class of the whole decides, then the file, then what is usual.

    Files of Qwen-VL, GLM-V and Idefics name the whole model in its part of images, and some give
    SigLIP where they mean its part of images.
    """
    if settled := config.facts.get("parts", {}).get(name):
        return settled
    usual = config.facts.get("usual", {}).get(name)
    usual = usual or (config.model_type if name in NESTS else "")
    named = str(value.get("model_type") or usual)
    within = known(spelled(named)).get("parts", {})
    return named if name in value or not within.get(name) else within[name]
