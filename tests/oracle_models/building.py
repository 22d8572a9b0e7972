"""Small models of every type that transformers registers: as wide where positions need it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedConfig

from posenc.interop import oracle

DEPTH = 6

OVERRIDES = json.loads(Path(__file__).with_name("overrides.json").read_text(encoding="utf-8"))
"""What some types cannot be built without, and what shows more of others."""


def config_of(model_type: str, **fields: Any) -> PreTrainedConfig:
    """The configuration of a small model: few layers and heads, as wide as they are by default."""
    kind, own = CONFIG_MAPPING[model_type], OVERRIDES.get(model_type, {})
    return kind(**{**oracle.shrunk(kind(**own), DEPTH), **own, **fields})


def built(config: PreTrainedConfig, *, meta: bool = False) -> nn.Module:
    """A model of a configuration, random but the same every time."""
    return oracle.built(config, device="meta" if meta else "cpu")


def types() -> Iterator[str]:
    return iter(sorted(CONFIG_MAPPING.keys()))


def those_without(fault: Callable[[str], str | None]) -> list[str]:
    """The types of which nothing goes wrong; of the others it says what."""
    good = []
    for model_type in types():
        try:
            why = fault(model_type)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        if why is None:
            good.append(model_type)
        print(f"{model_type}: {why}"[:150], flush=True)
    return good
