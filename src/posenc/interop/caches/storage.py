"""Where the rotated keys of a layer lie in its cache: by a table of families, or by measuring."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import product
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.moving import move_keys
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.changes import in_evaluation
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.oracle import inputs_of
from posenc.interop.oracle.encodings import Encoding, on_axes_of, points_of
from posenc.interop.rope_layers import latent_width
from posenc.interop.rotary_config import RotaryLayer, read_layers_of
from posenc.numerics.pairing import Pairing

Held = Literal["keys", "values"]

LONGEST = 100
"""Positions stay below it: near enough for float32."""

ALIKE = 2e-3
"""Share by which keys may differ: angles of models are float32, and those of bfloat16 coarser."""


@dataclass(frozen=True)
class KeyStorage:
    """What one layer caches of its rotated keys."""

    held: Held  #: in which of its two tensors
    #: by which they are rotated, for the channels of that tensor as they lie there; None without
    encoding: Encoding | None
    rope_type: str = "default"  #: as the configuration names it
    trained_length: int | None = None  #: positions before any extension


def key_storage(config: Any) -> tuple[KeyStorage, ...]:
    """How each layer of a configuration caches its keys, if its model type was measured.

    Example:
        >>> deepseek = key_storage({"model_type": "deepseek_v3", "num_hidden_layers": 1})[0]
        >>> deepseek.held, deepseek.encoding.pairing
        ('values', 'half')
    """
    known = read(config, warns=True)
    if known.model_type not in measured_types():
        raise ValueError(f"How {known.model_type!r} caches its keys was not measured.")
    return tuple(by_table(known, layer) for layer in read_layers_of(known, None))


def by_table(config: Configuration, layer: RotaryLayer | None) -> KeyStorage:
    """How a layer caches its keys, by what its configuration says."""
    # Latent attention: keys are the latents, and values the one rotated key that all heads share.
    # All but DeepSeek-V2 hand its pairs back as i and i + width/2.
    latent = latent_width(config) is not None
    held: Held = "values" if latent else "keys"
    if layer is None:
        return KeyStorage(held, None)
    reorders, rotary = latent and config.model_type != "deepseek_v2", layer.rotary
    width = rotary.rotated_dim if latent else rotary.head_dim
    return _storage(layer, held, "half" if reorders else rotary.pairing, width)


@cache
def measured_types() -> frozenset[str]:
    """The types that were measured: ``python -m tests.oracle_models.caching`` writes them."""
    text = files("posenc.interop.caches").joinpath("measured.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def _storage(layer: RotaryLayer, held: Held, pairing: Pairing, width: int) -> KeyStorage:
    """Of what is cached: whole heads, or their rotated channels alone."""
    rotary, rope = layer.rotary, layer.rope
    place = rotary.rotated if width > rotary.rotated_dim else "prefix"
    made = Rotary(rotary.frequencies, head_dim=width, pairing=pairing, rotated=place)
    return KeyStorage(held, on_axes_of(layer.encoding, made), rope.kind, rope.trained_length)


@torch.no_grad()
def measured_storage(model: nn.Module) -> list[KeyStorage]:
    """How each cached layer keeps its keys, found by a run over equal tokens.

    Their contents are alike at all positions, so keys that are moved to one position must be alike
    too: under one way of keeping them, and no other.
    """
    cache, positions = run(model)
    layers = by_layer(read_layers_of(read(model.config)), len(cache.layers))
    found = []
    for index, (kept, layer) in enumerate(zip(cache.layers, layers, strict=True)):
        if layer is None or not isinstance(getattr(kept, "keys", None), Tensor):
            found.append(KeyStorage("keys", None))
            continue
        widths = {layer.rotary.head_dim, layer.rotary.rotated_dim}
        ways = [
            _storage(layer, held, pairing, width)
            for held, pairing in product(get_args(Held), get_args(Pairing))
            if (width := getattr(kept, held).shape[-1]) in widths
        ]
        fitting = [each for each in ways if _fits(each, kept, positions)]
        if len(fitting) != 1:
            kind = type(model).__name__
            raise ValueError(f"Layer {index} of {kind} caches keys in no manner that is known.")
        found += fitting
    return found


def by_layer(layers: Sequence[RotaryLayer | None], count: int) -> Sequence[RotaryLayer | None]:
    """The layer of each cached one: where some keep two, all must be alike."""
    alike = len({*map(id, layers)}) == 1
    return [layers[0]] * count if alike else layers[:count]


def _fits(storage: KeyStorage, layer: Any, positions: Tensor) -> bool:
    """Whether keys at these positions, moved to the first of them, are all alike."""
    encoding: Any = storage.encoding
    kept = getattr(layer, storage.held)[:1].double()
    positions = positions[-kept.shape[-2] :]
    if kept.shape[-2] != len(positions) or kept.shape[-2] < 2:
        return False
    start = points_of(encoding, positions)
    moved = move_keys(kept, start, start[:1].expand_as(start), encoding)
    return spread(moved) < ALIKE < spread(kept)


def spread(x: Tensor, of: Tensor | None = None) -> float:
    """How far rows differ from others, or from the first of them, as a share of the largest."""
    return float((x - (x[..., :1, :] if of is None else of)).abs().max() / x.abs().max())


@contextmanager
def equal_contents(model: nn.Module) -> Iterator[None]:
    """Inside the block, every layer is given its first token at all places.

    Sinks, states and convolutions make deeper layers see how many tokens came before, though all
    tokens are the same one.
    """

    def first(given: Any) -> Any:
        hidden = isinstance(given, Tensor) and given.ndim == 3 and given.is_floating_point()
        return given[:, :1].expand_as(given) if hidden else given

    def hook(_: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict]:
        named = {name: first(x) for name, x in kwargs.items() if name == "hidden_states"}
        return (*map(first, args[:1]), *args[1:]), {**kwargs, **named}

    with ExitStack() as hooks:
        for module in model.modules():
            if hasattr(module, "layer_idx"):
                hooks.enter_context(module.register_forward_pre_hook(hook, with_kwargs=True))
        yield


def run(model: nn.Module, positions: Tensor | None = None) -> tuple[Any, Tensor]:
    """A cache over a few equal tokens, and where these stand."""
    given, positions = inputs_of(model, longest=LONGEST, positions=positions)
    given |= {"input_ids": torch.full_like(given["input_ids"], 5), "use_cache": True}
    with torch.no_grad(), equal_contents(model), in_evaluation(model):
        held = model(**given).past_key_values
    return held, positions.to(given["input_ids"].device)
