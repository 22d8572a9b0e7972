"""Caches of transformers, changed in place so that generation can go on."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.encodings.queries_keys.moving import move_keys
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule
from posenc.frequencies.given import Difference
from posenc.interop.caches.storage import (
    ALIKE,
    BY_LENGTH,
    Contents,
    KeyStorage,
    by_layer,
    measured_storage,
    run,
    spread,
)
from posenc.interop.configurations import read
from posenc.interop.fields import Configuration
from posenc.interop.layer_types import layer_types
from posenc.interop.oracle.encodings import Encoding, bare, points_of, with_frequencies
from posenc.interop.patching.patch import patch
from posenc.interop.patching.wanted import fitting
from posenc.interop.rotary_config import read_layers_of

SERVED = (
    "DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer",
    "LinearAttentionAndFullAttentionLayer", "LinearAttentionAndSlidingWindowAttentionLayer",
)  # fmt: skip
"""Layers of caches whose keys are plain tensors, in the order of their tokens."""

WITHOUT = ("LinearAttentionLayer", "DummyLayer")
"""Layers of caches that hold no keys."""

Cache = TypeVar("Cache")
Step = Callable[[int, Tensor, Encoding, Tensor], Tensor]
"""The number of a layer, its keys, their encoding and their positions, to other keys."""


def rerotate_cached_keys(
    cache: Cache,
    model: nn.Module,
    new: Rotary | Schedule | Mapping[str, Rotary | Schedule],
    *,
    positions: Int64[Tensor, "*rows seq"] | None = None,
) -> Cache:
    """Bring the keys of a cache to other frequencies, in place: as if ``new`` had encoded them.

    For a model whose context is extended while it generates: rotate the cache, patch the model with
    the same schedule, go on. The model is run over a few tokens first, to measure how it caches its
    keys, so call this before it is patched.

    Keys of the first layer are then what computing them again would give. Deeper keys and all
    values come from hidden states that attention under the old frequencies made.

    Args:
        cache: A ``DynamicCache`` or ``StaticCache``, with sliding layers or without.
        model: That made it.
        new: A schedule, a ``Rotary``, or one of them for each layer type; types that are left out
            stay.
        positions: Where the cached tokens stand, of all rows or of each; 0, 1, 2, … if not given.
            Rows with padding need them. Where a model has several axes, all of a token are this
            one, as those of text are: a cache with images must be computed again.

    Returns:
        The cache.

    Raises:
        TypeError: The cache is quantized, or of another kind that is not served.
        ValueError: ``new`` does not fit, the model keeps its keys in an unknown way or norms them
            after rotating, or tokens stand where its frequencies change. The cache is as it was.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> from posenc.frequencies import Geometric, Linear
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaModel(config).eval(), torch.arange(9)[None]
        >>> cache = model(ids, use_cache=True).past_key_values
        >>> longer = Linear(Geometric(16), factor=2.0)
        >>> _ = rerotate_cached_keys(cache, model, longer)
        >>> from posenc.interop.huggingface import patch
        >>> with patch(model, rotary=longer):
        ...     again = model(ids, use_cache=True).past_key_values
        >>> torch.allclose(cache.layers[0].keys, again.layers[0].keys, atol=1e-5)
        True
    """
    storage = measured_storage(model)
    targets = _targets(new, storage, read(model.config))

    def turned(index: int, keys: Tensor, encoding: Encoding, where: Tensor) -> Tensor:
        target = targets[index]
        if target is None:
            return keys
        between = with_frequencies(encoding, Difference(target, bare(encoding).frequencies))
        dtype = torch.promote_types(keys.dtype, torch.float32)
        return between.encode_keys(keys, between.table(where, dtype=dtype))

    for held, target in zip(storage, targets, strict=True):
        factor = held.encoding and bare(held.encoding).frequencies.attention_factor
        if factor is not None and target and factor != target.attention_factor:
            _check_factor(model, new, storage, turned)
            break
    return _changed(cache, storage, turned, positions)


def move_cached_keys(
    cache: Cache,
    model: nn.Module,
    to_positions: Int64[Tensor, "*rows seq"],
    *,
    from_positions: Int64[Tensor, "*rows seq"] | None = None,
) -> Cache:
    """Move the keys of a cache to other positions, in place, as ``move_keys`` does.

    To put a cached passage behind another, or to close the gap where tokens were dropped. Values
    stay, and so does what the tokens saw: see the page on reusing caches.

    Args:
        cache: As of ``rerotate_cached_keys``.
        model: That made it, with the frequencies that the keys have.
        to_positions: Where its tokens shall stand, ``[seq]`` or ``[batch, seq]``.
        from_positions: Where they stand; 0, 1, 2, … if not given. Needed from the second move on.

    Returns:
        The cache.

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaModel(config).eval(), torch.arange(9)[None]
        >>> cache = model(ids, use_cache=True).past_key_values
        >>> there = torch.arange(100, 109)
        >>> again = model(ids, position_ids=there[None], use_cache=True).past_key_values
        >>> moved = move_cached_keys(cache, model, there)
        >>> torch.allclose(moved.layers[0].keys, again.layers[0].keys, atol=1e-5)
        True
    """
    storage = measured_storage(model)
    for held in storage:
        _check_reach(held, _end_of(to_positions))

    def moved(index: int, keys: Tensor, encoding: Encoding, where: Tensor) -> Tensor:
        there = _positions_of(_layers(cache)[index], to_positions, keys.device)
        return move_keys(keys, where, points_of(encoding, there), encoding)

    return _changed(cache, storage, moved, from_positions)


def _changed(cache: Any, storage: list[KeyStorage], step: Step, positions: Tensor | None) -> Any:
    """Works out every layer, and only then changes the cache."""
    layers = _layers(cache)
    if len(layers) > len(storage):
        raise ValueError(f"The cache has {len(layers)} layers, and the model {len(storage)}.")
    made = []
    for index, (layer, held) in enumerate(zip(layers, storage, strict=False)):
        if held.encoding is None or not getattr(layer, "is_initialized", False):
            continue
        _check_reach(held, max(int(layer.get_seq_length()), _end_of(positions)))
        kept = getattr(layer, held.held)
        where = points_of(held.encoding, _positions_of(layer, positions, kept.device))
        keys = kept[..., : _filled(layer), :]
        made.append((layer, held.held, step(index, keys, held.encoding, where)))
    for layer, name, turned in made:
        kept = getattr(layer, name)
        if turned.shape == kept.shape and not type(layer).__name__.startswith("Static"):
            setattr(layer, name, turned)
            continue
        # Compiled graphs know the tensor by its address. What is written in place without
        # gradients would have those of the keys as they were.
        if kept.requires_grad and not torch.is_grad_enabled():
            kept = kept.detach()
            setattr(layer, name, kept)
        kept[..., : turned.shape[-2], :].copy_(turned)
    return cache


def _layers(cache: Any) -> list[Any]:
    layers = getattr(cache, "layers", None)
    if not isinstance(layers, list):
        raise TypeError(f"cache is a {type(cache).__name__}, not a cache of transformers.")
    for kind in (type(layer).__name__ for layer in layers):
        if kind not in SERVED + WITHOUT:
            raise TypeError(f"A layer of the cache is a {kind}, whose keys are no plain tensors.")
    return layers


def _filled(layer: Any) -> int:
    """How many of the places of a layer hold tokens."""
    return min(int(layer.get_seq_length()), layer.keys.shape[-2])


def _positions_of(layer: Any, given: Tensor | None, device: Any) -> Tensor:
    """Where the tokens stand that a layer still holds: of sliding ones, the last."""
    length = int(layer.get_seq_length())
    start = length - _filled(layer)
    if given is None:
        return torch.arange(start, length, device=device)
    if given.shape[-1] != length:
        raise ValueError(f"positions are given for {given.shape[-1]} of {length} tokens seen.")
    return given[..., start:].to(device)


def _end_of(positions: Tensor | None) -> int:
    """The position behind the last that is given."""
    return 0 if positions is None or not positions.numel() else int(positions.max()) + 1


def _check_reach(held: KeyStorage, reach: int) -> None:
    if held.rope_type in BY_LENGTH and held.trained_length and reach > held.trained_length:
        raise ValueError(
            f"Tokens of the cache reach position {reach - 1}, and frequencies of rope type "
            f"{held.rope_type!r} change beyond {held.trained_length} positions."
        )


def _targets(new: Any, storage: list[KeyStorage], config: Configuration) -> list[Schedule | None]:
    """The schedule that each layer shall have; None where it stays."""
    types = [*(layer_types(config) or ()), *[None] * len(storage)]
    names = {kind for kind, held in zip(types, storage, strict=False) if held.encoding and kind}
    if isinstance(new, Mapping) and (not new or new.keys() - names):
        raise ValueError(f"new is a mapping of {list(new)}; layers of type {names} rotate.")
    found: list[Schedule | None] = []
    for kind, layer in zip(
        types, by_layer(read_layers_of(config, None), len(storage)), strict=False
    ):
        wanted = new.get(kind) if isinstance(new, Mapping) else new
        if layer is None or wanted is None:
            found.append(None)
        else:
            found.append(bare(fitting(wanted, layer.encoding)).frequencies)
    return found


@torch.no_grad()
def _check_factor(model: nn.Module, new: Any, storage: list[KeyStorage], turned: Step) -> None:
    """Refuse another attention factor where keys are normed after they were rotated."""
    contents: Contents = {}
    cache, positions = run(model, contents)
    _changed(cache, storage, turned, positions)
    with patch(model, rotary=new):
        again, _ = run(model, contents, positions)
    for one, other, held in zip(cache.layers, again.layers, storage, strict=True):
        if held.encoding and spread(getattr(one, held.held), getattr(other, held.held)) > ALIKE:
            raise ValueError(
                f"{type(model).__name__} norms its keys after rotating, and takes the attention "
                f"factor of new away."
            )
