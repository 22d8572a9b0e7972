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
    beside a missing ``text_config`` reach it (flat), and which of them do not (dropped); and what a
    class makes of a field before it looks at another name of it, by that name (kept).

    Example:
        >>> known("llama")["defaults"]["num_attention_heads"], dict(known("ours"))
        (32, {})
    """
    return _all().get(model_type, NOTHING)


def names() -> tuple[str, ...]:
    """Every type, in alphabetical order."""
    return tuple(_all())


def respelled(model_type: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a file as an object of the type that it means calls them.

    ``model_type`` is as in the file. A class has names for some fields of others: ``hidden_size``
    for GPT-2's ``n_embd``. What it makes of a field before it looks at such a name stays what it
    is: T5 has as many layers in its decoder as ``num_layers`` says, whatever ``num_hidden_layers``.

    Raises:
        ValueError: A field is there under both names, with two values.

    Example:
        >>> respelled("RefinedWebModel", {"n_head": 71})
        {'num_attention_heads': 71}
        >>> respelled("t5", {"num_hidden_layers": 4})
        {'num_layers': 4, 'num_decoder_layers': 6}
    """
    facts = known(spelled(model_type, values))
    fields = {**facts.get("names", {}), **FIELDS.get(model_type, {})}
    found: dict[str, Any] = {}
    for name, value in values.items():
        today = fields.get(name, name)
        if today != name and None not in (value, values.get(today)) and values[today] != value:
            raise ValueError(
                f"{name} is {value!r} and {today} is {values[today]!r}; they mean the same. "
                f"Correct the file."
            )
        found[today] = found.get(today) if value is None else value
    for name, kept in facts.get("kept", {}).items():
        if values.get(name) is not None and values.get(fields[name]) is None:
            found |= {field: own for field, own in kept.items() if found.get(field) is None}
    return found


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
