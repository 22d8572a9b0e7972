"""Every model type that transformers registers: what its class says where a file is silent.

``model_types.json`` is written by ``python -m tests.oracle_models --defaults`` from the classes of
the release that the tests are run with, and held against them by a test.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

SPELLINGS = {
    "RefinedWeb": "falcon",
    "RefinedWebModel": "falcon",
    "new": "gte",
    "grok-1": "grok1",
    "grok_1": "grok1",
    "donut_swin": "donut-swin",
    "kimi_k2": "deepseek_v3",
}
"""Names that files have, and the type that means the same."""

FALCONS_OLD_FIELDS = {
    "n_embed": "hidden_size",
    "n_head": "num_attention_heads",
    "n_layer": "num_hidden_layers",
    "n_head_kv": "num_kv_heads",
}
FIELDS = {
    "RefinedWeb": FALCONS_OLD_FIELDS,
    "RefinedWebModel": FALCONS_OLD_FIELDS,
    "bloom": {"n_embed": "hidden_size"},
}
"""Under such a name: what the file calls a field, and what the type of today calls it."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@cache
def _all() -> Mapping[str, Mapping[str, Any]]:
    text = files("posenc.interop").joinpath("model_types.json").read_text(encoding="utf-8")
    return MappingProxyType(json.loads(text))


def known(model_type: str) -> Mapping[str, Any]:
    """What transformers says of a type: defaults, names, parts, theta, derived, partly, sense;
    the usual types of parts that it leaves open, what is filled into a part, and whether fields
    beside a missing ``text_config`` reach it (flat), and which of them do not (dropped).

    Example:
        >>> known("llama")["defaults"]["num_attention_heads"], dict(known("ours"))
        (32, {})
    """
    return _all().get(model_type, NOTHING)


def names() -> tuple[str, ...]:
    """Every type, in alphabetical order."""
    return tuple(_all())


def respelled(model_type: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a file as the type that it means calls them; ``model_type`` as in the file.

    Raises:
        ValueError: A field is there under both names, with two values.

    Example:
        >>> respelled("RefinedWebModel", {"n_head": 71})
        {'num_attention_heads': 71}
    """
    fields, found = FIELDS.get(model_type, {}), {}
    for name, value in values.items():
        today = fields.get(name, name)
        if today != name and values.get(today, value) != value:
            raise ValueError(
                f"{name} is {value!r} and {today} is {values[today]!r}; they mean the same. "
                f"Correct the file."
            )
        found[today] = value
    return found if fields else values


def spelled(model_type: str, values: Mapping[str, Any]) -> str:
    """The name of a type as transformers has it.

    Example:
        >>> spelled("RefinedWebModel", {}), spelled("llama", {})
        ('falcon', 'llama')
    """
    if model_type in _all():
        return model_type
    if model_type in SPELLINGS:
        return SPELLINGS[model_type]
    dashed = model_type.replace("_", "-")
    return dashed if dashed in _all() else model_type
