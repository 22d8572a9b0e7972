"""Caches of transformers, changed in place so that generation can go on."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from posenc.encodings.queries_keys.moving import move_keys
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import Schedule, schedule_key
from posenc.frequencies.given import Difference
from posenc.interop.caches.storage import (
    Encoding,
    KeyStorage,
    by_layer,
    factor_reaches,
    measured_storage,
    on_axes,
)
from posenc.interop.configurations import Configuration, read
from posenc.interop.layer_types import layer_types
from posenc.interop.patching.rotations import facts_of
from posenc.interop.rotary_config import RotaryLayer, read_layers_of

SERVED = (
    "DynamicLayer",
    "DynamicSlidingWindowLayer",
    "StaticLayer",
    "StaticSlidingWindowLayer",
    "LinearAttentionAndFullAttentionLayer",
    "LinearAttentionAndSlidingWindowAttentionLayer",
)
"""Layers of caches whose keys are plain tensors, in the order of their tokens."""

WITHOUT = ("LinearAttentionLayer", "DummyLayer")
"""Layers of caches that hold no keys."""

BY_LENGTH = ("dynamic", "longrope")
"""Rope types whose frequencies transformers changes while a sequence grows."""

Cache = TypeVar("Cache")
Step = Callable[[Tensor, Encoding, Tensor], Tensor]
"""Keys, their encoding and their positions, to other keys."""


def rerotate_cached_keys(
    cache: Cache,
    model: nn.Module,
    new: Rotary | Schedule | Mapping[str, Rotary | Schedule],
    *,
    positions: Int64[Tensor, "*rows seq"] | None = None,
) -> Cache:
    """Bring the keys of a cache to other frequencies, in place: as if ``new`` had encoded them.

    For a model whose context is extended while it generates: rotate the cache, patch the model with
    the same schedule, go on. The phases are subtracted as integers, and attention factors are
    exchanged. How the model caches its keys is measured by running it over a few tokens, in the
    state in which it made the cache: so before it is patched.

    Keys of the first layer are then what computing them again would give. Those of deeper layers,
    and all values, come from hidden states that attention under the old frequencies made.

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
        ValueError: The manner in which the model keeps keys is not known, tokens stand where its
            frequencies change with the length, ``new`` does not fit, or it has another attention
            factor and the model norms its keys after rotating, which takes that away. The cache is
            as it was.

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
    _check_factors(model, storage, targets)

    def turned(index: int) -> Step:
        def step(keys: Tensor, encoding: Encoding, where: Tensor) -> Tensor:
            target = targets[index]
            if target is None:
                return keys
            between = _with_frequencies(encoding, Difference(target, _rotary(encoding).frequencies))
            dtype = torch.promote_types(keys.dtype, torch.float32)
            return between.encode_keys(keys, between.table(where, dtype=dtype))

        return step

    changed = _changed(cache, storage, turned, positions)
    for layer, target in zip(_layers(cache), targets, strict=False):
        if target is not None:
            layer.posenc_schedule = schedule_key(target)
    return changed


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
        model: That made it.
        to_positions: Where its tokens shall stand, ``[seq]`` or ``[batch, seq]``.
        from_positions: Where they stand; 0, 1, 2, … if not given. Needed from the second move on.

    Returns:
        The cache.

    Raises:
        TypeError, ValueError: As of ``rerotate_cached_keys``; or keys were moved before and nothing
            says where to, or rotated to frequencies that the model does not have.

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

    def moved(index: int) -> Step:
        def step(keys: Tensor, encoding: Encoding, where: Tensor) -> Tensor:
            there = _stored_columns(to_positions.to(keys.device), where, cache.layers[index])  # type: ignore[attr-defined]
            return move_keys(keys, where, on_axes(there, encoding), encoding)

        return step

    changed = _changed(cache, storage, moved, from_positions)
    for layer in _layers(cache):
        layer.posenc_moved = True
    return changed


def _changed(
    cache: Any,
    storage: list[KeyStorage],
    steps: Callable[[int], Step],
    positions: Tensor | None,
) -> Any:
    """Works out every layer, and only then changes the cache."""
    layers = _layers(cache)
    if len(layers) > len(storage):
        raise ValueError(
            f"The cache has {len(layers)} layers, and the model caches {len(storage)}. Pass the "
            f"model that made it."
        )
    made = []
    for index, layer in enumerate(layers):
        held = storage[index]
        if held.encoding is None or not getattr(layer, "is_initialized", False):
            continue
        count = _filled(layer)
        _check_history(layer, held, positions)
        _check_reach(held, max(int(layer.get_seq_length()), _end_of(positions)))
        kept = getattr(layer, held.held)
        where = _positions_of(layer, count, positions, kept.device)
        keys = kept[..., :count, :]
        turned = steps(index)(keys, held.encoding, on_axes(where, held.encoding))
        made.append((layer, held.held, count, turned))
    for layer, name, count, turned in made:
        kept = getattr(layer, name)
        if count == kept.shape[-2] and not type(layer).__name__.startswith("Static"):
            setattr(layer, name, turned)
        else:  # compiled graphs know the tensor by its address
            # What is written in place without gradients would have those of the keys as they were.
            if kept.requires_grad and not torch.is_grad_enabled():
                kept = kept.detach()
                setattr(layer, name, kept)
            kept[..., :count, :].copy_(turned)
    return cache


def _layers(cache: Any) -> list[Any]:
    layers = getattr(cache, "layers", None)
    if layers is None or not isinstance(layers, list):
        raise TypeError(
            f"cache is a {type(cache).__name__}; pass a DynamicCache or StaticCache of "
            f"transformers. Of tensors of keys there are move_keys and rerotate."
        )
    for layer in layers:
        name = type(layer).__name__
        if name not in SERVED + WITHOUT:
            raise TypeError(
                f"A layer of the cache is a {name}; those that are served are "
                f"{', '.join(SERVED)}. Quantized keys would be rounded once more, and indexers "
                f"keep keys of another rotation: compute the cache again."
            )
    return layers


def _filled(layer: Any) -> int:
    """How many of the places of a layer hold tokens."""
    return min(int(layer.get_seq_length()), layer.keys.shape[-2])


def _positions_of(layer: Any, count: int, given: Tensor | None, device: Any) -> Tensor:
    """Where the tokens stand that a layer still holds: of sliding ones, the last."""
    length = int(layer.get_seq_length())
    if given is None:
        return torch.arange(length - count, length, device=device)
    if given.shape[-1] != length:
        raise ValueError(
            f"positions are given for {given.shape[-1]} tokens; the cache has seen {length}. Give "
            f"one a token, those that slid out of windows included."
        )
    return given[..., length - count :].to(device)


def _stored_columns(given: Tensor, where: Tensor, layer: Any) -> Tensor:
    return _positions_of(layer, _filled(layer), given, where.device)


def _check_history(layer: Any, held: KeyStorage, positions: Tensor | None) -> None:
    """What was done to a layer is noted on it: keys do not show where they stand, nor how fast."""
    if positions is None and getattr(layer, "posenc_moved", False):
        raise ValueError(
            "The keys of this cache were moved, and stand no more at 0, 1, 2, …. Say where: "
            "from_positions= of move_cached_keys, positions= of rerotate_cached_keys."
        )
    schedule = getattr(layer, "posenc_schedule", None)
    if schedule is not None and schedule != schedule_key(_rotary(held.encoding).frequencies):  # type: ignore[arg-type]
        raise ValueError(
            "The keys of this cache were rotated to other frequencies than the model has. Patch "
            "the model with the same schedule first, then move or rotate them again."
        )


def _end_of(positions: Tensor | None) -> int:
    """The position behind the last that is given."""
    return 0 if positions is None or not positions.numel() else int(positions.max()) + 1


def _check_reach(held: KeyStorage, reach: int) -> None:
    if held.rope_type in BY_LENGTH and held.trained_length and reach > held.trained_length:
        raise ValueError(
            f"Tokens of the cache reach position {reach - 1} under rope type {held.rope_type!r}, "
            f"whose frequencies transformers changes beyond {held.trained_length} positions: its "
            f"keys may have two kinds. Compute it again."
        )


def _targets(new: Any, storage: list[KeyStorage], config: Configuration) -> list[Schedule | None]:
    """The schedule that each layer shall have; None where it stays."""
    types = layer_types(config) or ()
    told = [types[index] if index < len(types) else None for index in range(len(storage))]
    if isinstance(new, Mapping):
        _check_types(new, {kind for kind, held in zip(told, storage, strict=True) if held.encoding})
    own = by_layer(read_layers_of(config, None), len(storage))
    return [
        None if held.encoding is None else _target(new, held, layer, kind)
        for held, layer, kind in zip(storage, own, told, strict=True)
    ]


def _check_factors(
    model: nn.Module, storage: list[KeyStorage], targets: list[Schedule | None]
) -> None:
    """Refuse another attention factor where it would not reach the keys.

    Raises:
        ValueError: It would not.
    """
    factors = [
        (_rotary(held.encoding).frequencies.attention_factor, target.attention_factor)
        if held.encoding and target
        else (1.0, 1.0)
        for held, target in zip(storage, targets, strict=True)
    ]
    if all(before == after for before, after in factors):
        return
    reaches = factor_reaches(model, storage)
    for index, (before, after) in enumerate(factors):
        if before != after and not reaches[index]:
            raise ValueError(
                f"new has the attention factor {after:.6g}, the model {before:.6g}; what cosines "
                f"and sines are multiplied with does not reach the keys that layer {index} of "
                f"{type(model).__name__} caches: it norms them after rotating, or makes its angles "
                f"in a place that is not known here. Compute the cache again, or give a schedule "
                f"with the model's factor."
            )


def _check_types(new: Mapping[Any, Any], known: set[str | None]) -> None:
    names = {kind for kind in known if kind is not None}
    if new and new.keys() <= names:
        return
    has = f"are of type {', '.join(sorted(names))}" if names else "are of no types"
    raise ValueError(
        f"new is a mapping of {', '.join(map(repr, new)) or 'nothing'}; the layers of this model "
        f"that rotate {has}. Use these names, or give one schedule for all layers."
    )


def _target(
    new: Any, held: KeyStorage, layer: RotaryLayer | None, layer_type: str | None
) -> Schedule | None:
    if isinstance(new, Mapping):
        if layer_type not in new:
            return None
        new = new[layer_type]
    schedule = new.frequencies if isinstance(new, Rotary) else new
    if not isinstance(schedule, Schedule):
        raise TypeError(
            f"new is a {type(new).__name__}; it must be a Rotary, a schedule, or a mapping from "
            f"layer types to one."
        )
    assert held.encoding is not None
    pairs = len(_rotary(held.encoding).frequencies)
    if len(schedule) != pairs:
        raise ValueError(
            f"new has {len(schedule)} frequencies; this model rotates {pairs} pairs. Build it for "
            f"a width of {2 * pairs}."
        )
    if isinstance(new, Rotary) and layer and facts_of(new)[:4] != facts_of(layer.rotary)[:4]:
        raise ValueError(
            f"new is {new}, and this model has {layer.rotary}: other pairs of channels turn. Give "
            f"a schedule, or that one's with_frequencies(…)."
        )
    return schedule


def _rotary(encoding: Encoding) -> Rotary:
    return encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding


def _with_frequencies(encoding: Encoding, schedule: Schedule) -> Encoding:
    rotary = _rotary(encoding).with_frequencies(schedule)
    if isinstance(encoding, MultimodalRotary):
        return MultimodalRotary(rotary, encoding.sections, encoding.arrangement)  # type: ignore[arg-type]
    return rotary
