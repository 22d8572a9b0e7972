"""What the rotary encoding of a model does over a length: layer by layer, in numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.schedule import Schedule
from posenc.inspection.precision import Precision, precision_of
from posenc.interop.configurations import Config, read
from posenc.interop.fields import check_length
from posenc.interop.rotary_config import RotaryLayer, read_layers_of


@dataclass(frozen=True)
class RotaryNumbers:
    """The rotary encoding of one layer."""

    layer_type: str | None  #: as the configuration names it; None where all layers are alike
    base: float  #: base of the powers
    scaling: str  #: rope type; ``"default"`` without scaling
    factor: float | None  #: of the rope type, if it has one
    long_factors: bool | None  #: whether ``longrope`` uses its long factors; None for other types
    rotated_dim: int  #: number of channels that are rotated
    head_dim: int  #: width of a head
    rotated: str  #: whether these are the first (``"prefix"``) or the last (``"suffix"``) channels
    pairing: str  #: ``"half"`` or ``"interleaved"``
    pairing_is_known: bool  #: whether the pairing of this model type is known
    sections: tuple[int, ...] | None  #: pairs of time, height, width; None of one coordinate
    arrangement: str | None  #: of the sections
    attention_factor: float  #: what cosines and sines are multiplied with
    softmax_scale: float | None  #: of scores in attention; None where nothing says
    trained_length: int | None  #: positions before any extension; None where nothing says
    target_length: int | None  #: positions that are asked for
    pairs: int  #: number of pairs
    shortest: float  #: shortest wavelength, in positions
    longest: float  #: longest wavelength of those that turn at all
    still: int  #: number of pairs that do not turn
    #: pairs that turn but complete no turn in the trained length, by the frequencies of that
    #: length: the unscaled ones for ``yarn`` and ``llama3``, those of the short factors for
    #: ``longrope``, and otherwise those that transformers starts with. None where the trained
    #: length is unknown.
    unfinished: int | None
    #: how many of these complete a turn in the target length; None as before
    finished_later: int | None
    precision: Precision | None  #: what other implementations lose at the target length


@dataclass(frozen=True)
class ModelNumbers:
    """The rotary encoding of a model."""

    model_type: str  #: as the configuration names it
    layers: tuple[RotaryNumbers | None, ...]  #: one a layer; None where there is no rotary encoding


def inspect_config(
    config: Config, *, length: int | None = None, dtype: torch.dtype = torch.bfloat16
) -> ModelNumbers:
    """Numbers about every layer of the model that a Hugging Face configuration describes.

    Args:
        config: A PreTrainedConfig, a dictionary, or the path of a config.json.
        length: Target length, in tokens; if not given, the longest that the model promises.
        dtype: In which other implementations hold positions and frequencies.

    Example:
        >>> config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
        ...           "num_hidden_layers": 32, "rope_theta": 1e4, "max_position_embeddings": 4096}
        >>> first = inspect_config(config, length=16384).layers[0]
        >>> first.pairs, first.unfinished, first.finished_later
        (64, 18, 9)
    """
    check_length(length)
    known = read(config, warns=True)
    target = length or promised(layer.rope for layer in read_layers_of(known) if layer)
    # Once more, since some types depend on the length.
    numbers = numbers_of(read_layers_of(known, target), target, dtype)
    return ModelNumbers(known.model_type, numbers)


def promised(ropes: Iterable[Rope]) -> int | None:
    """The longest length in a configuration."""
    lengths = [0]
    for rope in ropes:
        lengths.append(rope.longest or 0)
        if rope.rope_type.implied_factor and rope.trained_length:
            lengths.append(int(rope.trained_length * (rope.factor or 1)))
    return max(lengths) or None


def numbers_of(
    layers: Sequence[RotaryLayer | None], target: int | None, dtype: torch.dtype
) -> tuple[RotaryNumbers | None, ...]:
    """The numbers of layers up to a target length; those that are alike share an encoding."""
    distinct = {(id(layer.encoding), layer.layer_type): layer for layer in layers if layer}
    found = {key: _numbers(layer, target, dtype) for key, layer in distinct.items()}
    return tuple(layer and found[id(layer.encoding), layer.layer_type] for layer in layers)


def _numbers(layer: RotaryLayer, target: int | None, dtype: torch.dtype) -> RotaryNumbers:
    rope, rotary, encoding = layer.rope, layer.rotary, layer.encoding
    trained, schedule = rope.trained_length, rotary.frequencies
    lengths = schedule.wavelengths()
    rotating = [length for length in lengths if length != float("inf")]
    begun = _trained(rope).wavelengths() if trained else lengths
    later = [
        abs(scaled)
        for before, scaled in zip(begun, lengths, strict=True)
        if trained and trained < abs(before) < float("inf")
    ]
    axes = encoding if isinstance(encoding, MultimodalRotary) else None
    return RotaryNumbers(
        layer_type=layer.layer_type,
        base=rope.base,
        scaling=rope.kind,
        factor=rope.factor,
        long_factors=(target or 0) > (trained or 0) if rope.kind == "longrope" else None,
        rotated_dim=rotary.rotated_dim,
        head_dim=rotary.head_dim,
        rotated=rotary.rotated,
        pairing=rotary.pairing,
        pairing_is_known=layer.pairing_is_known,
        sections=axes.sections if axes else None,
        arrangement=str(axes.arrangement) if axes else None,
        attention_factor=schedule.attention_factor,
        softmax_scale=layer.softmax_scale,
        trained_length=trained,
        target_length=target,
        pairs=len(lengths),
        shortest=min(lengths),
        longest=max(rotating, default=float("inf")),
        still=len(lengths) - len(rotating),
        unfinished=len(later) if trained else None,
        finished_later=sum(length <= (target or 0) for length in later) if trained else None,
        precision=precision_of(schedule, target, dtype) if target else None,
    )


def _trained(rope: Rope) -> Schedule:
    """The frequencies that go with the trained length, as the file has it."""
    # With which transformers starts: no stretch, the short factors.
    schedule = rope.rope_type.read(rope, None)
    if rope.kind == "longrope" or not rope.rope_type.keeps_trained_length:
        return schedule
    while isinstance(inner := getattr(schedule, "of", None), Schedule):
        schedule = inner
    return schedule


def grouped(values: Sequence[Any]) -> list[tuple[list[int], Any]]:
    """Equal values once, each with where it stands, in the order of first appearance."""
    groups: dict[Any, list[int]] = {}
    for index, value in enumerate(values):
        groups.setdefault(value, []).append(index)
    return [(places, value) for value, places in groups.items()]


def differences(first: Any, second: Any) -> tuple[str, ...]:
    """The names of the fields in which the numbers of two layers differ; all if one has none.

    Example:
        >>> differences(None, None)
        ()
    """
    names = (field.name for field in fields(first or second or RotaryNumbers))
    return tuple(name for name in names if getattr(first, name, ...) != getattr(second, name, ...))
