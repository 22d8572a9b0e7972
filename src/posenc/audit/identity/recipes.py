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
    (recipes.llama2, {}),
    (recipes.llama3, {}),
    (recipes.mistral, {}),
    (recipes.qwen2, {}),
    (recipes.qwen3, {}),
    (recipes.qwen3, {"base": 5e6}),
    (recipes.gpt_neox, {}),
    (recipes.gptj, {"head_dim": 256}),
    (recipes.cohere, {}),
    (recipes.cohere, {"base": 75e6}),
    (recipes.deepseek_v3, {}),
    (recipes.phi3, {}),
    (recipes.gpt_oss, {}),
)
"""Models whose layers are all alike, with what they were published with besides their defaults.

At another width GPT-J's 64 channels are no longer a quarter of a head, which nobody has."""

BY_LAYER: tuple[tuple[Recipe, dict[str, Any]], ...] = (
    (recipes.gemma3, {}),
    (recipes.modernbert, {}),
    (recipes.smollm3, {}),
    (recipes.llama4, {}),
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
        >>> from posenc.frequencies import Geometric, Linear, Llama3
        >>> of_rotary(Rotary(Llama3(Geometric(128, 500_000), 8)))
        'posenc.recipes.llama3(factor=8.0)'
        >>> of_rotary(Rotary(128, base=1e6))
        'posenc.recipes.mistral(), qwen2() and qwen3()'
        >>> of_rotary(Rotary(Linear(Geometric(256, 1e6), 8)))
        'posenc.recipes.gemma3()[5]'
        >>> of_rotary(Rotary(128, base=1234.0))
        ''
    """
    factor = getattr(ours.frequencies, "factor", None)
    sizes = ours.head_dim, None if factor is None else float(factor)
    for published in (_alike, _by_layer):
        found = [call for call in published(*sizes) if call.rotation == _rotation(ours)]
        if found:
            fewest = min(found, key=lambda call: len(call.arguments)).arguments
            # of a width that none of them was published with, one name is enough
            most = 1 if "head_dim" in fewest else MOST
            return _joined([call.text for call in found if call.arguments == fewest][:most])
    return ""


@cache
def _alike(head_dim: int, factor: float | None) -> list[Call]:
    return [call for each in ALIKE for call in _calls(*each, head_dim, factor)]


@cache
def _by_layer(head_dim: int, factor: float | None) -> list[Call]:
    return [call for each in BY_LAYER for call in _calls(*each, head_dim, factor)]


def _calls(
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
    text = f"{recipe.__name__}({', '.join(told)})"
    if isinstance(made, Positional):
        yield Call(text, tuple(said), _rotation(made.queries_keys[0]))
        return
    seen = []
    for index, layer in enumerate(made):
        rotation = _rotation(layer.queries_keys[0]) if layer.queries_keys else ()
        if rotation and rotation not in seen:
            seen.append(rotation)
            yield Call(f"{text}[{index}]", tuple(said), rotation)


def _rotation(encoding: Any) -> tuple[Any, ...]:
    if not isinstance(encoding, Rotary):
        return ()
    return encoding.frequencies, encoding.head_dim, encoding.pairing, encoding.rotated


def of_sinusoidal(ours: Sinusoidal, scale: float | None) -> str:
    """The recipe that adds so to embeddings times ``scale``, as Python; empty if there is none."""
    for recipe in (recipes.vaswani2017, recipes.m2m100, recipes.whisper_encoder):
        theirs = recipe(ours.dim).tokens[0]
        wanted = ours.dim**0.5 if theirs.scale == "sqrt_dim" else 1.0
        same = all(
            getattr(theirs, name) == getattr(ours, name)
            for name in ("base", "convention", "offset")
        )
        if same and abs((scale or 1.0) / wanted - 1) < 1e-3:
            default = inspect.signature(recipe).parameters["dim"].default
            return f"posenc.recipes.{recipe.__name__}({'' if ours.dim == default else ours.dim})"
    return ""


def _joined(calls: list[str]) -> str:
    """"""
    *first, last = calls
    return "posenc.recipes." + (f"{', '.join(first)} and {last}" if first else last)
