"""What is known of every model type, kept in ``families.json``: its fields, and what they mean.

The file is written by ``python -m tests.oracle_models --write``, from the classes of transformers
and from small models of them that ran. A type has, as far as it differs from most:

``defaults names parts usual untyped flat dropped filled derived kept theta sense``
    What its class has by default, how it calls its fields, and what its parts are.
``pairing backwards sections scale temperature indexer refused refused_by rotates``
    Its rotation: pairs, direction, axes, scales of scores, and whether it can be read.
``by_type own unread by_length longest_if share partly share_inside share_needed``
    The fields of its bases, lengths and shares, where they are not the usual ones.
``rotary_dim head full_head_dim width``
    Those of its widths.
``layers listing nope nope_windowed ends_full one_by_one needs``
    Which layers are alike, and which fields only its class in transformers fills in.
``window switch slides halved window_words``
    Which layers slide, and by which fields.
``tokens scores patches axial axial_words none words note decoder_note verified``
    What else it does, in objects or in words, and whether it was held against a running model.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

NOTHING: Mapping[str, Any] = MappingProxyType({})


@cache
def _file() -> Mapping[str, Any]:
    text = files("posenc.interop").joinpath("families.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


def known(model_type: str) -> Mapping[str, Any]:
    """What is known of a type; nothing of others."""
    return _file()["types"].get(model_type, NOTHING)


def names() -> tuple[str, ...]:
    """Every type that transformers registers, in alphabetical order."""
    return tuple(name for name, facts in _file()["types"].items() if "defaults" in facts)


def respelled(model_type: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a file under the names that the class of its type has for them.

    What a class makes of a field before it looks at another name of it stays: T5 has as many layers
    in its decoder as ``num_layers`` says, whatever ``num_hidden_layers``.
    """
    facts = known(spelled(model_type))
    _, old = _file()["spellings"].get(model_type, ("", {}))
    fields = {**facts.get("names", {}), **old}
    found: dict[str, Any] = {}
    for name, value in values.items():
        today = fields.get(name, name)
        if today != name and None not in (value, values.get(today)) and values[today] != value:
            raise ValueError(f"{name} is {value!r} and {today} is {values[today]!r}; keep one.")
        found[today] = found.get(today) if value is None else value
    for name, kept in facts.get("kept", {}).items():
        if values.get(name) is not None and values.get(fields[name]) is None:
            found |= {field: own for field, own in kept.items() if found.get(field) is None}
    return found


def spelled(model_type: str) -> str:
    """The name of a type as transformers has it."""
    dashed = model_type.replace("_", "-")
    named, _ = _file()["spellings"].get(model_type, (model_type, {}))
    return next((name for name in (model_type, named, dashed) if name in _file()["types"]), named)


def diffusers() -> Mapping[str, Any]:
    """What is known of transformers in diffusers, by class: defaults, form of rotation, notes."""
    return _file()["diffusers"]
