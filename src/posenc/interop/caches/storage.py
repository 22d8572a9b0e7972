"""Where the rotated keys of a layer lie in its cache: by the table, or by measuring."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn

from posenc.encodings.queries_keys.moving import move_keys
from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.interop.caches import families
from posenc.interop.caches.families import Held
from posenc.interop.configurations import read, warn_of_strays
from posenc.interop.modes import in_evaluation
from posenc.interop.patching.measuring import TABLE, places_of
from posenc.interop.rotary_config import RotaryLayer, read_layers_of
from posenc.numerics.pairing import Pairing, Rotated

Encoding = Rotary | MultimodalRotary
Contents = dict[nn.Module, Tensor]
"""The first token of what layers were given."""

POSITIONS = (0, 1, 2, 3, 5, 9, 30, 77)
"""Near ones, where fast pairs differ, and far ones, where slow ones do."""

ALIKE = 2e-3
"""Share by which keys may differ: angles of models are float32, and those of bfloat16 coarser."""


@dataclass(frozen=True)
class KeyStorage:
    """What one layer caches of its rotated keys.

    Attributes:
        held: ``"keys"`` or ``"values"``: in which of its two tensors.
        encoding: That by which they are rotated, for the channels of that tensor as they lie there;
            None for a layer that does not rotate.
        rope_type: As the configuration names it.
        trained_length: Positions before any extension.
    """

    held: Held
    encoding: Encoding | None
    rope_type: str = "default"
    trained_length: int | None = None


def key_storage(config: Any) -> tuple[KeyStorage, ...]:
    """How each layer of a model type caches its keys, by the table of families.

    Args:
        config: Of the model, as ``positional_setup`` takes it.

    Raises:
        ValueError: Nobody measured the type; ``rerotate_cached_keys`` and ``move_cached_keys``
            measure the model itself.

    Example:
        >>> deepseek = key_storage({"model_type": "deepseek_v3", "num_hidden_layers": 1})[0]
        >>> deepseek.held, deepseek.encoding.pairing
        ('values', 'half')
    """
    warn_of_strays(config)
    known = read(config)
    if known.model_type not in measured_types():
        raise ValueError(
            f"How {known.model_type or 'a model without model_type'} caches its keys was not "
            f"measured. Pass a loaded model to move_cached_keys or rerotate_cached_keys, which "
            f"measure it."
        )
    held = families.held_in(known)
    found = []
    for layer in read_layers_of(known, None):
        if layer is None:
            found.append(KeyStorage(held, None))
            continue
        pairing = families.pairing_in_cache(known, layer.rotary.pairing)
        encoding = as_stored(layer.encoding, pairing, whole=held == "keys")
        found.append(_storage(held, encoding, layer))
    return tuple(found)


@cache
def measured_types() -> frozenset[str]:
    """The types that were measured: ``python -m tests.oracle_models.caching`` writes them."""
    text = files("posenc.interop.caches").joinpath("measured.txt").read_text(encoding="utf-8")
    return frozenset(text.split())


def as_stored(encoding: Encoding, pairing: Pairing, *, whole: bool) -> Encoding:
    """The encoding for what is cached: whole heads, or their rotated channels alone."""
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    place: Rotated = rotary.rotated if whole else "prefix"
    made = Rotary(
        rotary.frequencies,
        head_dim=rotary.head_dim if whole else None,
        pairing=pairing,
        rotated=place,
    )
    if isinstance(encoding, MultimodalRotary):
        return MultimodalRotary(made, encoding.sections, encoding.arrangement)  # type: ignore[arg-type]
    return made


@torch.no_grad()
def measured_storage(model: nn.Module) -> list[KeyStorage]:
    """How each cached layer keeps its keys, found by a run over equal tokens.

    Their contents are alike at all positions, so keys that are moved to one position must be alike
    too: under one way of keeping them, and no other.

    Raises:
        ValueError: Under none, or under several; or the model could not be run.
    """
    layers = read_layers_of(read(model.config), None)  # type: ignore[arg-type]
    cached, positions = _run(model)
    found = []
    for index, layer in enumerate(by_layer(layers, len(cached))):
        kept = cached[index]
        if layer is None or not isinstance(getattr(kept, "keys", None), Tensor):
            found.append(KeyStorage("keys", None))
            continue
        fitting: list[tuple[Held, Encoding]] = [
            (held, encoding)
            for held, encoding in _candidates(layer.encoding, kept)
            if _fits(encoding, getattr(kept, held), positions)
        ]
        if len(fitting) != 1:
            raise ValueError(
                f"Layer {index} of {type(model).__name__} caches keys in no manner that is known "
                f"here ({len(fitting)} of the known ones fit what it rotates). Its cache stays as "
                f"it is: compute it again."
            )
        found.append(_storage(*fitting[0], layer))
    return found


def _storage(held: Held, encoding: Encoding, layer: RotaryLayer) -> KeyStorage:
    return KeyStorage(held, encoding, layer.rope.rope_type.name, layer.rope.trained_length)


def by_layer(layers: Sequence[RotaryLayer | None], count: int) -> Sequence[RotaryLayer | None]:
    """The layer of each cached one: where some keep two, all must be alike."""
    if count <= len(layers):
        return layers[:count]
    if len(set(map(id, layers))) == 1:
        return [layers[0]] * count
    raise ValueError(
        f"The cache has {count} layers and the configuration {len(layers)}, which differ among "
        f"themselves; which is which is not known."
    )


def _candidates(encoding: Encoding, kept: Any) -> Iterator[tuple[Held, Encoding]]:
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    places: tuple[Held, ...] = ("keys", "values")
    pairings: tuple[Pairing, ...] = ("half", "interleaved")
    for held in places:
        width = getattr(kept, held).shape[-1]
        for pairing in pairings:
            if width == rotary.head_dim:
                yield held, as_stored(encoding, pairing, whole=True)
            elif width == rotary.rotated_dim:
                yield held, as_stored(encoding, pairing, whole=False)


def _fits(encoding: Encoding, kept: Tensor, positions: Tensor) -> bool:
    """Whether keys at these positions, moved to the first of them, are all alike."""
    kept, positions = kept[:1].double(), positions[-kept.shape[-2] :]
    if kept.shape[-2] != len(positions) or kept.shape[-2] < 2:
        return False
    start = on_axes(positions, encoding)
    moved = move_keys(kept, start, start[:1].expand_as(start), encoding)
    spread = lambda x: float((x - x[..., :1, :]).abs().max() / x.abs().max())  # noqa: E731
    return spread(moved) < ALIKE < spread(kept)


def on_axes(positions: Tensor, encoding: Encoding) -> Tensor:
    """Positions of text for the axes of an encoding: all alike."""
    if not isinstance(encoding, MultimodalRotary):
        return positions
    return positions.unsqueeze(-1).expand(*positions.shape, len(encoding.sections))


@torch.no_grad()
def factor_reaches(model: nn.Module, storage: Sequence[KeyStorage]) -> list[bool]:
    """Whether the attention factor of a schedule reaches the cached keys of each layer.

    It does not where keys are normed after they were rotated. Measured by a run over the same
    contents with cosines and sines of twice their size, which must double what rotates.

    Raises:
        ValueError: The model could not be run.
    """
    contents: Contents = {}
    plain, _ = _run(model, contents)
    with _doubled_angles(model):
        doubled, _ = _run(model, contents)
    return [
        held.encoding is None or _is_doubled(held, plain[index], doubled[index])
        for index, held in enumerate(storage)
    ]


def _is_doubled(held: KeyStorage, plain: Any, doubled: Any) -> bool:
    """Whether what rotates in the keys of one layer is twice what it was."""
    encoding = held.encoding
    rotary = encoding.rotary if isinstance(encoding, MultimodalRotary) else encoding
    assert rotary is not None
    before, after = getattr(plain, held.held).double(), getattr(doubled, held.held).double()
    wanted, width = before.clone(), rotary.rotated_dim
    turns = slice(-width, None) if rotary.rotated == "suffix" else slice(width)
    wanted[..., turns] *= 2
    return float((after - wanted).abs().max() / wanted.abs().max()) < ALIKE


@contextmanager
def _doubled_angles(model: nn.Module) -> Iterator[None]:
    """Inside the block, each place of a model gives cosines and sines of twice their size."""
    places = {id(place.module): place for place in places_of(model)}.values()
    tables = [(place.module, place.module._buffers[TABLE]) for place in places if place.keeps_rows]
    hooks = [
        place.module.register_forward_pre_hook(_double_table)
        if place.keeps_rows
        else place.module.register_forward_hook(_double_given)
        for place in places
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module, table in tables:
            module._buffers[TABLE] = table


def _double_table(module: nn.Module, _: tuple) -> None:
    table = module._buffers[TABLE]
    assert table is not None
    module._buffers[TABLE] = 2 * table


def _double_given(_: nn.Module, __: tuple, given: Any) -> Any:
    return 2 * given if isinstance(given, Tensor) else type(given)(2 * each for each in given)


@contextmanager
def equal_contents(model: nn.Module, contents: Contents | None = None) -> Iterator[None]:
    """Inside the block, every layer is given its first token at all places.

    Sinks, states and convolutions make deeper layers see how many tokens came before, though all
    tokens are the same one.

    Args:
        model: The model.
        contents: What layers were given before, and are given again; what others are given is
            added to it.
    """
    given = Given({} if contents is None else contents)
    layers = [module for module in model.modules() if hasattr(module, "layer_idx")]
    hooks = [each.register_forward_pre_hook(given, with_kwargs=True) for each in layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class Given:
    """A hook before layers: each is given the first token at all places, and the same each time."""

    def __init__(self, contents: Contents):
        self.contents = contents

    def __call__(
        self, module: nn.Module, args: tuple, kwargs: dict[str, Any]
    ) -> tuple[tuple, dict[str, Any]]:
        if args and _is_hidden(args[0]):
            return (self._first(module, args[0]), *args[1:]), kwargs
        if _is_hidden(hidden := kwargs.get("hidden_states")):
            return args, {**kwargs, "hidden_states": self._first(module, hidden)}
        return args, kwargs

    def _first(self, module: nn.Module, hidden: Tensor) -> Tensor:
        return self.contents.setdefault(module, hidden[:, :1]).expand_as(hidden)


def _is_hidden(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.ndim == 3 and value.is_floating_point()


def _run(model: nn.Module, contents: Contents | None = None) -> tuple[Sequence[Any], Tensor]:
    """The layers of a cache over a few equal tokens, and where these stand."""
    heeded = inspect.signature(model.forward).parameters
    device = next(model.parameters()).device
    longest = read(model.config).get("longest") or 1 << 20
    positions = torch.tensor(POSITIONS, device=device)
    if "position_ids" not in heeded or longest <= POSITIONS[-1]:
        positions = torch.arange(len(POSITIONS), device=device)
    given: dict[str, Any] = {"input_ids": torch.full_like(positions, 5)[None], "use_cache": True}
    if "position_ids" in heeded:
        given["position_ids"] = positions[None]
    if "attention_mask" in heeded:  # without it, jumps of positions are taken for new documents
        given["attention_mask"] = torch.ones_like(positions)[None]
    try:
        with equal_contents(model, contents), in_evaluation(model):
            out = model(**given)
    except Exception as error:
        raise ValueError(
            f"{type(model).__name__} could not be run over {len(positions)} tokens, so how it "
            f"caches keys could not be measured: {error}."
        ) from error
    held = getattr(out, "past_key_values", None)
    if held is None or not hasattr(held, "layers"):
        raise ValueError(f"{type(model).__name__} returns no cache; there are no keys to move.")
    return held.layers, positions
