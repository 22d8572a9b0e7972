"""The fields of one configuration, and what ``families.json`` knows of every model type.

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
``tokens scores patches axial axial_words none words notes decoder_notes verified``
    What else it does, in objects or in words, and whether it was held against a running model.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from math import isfinite
from typing import Any

from posenc.arguments import check_whole

ALIASES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "layers": (
        "num_hidden_layers", "n_layer", "n_layers", "num_layers", "layers", "num_attention_layers",
    ),
    "longest": ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len"),
}  # fmt: skip
"""What models call the same thing."""

ROPE = ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor")
"""Fields of which a class makes one rope dictionary, or one for each type of its layers."""


@dataclass(frozen=True)
class Configuration:
    """The configuration of one model."""

    values: Mapping[str, Any]  # its fields
    model_type: str  # as the file has it; ``""`` where it does not say

    @property
    def facts(self) -> Mapping[str, Any]:
        """What ``families.json`` has of this type."""
        return known(self.model_type)

    @property
    def own(self) -> set[str]:
        """Fields that the class of this type has."""
        return {n for each in ("defaults", "names", "derived") for n in self.facts.get(each, ())}

    @property
    def is_known(self) -> bool:
        """Whether transformers has a class of this type."""
        return "defaults" in self.facts

    @property
    def family(self) -> str:
        """The model type without the part that tells a text model from what it is a part of."""
        return self.model_type.replace("-", "_").removesuffix("_model").removesuffix("_text")

    def get(self, *names: str) -> Any:
        """The first of the fields that is there and not null; None without any."""
        field = self.field(*names)
        return None if field is None else self.values[field]

    def field(self, *names: str) -> str | None:
        """What the file calls that one of the fields; None without any."""
        spellings = self.facts.get("names", {})
        aliases = [alias for name in names for alias in ALIASES.get(name, (name,))]
        called = (each for alias in aliases for each in (alias, spellings.get(alias)))
        return next((each for each in called if self.values.get(each) is not None), None)

    def with_defaults(self) -> "Configuration":
        """The same, with what the class of this type has where the file says nothing."""
        config = self if has_own_class(self) else _filled(self)
        usual = respelled(self.model_type, self.facts.get("defaults", {}))
        absent = {name: value for name, value in usual.items() if name not in config.values}
        return replace(config, values={**absent, **config.values})

    def whole(self, *names: str) -> int:
        """The first of the fields that is there; one must be, and hold a whole number."""
        field = self.field(*names)
        if field is None:
            raise ValueError(f"The configuration has no {ALIASES.get(names[-1], names[-1:])[0]}.")
        value = self.values[field]
        if type(value) is not int or not 0 < value <= 1 << 20:  # no model is as wide or as deep
            raise ValueError(f"{field} is {value!r}; a whole number from 1 to 2^20 is needed.")
        return value

    def number(self, *names: str) -> float | None:
        """The first of the fields that is there; None without any."""
        field = self.field(*names)
        return None if field is None else finite(field, self.values[field])

    def dictionary(self, name: str) -> Mapping[str, Any]:
        """A field that holds a dictionary, or nothing."""
        value = self.get(name)
        if not isinstance(value, Mapping | None):
            raise ValueError(f"{name} is {value!r}; an object is needed.")
        return value or {}

    def listed(self, name: str, count: int | None = None) -> Sequence[Any] | None:
        """A field that lists the layers; None without one."""
        value = self.get(name)
        if not isinstance(value, list | tuple | None):
            raise ValueError(f"{name} is {value!r}; a list with one entry a layer is needed.")
        if value is not None and count is not None and len(value) != count:
            raise ValueError(f"{name} has {len(value)} entries for {count} layers.")
        return value


def _filled(config: Configuration) -> Configuration:
    """With what only the class in transformers makes of a file.

    Classes whose layers differ mix a dictionary by layer type with what stands beside it, each in
    a way of its own.
    """
    given = [name for name in ROPE if config.get(name) is not None]
    needed = [names[0] for names in config.facts.get("needs", ()) if not config.get(*names)]
    if "by_type" in config.facts:
        nested = [x for x in config.dictionary(ROPE[0]).values() if isinstance(x, Mapping)]
        beside = bool({*ROPE[1:]} & {*given})
        partial = nested and (beside or any("rope_theta" not in each for each in nested))
        if partial or {*ROPE[1:3]} < {*given}:
            needed.append("rope_parameters")
    if not needed:
        return config
    try:
        from transformers import CONFIG_MAPPING
    except ImportError:
        left = f"{config.model_type} leaves {', '.join(needed)} to its class"
        raise ValueError(f"{left}: install transformers, or write it down.") from None
    try:
        made = CONFIG_MAPPING[config.model_type].from_dict(deepcopy(dict(config.values))).to_dict()
    except Exception as error:  # whatever a class raises of its fields
        raise ValueError(f"{config.model_type} takes no such fields: {error}") from None
    kept = () if "rope_parameters" in needed else given
    made = {name: value for name, value in made.items() if value is not None and name not in kept}
    return replace(config, values={**config.values, **made})


def check_length(length: int | None) -> None:
    """Refuse a length of sequences that is no number of tokens; None: it is not told."""
    if length is not None:
        check_whole(length=length)


def finite(name: str, value: object) -> float:
    """``value`` if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"{name} is {value!r}; a finite number is needed.")
    return value


def has_own_class(config: Configuration) -> bool:
    """Whether a file names a class of its own, whatever ``model_type`` it has."""
    named = config.values.get("auto_map")
    return isinstance(named, Mapping) and any(str(name).startswith("AutoModel") for name in named)


# What is known of model types ---------------------------------------------------------------------


@cache
def _file() -> Mapping[str, Any]:
    return json.loads(files("posenc.interop").joinpath("families.json").read_text("utf-8"))


def known(model_type: str) -> Mapping[str, Any]:
    """What is known of a type; nothing of others."""
    return _file()["types"].get(model_type, {})


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
