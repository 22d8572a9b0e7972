"""The recipes of well-known models that an encoding equals, as their users write them."""

import inspect
from functools import cache
from typing import Any

from posenc import recipes
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys import Rotary
from posenc.encodings.tokens import Sinusoidal

Published = tuple[str, dict[str, Any]]

ALIKE: tuple[Published, ...] = (
    ("llama2", {}), ("llama3", {}), ("mistral", {}), ("qwen2", {}), ("qwen3", {}),
    ("qwen3", {"base": 5e6}), ("gpt_neox", {}),
    ("gptj", {"head_dim": 256}),  # at another width 64 channels are no quarter of a head
    ("cohere", {}), ("cohere", {"base": 75e6}), ("deepseek_v3", {}), ("phi3", {}), ("gpt_oss", {}),
)  # fmt: skip
"""Models whose layers are all alike, with what they were published with besides their defaults."""

BY_LAYER: tuple[Published, ...] = (
    ("gemma3", {}), ("modernbert", {}), ("smollm3", {}), ("llama4", {}),
)  # fmt: skip
"""Models whose layers differ; the first layer of each kind is named."""


def of_rotary(ours: Rotary) -> str:
    """The recipes that rotate so, as Python; empty if there is none.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> of_rotary(Rotary(128, base=1e6))
        'posenc.recipes.mistral(), qwen2() and qwen3()'
        >>> of_rotary(Rotary(Linear(Geometric(256, 1e6), 8)))
        'posenc.recipes.gemma3()[5]'
    """
    for published in (ALIKE, BY_LAYER):
        if found := [call for each in published if (call := _call(*each, ours))]:
            fewest = min(said for said, _ in found)
            # of a width that none of them was published with, one name is enough
            *first, last = [text for said, text in found if said == fewest][: 1 if fewest else 3]
            return "posenc.recipes." + (f"{', '.join(first)} and {last}" if first else last)
    return ""


def _call(name: str, published: dict[str, Any], ours: Rotary) -> tuple[int, str] | None:
    """A recipe that rotates so at these sizes, and how many arguments it needs to say."""
    parameters = inspect.signature(getattr(recipes, name)).parameters
    usual = {each: parameter.default for each, parameter in parameters.items()}
    sizes = {"head_dim": ours.head_dim, "factor": getattr(ours.frequencies, "factor", None)}
    said = {
        each: value
        for each, value in (sizes | published).items()
        if each in usual and value not in (None, usual[each])
    }
    told = ", ".join(f"{n}={value}".removeprefix("head_dim=") for n, value in said.items())
    for index, layer in enumerate(_layers(name, **said)):
        names = "frequencies", "head_dim", "pairing", "rotated"
        if any(_alike(theirs, ours, *names) for theirs in layer.queries_keys):
            return len(said), f"{name}({told})" + f"[{index}]" * ((name, {}) in BY_LAYER)
    return None


@cache
def _layers(name: str, **said: Any) -> tuple[Positional, ...]:
    """The layers of a model; none where it has no such width."""
    try:
        made = getattr(recipes, name)(**said)
    except ValueError:
        return ()
    return (made,) if isinstance(made, Positional) else made


def _alike(theirs: object, ours: object, *names: str) -> bool:
    """Whether what stands under these names is equal."""
    return all(getattr(theirs, name, None) == getattr(ours, name) for name in names)


def of_sinusoidal(ours: Sinusoidal, scale: float | None) -> str:
    """The recipe that adds so to embeddings times ``scale``, as Python; empty if there is none."""
    for recipe in (recipes.vaswani2017, recipes.m2m100, recipes.whisper_encoder):
        theirs = recipe(ours.dim).tokens[0]
        wanted = ours.dim**0.5 if theirs.scale == "sqrt_dim" else 1.0
        same = _alike(theirs, ours, "base", "convention", "offset")
        if same and abs((scale or 1.0) / wanted - 1) < 1e-3:
            default = inspect.signature(recipe).parameters["dim"].default
            return f"posenc.recipes.{recipe.__name__}({'' if ours.dim == default else ours.dim})"
    return ""
