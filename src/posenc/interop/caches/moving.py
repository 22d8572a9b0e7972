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
from posenc.interop.caches.storage import ALIKE, KeyStorage, by_layer, measured_storage, run, spread
from posenc.interop.configurations import read
from posenc.interop.oracle.encodings import Encoding, bare, points_of, with_frequencies
from posenc.interop.patching.admission import GROWING
from posenc.interop.patching.patch import patch
from posenc.interop.patching.wanted import fitting
from posenc.interop.rotary_config import read_layers_of

SERVED = (
    "DynamicLayer", "DynamicSlidingWindowLayer", "StaticLayer", "StaticSlidingWindowLayer",
    "LinearAttentionAndFullAttentionLayer", "LinearAttentionAndSlidingWindowAttentionLayer",
    "LinearAttentionLayer", "DummyLayer",
)  # fmt: skip
"""Layers of caches whose keys are plain tensors in the order of their tokens, or that have none."""

Cache = TypeVar("Cache")
Step = Callable[..., Tensor]
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
    keys, so call this before it is patched. After an error the cache is as it was.

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

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> from posenc.frequencies import Geometric, Linear
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaModel(config).eval(), torch.arange(9)[None]
        >>> cache = model(ids, use_cache=True).past_key_values
        >>> cache = rerotate_cached_keys(cache, model, Linear(Geometric(16), factor=2.0))
    """
    storage = measured_storage(model)
    targets = _targets(new, model, storage)

    def turned(index: int, keys: Tensor, encoding: Encoding, where: Tensor) -> Tensor:
        if (target := targets[index]) is None:
            return keys
        between = with_frequencies(encoding, Difference(target, bare(encoding).frequencies))
        dtype = torch.promote_types(keys.dtype, torch.float32)
        return between.encode_keys(keys, between.table(where, dtype=dtype))

    for index, (held, target) in enumerate(zip(storage, targets, strict=True)):
        own = held.encoding and bare(held.encoding).frequencies
        if own and target and own.attention_factor != target.attention_factor:
            _check_factor(model, new, storage, turned, index)
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

    Example:
        >>> from transformers import LlamaConfig, LlamaModel
        >>> config = LlamaConfig(vocab_size=9, hidden_size=32, intermediate_size=64,
        ...                      num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2)
        >>> model, ids = LlamaModel(config).eval(), torch.arange(9)[None]
        >>> cache = model(ids, use_cache=True).past_key_values
        >>> cache = move_cached_keys(cache, model, torch.arange(100, 109))
    """

    def moved(_: int, keys: Tensor, encoding: Encoding, here: Tensor, there: Tensor) -> Tensor:
        return move_keys(keys, here, there, encoding)

    return _changed(cache, measured_storage(model), moved, from_positions, to_positions)


def _changed(cache: Any, storage: list[KeyStorage], step: Step, *positions: Tensor | None) -> Any:
    """Works out every layer, and only then changes the cache; None are positions 0, 1, 2, …"""
    made = []
    for index, layer in enumerate(cache.layers):
        kind, held = type(layer).__name__, storage[index]
        if kind not in SERVED:
            raise TypeError(f"A layer of the cache is a {kind}, whose keys are no plain tensors.")
        if held.encoding is None or not layer.is_initialized:
            continue
        kept, length = getattr(layer, held.held), int(layer.get_seq_length())
        given = [torch.arange(length) if each is None else each for each in positions]
        _check_reach(held, max([length, *(int(each.max()) + 1 for each in given if length)]))
        filled = min(length, kept.shape[-2])  # sliding layers hold the last tokens
        last = [each[..., length - filled :].to(kept.device) for each in given]
        places = [points_of(held.encoding, each) for each in last]
        made.append((layer, held.held, step(index, kept[..., :filled, :], held.encoding, *places)))
    for layer, name, turned in made:
        if type(layer).__name__.startswith("Static"):  # compiled graphs know it by its address
            kept = getattr(layer, name).detach()
            kept[..., : turned.shape[-2], :].copy_(turned)
            turned = kept
        setattr(layer, name, turned)
    return cache


def _check_reach(held: KeyStorage, reach: int) -> None:
    if held.rope_type in GROWING and held.trained_length and reach > held.trained_length:
        raise ValueError(
            f"Keys reach position {reach - 1}, and frequencies of rope type {held.rope_type!r} "
            f"change beyond {held.trained_length} positions."
        )


def _targets(new: Any, model: Any, storage: list[KeyStorage]) -> list[Schedule | None]:
    """The schedule that each layer shall have; None where it stays."""
    layers = by_layer(read_layers_of(read(model.config)), len(storage))
    types = {layer.layer_type for layer in layers if layer}
    wanted = new if isinstance(new, Mapping) else dict.fromkeys(types, new)
    if unknown := wanted.keys() - types:
        raise ValueError(f"new is for {[*unknown]}; the layers that rotate are {[*types]}.")
    targets: list[Schedule | None] = [None] * len(layers)
    for index, layer in enumerate(layers):
        if layer and layer.layer_type in wanted:
            fits = fitting(wanted[layer.layer_type], layer.encoding)
            targets[index] = bare(fits).frequencies
    return targets


@torch.no_grad()
def _check_factor(
    model: nn.Module, new: Any, storage: list[KeyStorage], turned: Step, index: int
) -> None:
    """Refuse another attention factor where a layer norms its keys after they were rotated."""
    cache, positions = run(model)
    _changed(cache, storage, turned, positions)
    with patch(model, rotary=new):
        again, _ = run(model, positions)
    one, other = (getattr(each.layers[index], storage[index].held) for each in (cache, again))
    if spread(one, other) > ALIKE:
        kind = type(model).__name__
        raise ValueError(f"{kind} norms rotated keys, which takes the attention factor away.")
