"""The fields of one configuration, under the names that models have for the same thing."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from posenc.arguments import check_whole
from posenc.interop.families import known, respelled

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
    needed = [
        name
        for name, instead in config.facts.get("needs", {}).items()
        if not config.get(*(ROPE[:2] if name in ROPE else (name,)), *instead)
    ]
    if "by_type" in config.facts and (_is_partial(config) or {*ROPE[1:3]} < {*given}):
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


def _is_partial(config: Configuration) -> bool:
    """Whether dictionaries by layer type leave something to what stands beside them."""
    nested = [x for x in config.dictionary(ROPE[0]).values() if isinstance(x, Mapping)]
    beside = config.field(*ROPE[1:]) is not None
    return bool(nested) and (beside or any("rope_theta" not in each for each in nested))


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
