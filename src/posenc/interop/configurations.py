"""Configurations of Hugging Face models: objects, dictionaries and files, and their parts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from warnings import warn

from posenc.interop.fields import ALIASES, Configuration, known, respelled, spelled

Config = Any | dict[str, Any] | str | Path
"""A PreTrainedConfig, a dictionary, or the path of a config.json."""

NESTS = ("text_config", "llm_config", "language_config", "thinker_config", "vlm_config")
"""Where a model of several modalities keeps the configuration of its language model."""

SENSES = ("vision_config", "audio_config")
"""Parts whatever they hold."""

ESSENTIAL = ("text_config", "vision_config")
"""Parts that a model has although its file leaves them out: those of the defaults of its class."""


def read(config: object, *, warns: bool = False) -> Configuration:
    """The configuration of the language model in ``config``: an object, a dictionary, or a path.

    Warns, if asked, of fields of that model where its class does not look for them.
    """
    found = _nests(read_whole(config))
    for fields, words in map(strays, found if warns else ()):
        if fields:
            warn(words, stacklevel=3)
    return found[-1].with_defaults()


def read_whole(config: object) -> Configuration:
    """All of a configuration, its parts still nested, and nothing filled in."""
    values: Any = config
    if hasattr(config, "to_dict"):
        values = config.to_dict()  # type: ignore[attr-defined]
    elif isinstance(config, str | Path):
        try:
            values = json.loads(Path(config).read_text(encoding="utf-8-sig"))
        except ValueError as error:
            raise ValueError(f"{config} is not JSON ({error}).") from None
    if not isinstance(values, Mapping):
        raise TypeError(f"config is a {type(values).__name__}; a path or a dictionary is needed.")
    named = values.get("model_type") or ""
    if not isinstance(named, str):
        raise ValueError(f"model_type is {named!r}; a name is needed.")
    return Configuration(respelled(named, values), spelled(named))


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
    facts, found = config.facts, {}
    types = facts.get("parts", {})
    for name, value in config.values.items():
        if not isinstance(value, Mapping) or not value:
            continue
        if name in types or name in NESTS or _is_model(config, name, value):
            kind = _type_of(config, name, value)
            filled = respelled(kind, facts.get("filled", {}).get(name, {}))
            found[name] = Configuration({**filled, **respelled(kind, value)}, spelled(kind))
    absent = not any(isinstance(config.values.get(name), Mapping) for name in types)
    for name, kind in types.items():
        beside = _beside(config) if name == "text_config" else {}
        if beside and facts.get("flat"):
            kind = kind or facts.get("usual", {}).get(name)
        if name not in found and kind and (absent or name in ESSENTIAL):
            found[name] = Configuration(respelled(kind, {**beside, "model_type": kind}), kind)
    return dict(sorted(found.items(), key=lambda each: (each[0] not in NESTS, each[0])))


def _beside(config: Configuration) -> dict[str, Any]:
    """Fields beside a missing ``text_config`` that are read as its own."""
    kept = {*config.facts.get("dropped", ())}
    if not config.facts.get("flat"):
        kept |= config.own - {*config.facts.get("derived", ())}
    ropes = ("rope_scaling", "rope_parameters")
    return {
        name: value
        for name, value in config.values.items()
        if name not in kept and (name in ropes or not isinstance(value, Mapping))
    }


def strays(config: Configuration) -> tuple[tuple[str, ...], str]:
    """Fields of the language model where the class of a whole does not look, and what to say.

    They stand beside its missing part. The code of the authors may read them (LLaVA's), but
    transformers builds the part of its defaults.
    """
    facts, nests = config.facts, {*NESTS} & {*config.facts.get("parts", {})}
    if not nests or any(isinstance(config.values.get(name), Mapping) for name in nests):
        return (), ""
    told, done = {*facts.get("dropped", ())}, "left out"
    if not facts.get("flat"):
        kinds = [facts["parts"][name] or facts.get("usual", {}).get(name, "") for name in nests]
        owned = [Configuration({}, kind).own for kind in kinds]
        rope = {name for name in config.values if "rope_" in name or "rotary_" in name}
        told, done = {"head_dim"}.union(rope, *ALIASES.values(), *owned), "read as its own"
        told -= config.own - {*facts.get("derived", ())} | {"pad_token_id"}
    found = tuple(n for n, value in config.values.items() if n in told and value is not None)
    words = f"transformers does not look for fields beside a missing text_config ({done} here)"
    return found, f"{words}: {', '.join(found)}"


def _is_model(config: Configuration, name: str, value: Mapping[str, Any]) -> bool:
    """Whether an object is a part although the class of the whole does not list it as one."""
    named = value.get("model_type")
    if config.is_known or not name.endswith("_config"):
        return isinstance(named, str) and bool(known(spelled(named)))
    sized = any(
        each in value for size in ("layers", "hidden_size", "heads") for each in ALIASES[size]
    )
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
