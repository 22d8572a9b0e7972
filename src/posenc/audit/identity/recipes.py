"""The recipes of well-known models that an encoding equals, as their users write them."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from posenc import recipes
from posenc.encodings.positional import Positional
from posenc.encodings.queries_keys import Rotary
from posenc.encodings.tokens import Sinusoidal

Recipe = Callable[..., Positional | tuple[Positional, ...]]

ALIKE: tuple[tuple[Recipe, dict[str, Any]], ...] = (
    *((getattr(recipes, name), {}) for name in ("llama2", "llama3", "mistral", "qwen2", "qwen3")),
    (recipes.qwen3, {"base": 5e6}),
    (recipes.gpt_neox, {}),
    (recipes.gptj, {"head_dim": 256}),  # at another width 64 channels are no quarter of a head
    (recipes.cohere, {}),
    (recipes.cohere, {"base": 75e6}),
    *((getattr(recipes, name), {}) for name in ("deepseek_v3", "phi3", "gpt_oss")),
)
"""Models whose layers are all alike, with what they were published with besides their defaults."""

BY_LAYER: tuple[tuple[Recipe, dict[str, Any]], ...] = tuple(
    (getattr(recipes, name), {}) for name in ("gemma3", "modernbert", "smollm3", "llama4")
)
"""Models whose layers differ; the first layer of each kind is named."""

MOST = 3
"""How many recipes are named that mean the same."""


class Call(NamedTuple):
    """A call of a recipe, the arguments that it says, and what tells its rotation from others."""

    text: str
    arguments: tuple[str, ...]
    rotation: tuple[Any, ...]


def of_rotary(ours: Rotary) -> str:
    """The recipes that rotate so, as Python; empty if there is none.

    Example:
        >>> from posenc.frequencies import Geometric, Linear
        >>> of_rotary(Rotary(128, base=1e6))
        'posenc.recipes.mistral(), qwen2() and qwen3()'
        >>> of_rotary(Rotary(Linear(Geometric(256, 1e6), 8)))
        'posenc.recipes.gemma3()[5]'
    """
    factor = getattr(ours.frequencies, "factor", None)
    for published in (ALIKE, BY_LAYER):
        calls = _calls(published is ALIKE, ours.head_dim, None if factor is None else float(factor))
        found = [call for call in calls if call.rotation == _rotation(ours)]
        if found:
            fewest = min(found, key=lambda call: len(call.arguments)).arguments
            # of a width that none of them was published with, one name is enough
            most = 1 if "head_dim" in fewest else MOST
            *first, last = [call.text for call in found if call.arguments == fewest][:most]
            return "posenc.recipes." + (f"{', '.join(first)} and {last}" if first else last)
    return ""


@cache
def _calls(alike: bool, head_dim: int, factor: float | None) -> list[Call]:
    published = ALIKE if alike else BY_LAYER
    return [call for each in published for call in _calls_of(*each, head_dim, factor)]


def _calls_of(
    recipe: Recipe, published: dict[str, Any], head_dim: int, factor: float | None
) -> Iterator[Call]:
    """A recipe at these sizes, by the arguments that are not its defaults."""
    known = inspect.signature(recipe).parameters
    said: dict[str, Any] = {"head_dim": head_dim, "factor": factor, **published}
    said = {
        name: value
        for name, value in said.items()
        if name in known and value is not None and value != known[name].default
    }
    told = [f"{'' if name == 'head_dim' else f'{name}='}{value}" for name, value in said.items()]
    try:
        made = recipe(**said)
    except ValueError:  # it has no such width
        return
    text, seen = f"{recipe.__name__}({', '.join(told)})", []
    for index, layer in enumerate((made,) if isinstance(made, Positional) else made):
        rotation = _rotation(layer.queries_keys[0]) if layer.queries_keys else ()
        if rotation and rotation not in seen:
            seen.append(rotation)
            which = "" if isinstance(made, Positional) else f"[{index}]"
            yield Call(text + which, tuple(said), rotation)


def _rotation(encoding: Any) -> tuple[Any, ...]:
    if not isinstance(encoding, Rotary):
        return ()
    return encoding.frequencies, encoding.head_dim, encoding.pairing, encoding.rotated


def of_sinusoidal(ours: Sinusoidal, scale: float | None) -> str:
    """The recipe that adds so to embeddings times ``scale``, as Python; empty if there is none."""
    for recipe in (recipes.vaswani2017, recipes.m2m100, recipes.whisper_encoder):
        theirs = recipe(ours.dim).tokens[0]
        wanted = ours.dim**0.5 if theirs.scale == "sqrt_dim" else 1.0
        names = ("base", "convention", "offset")
        same = all(getattr(theirs, name) == getattr(ours, name) for name in names)
        if same and abs((scale or 1.0) / wanted - 1) < 1e-3:
            default = inspect.signature(recipe).parameters["dim"].default
            return f"posenc.recipes.{recipe.__name__}({'' if ours.dim == default else ours.dim})"
    return ""
