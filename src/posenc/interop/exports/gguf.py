"""The metadata of a GGUF file that llama.cpp reads of rotation, and the tensors of factors."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import localcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Schedule, YaRN
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.schedule import PRECISION, Number
from posenc.interop.exports.architectures import (
    ARCHITECTURES,
    FULL_LAYERS,
    READS_LISTS,
    READS_ROPE_FREQS,
    READS_SLIDING_BASE,
    SLIDING_BASES,
    UNTURNED,
    WHOLE_HEADS,
)
from posenc.interop.exports.subject import (
    RotatingModel,
    check_alone,
    check_pairing,
    powers_under,
    refuse,
    rotating_model,
)

TARGET = "GGUF metadata"

Value = int | float | str


@dataclass(frozen=True)
class GGUFKeys:
    """What a GGUF file says of rotation.

    Attributes:
        metadata: Values by key.
        tensors: float32 by name: what frequencies are divided by, one a pair.
        notes: What neither tells, in words.
    """

    metadata: dict[str, Value]
    tensors: dict[str, Tensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


PAIRING_NOTE = (
    "The pairing is no key: llama.cpp has one an architecture, and its converter permutes the "
    "weights of queries and keys where that is the interleaved one and the model's is not."
)

LISTS_NOTE = (
    "llama.cpp chooses the short or the long list by the context that it was started with, against "
    "original_context_length, and not by each request."
)


def gguf_keys(
    config: Any | dict[str, Any] | str | Path,
    *,
    part: str | None = None,
    architecture: str | None = None,
) -> GGUFKeys:
    """The keys and tensors by which llama.cpp computes the rotation of this model.

    ``rope.dimension_count``, ``rope.freq_base`` and ``rope.scaling.*`` where they say all of it
    (plain, NTK, linear, YaRN); ``rope_factors_short`` and ``_long`` for LongRoPE; for every other
    schedule on powers of a base (Llama 3) the tensor ``rope_freqs``, what each frequency is divided
    by. llama.cpp multiplies YaRN's 0.1·ln s + 1 itself, so ``rope.scaling.attn_factor`` is what
    there is besides. Keys keep float32, as files do.

    Args:
        config: As of ``positional_setup``.
        part: Which part of a model of several, as ``"text"``.
        architecture: What llama.cpp calls the architecture; if not given, that of the model type.

    Raises:
        ValueError: llama.cpp would compute something else, or how it reads the architecture is not
            known; the message says which.
        OSError: The file cannot be read.

    Reference:
        ``load_hparams`` in src/llama-model.cpp and ``rope_yarn`` in ggml/src/ggml-cpu/ops.cpp of
        llama.cpp; gguf-py/gguf/constants.py.

    Example:
        >>> keys = gguf_keys({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4,
        ...                   "rope_theta": 1e6})
        >>> for name, value in keys.metadata.items():
        ...     print(name, value)
        qwen2.rope.dimension_count 16
        qwen2.rope.freq_base 1000000.0
        qwen2.rope.scaling.type none
    """
    model = rotating_model(config, TARGET, part=part)
    architecture = architecture or _architecture(model)
    rotary, sliding = _layers(model, architecture)
    check_alone(model, rotary)
    check_pairing(model, rotary)
    if architecture in WHOLE_HEADS and rotary.rotated_dim != rotary.head_dim:
        refuse(
            TARGET,
            f"{rotary.rotated_dim} of {rotary.head_dim} channels rotate",
            f"llama.cpp wants whole heads of the architecture {architecture!r}.",
        )
    rope = model.layer_of(rotary).rope
    if rope is not None and rope.kind == "dynamic" and (rope.factor or 1.0) != 1.0:
        refuse(TARGET, "its NTK factor follows the length", "llama.cpp stretches all alike.")
    if rope is not None and rope.kind == "longrope":
        said, tensors, notes = _lists(rotary, rope, architecture)
    else:
        said, tensors = _scaling(rotary.frequencies, architecture)
        notes = ()
    metadata: dict[str, Value] = {"dimension_count": rotary.rotated_dim, **said}
    if sliding is not None and "scaling.attn_factor" in said:
        refuse(
            TARGET,
            f"the attention factor of its full layers is {rotary.frequencies.attention_factor}",
            "llama.cpp multiplies those of sliding layers, too, with what is not the usual one.",
        )
    if sliding is not None and architecture in READS_SLIDING_BASE:
        metadata["freq_base_swa"] = float(sliding.base)
    return GGUFKeys(
        {f"{architecture}.rope.{name}": value for name, value in metadata.items()},
        tensors,
        (PAIRING_NOTE, *notes),
    )


def _architecture(model: RotatingModel) -> str:
    if model.model_type not in ARCHITECTURES:
        raise ValueError(
            f"What llama.cpp calls {model.model_type!r} is not known here. Say it, as "
            f"architecture='llama'."
        )
    return ARCHITECTURES[model.model_type]


def _layers(model: RotatingModel, architecture: str) -> tuple[Rotary, Geometric | None]:
    """The rotation of full layers, and the plain frequencies of sliding ones, where those have
    their own."""
    if architecture not in FULL_LAYERS:
        return model.only(_unturned(architecture, len(model.layers))), None
    full, sliding = _full_and_sliding(model, architecture)
    plain, usual = sliding.frequencies, SLIDING_BASES.get(architecture)
    # Where the program fixes the base of sliding layers, it leaves them unscaled too; elsewhere
    # they are scaled as full layers are.
    alone = usual is not None or isinstance(full.frequencies, Geometric)
    fits = (
        isinstance(plain, Geometric)
        and plain.dim == full.rotated_dim
        and usual in (None, float(plain.base))
    )
    if not fits or not alone:
        refuse(
            TARGET,
            f"full layers have {full.frequencies!r} and sliding ones {plain!r}",
            f"llama.cpp gives those of {architecture!r} one width, sliding ones the base "
            f"{usual or 'of a key'}, and no scaling.",
        )
    return full, plain  # type: ignore[return-value]


def _unturned(architecture: str, count: int) -> list[int]:
    """The layers that the program does not rotate, whatever the file says."""
    every, only = UNTURNED.get(architecture, (1, 0))
    return list(range(every - 1, count, every)) if only in (None, count) else []


def _full_and_sliding(model: RotatingModel, architecture: str) -> tuple[Rotary, Rotary]:
    """The rotation of either type of layers; those of a model that only slides, twice."""
    every, which = FULL_LAYERS[architecture]
    types = [layer.layer_type for layer in model.layers]
    meant = [index % every == which for index in range(len(types))]
    if [kind == "full_attention" for kind in types] != meant:
        refuse(
            TARGET,
            f"its layers are {', '.join(map(str, types))}",
            f"llama.cpp turns those of {architecture!r} in a pattern of its own: of each {every}, "
            f"number {which} (from 0) as a full one, the others as sliding ones.",
        )
    if model.skips or len(model.kinds) > len(set(types)):
        model.only()  # refuses
    by_type = dict(zip(types, model.rotations, strict=True))
    sliding = by_type.get("sliding_attention") or by_type["full_attention"]
    full = by_type.get("full_attention") or sliding
    assert full is not None
    assert sliding is not None
    return model.plain(full), model.plain(sliding)


def _scaling(schedule: Schedule, architecture: str) -> tuple[dict[str, Value], dict[str, Tensor]]:
    for told in (_plain, _linear, _yarn):
        if (said := told(schedule)) is not None:
            return said, {}
    base = _base_of(schedule)
    if architecture not in READS_ROPE_FREQS:
        refuse(
            TARGET,
            f"its frequencies are those of {schedule!r}",
            f"llama.cpp reads no rope_freqs of the architecture {architecture!r}.",
        )
    stated: dict[str, Value] = {"freq_base": float(base.base), "scaling.type": "none"}
    if schedule.attention_factor != 1.0:
        stated["scaling.attn_factor"] = schedule.attention_factor
    return stated, {"rope_freqs.weight": _divisors(schedule, base)}


def _plain(schedule: Schedule) -> dict[str, Value] | None:
    if isinstance(schedule, NTK):
        width = schedule.of.dim
        grown = float(schedule.of.base) * float(schedule.factor) ** (width / (width - 2))
        return {"freq_base": grown, "scaling.type": "none"}
    if not isinstance(schedule, Geometric):
        return None
    return {"freq_base": float(schedule.base), "scaling.type": "none"}


def _linear(schedule: Schedule) -> dict[str, Value] | None:
    if not isinstance(schedule, Linear) or not isinstance(schedule.of, Geometric):
        return None
    return {
        "freq_base": float(schedule.of.base),
        "scaling.type": "linear",
        "scaling.factor": float(schedule.factor),
    }


def _yarn(schedule: Schedule) -> dict[str, Value] | None:
    if not isinstance(schedule, YaRN):
        return None
    borders = (schedule.beta_fast, schedule.beta_slow, schedule.truncate)
    if borders != (32.0, 1.0, True):
        refuse(
            TARGET,
            f"its ramp has beta_fast {borders[0]}, beta_slow {borders[1]}, truncate {borders[2]}",
            "llama.cpp rounds the borders of 32 and 1 turns to whole pairs.",
        )
    usual = YaRN(schedule.of, schedule.factor, schedule.trained_length).attention_factor
    said: dict[str, Value] = {
        "freq_base": float(schedule.of.base),
        "scaling.type": "yarn",
        "scaling.factor": float(schedule.factor),
        "scaling.original_context_length": schedule.trained_length,
    }
    if schedule.attention_factor != usual:
        said["scaling.attn_factor"] = schedule.attention_factor / usual
    return said


def _base_of(schedule: Schedule) -> Geometric:
    """The powers of a base that a schedule rescales."""
    powers = powers_under(schedule)
    if powers is None:
        refuse(TARGET, f"{schedule!r} stands on no powers of a base", "Nothing does.")
    return powers


def _divisors(schedule: Schedule, base: Geometric) -> Tensor:
    """What each frequency of ``base`` is divided by; float32, as the file has it."""
    with localcontext(PRECISION):
        scaled = schedule.radians()
        if len(scaled) != len(base) or not all(scaled):
            refuse(
                TARGET,
                f"{schedule!r} has pairs that do not turn, or fewer pairs",
                "No factor says that.",
            )
        ratios = [float(w / s) for w, s in zip(base.radians(), scaled, strict=True)]
    return _float32(ratios)


def _lists(
    rotary: Rotary, rope: Rope, architecture: str
) -> tuple[dict[str, Value], dict[str, Tensor], tuple[str, ...]]:
    """LongRoPE: both lists, and one attention factor."""
    if architecture not in READS_LISTS:
        refuse(
            TARGET,
            "it has the two lists of LongRoPE",
            f"llama.cpp reads none of the architecture {architecture!r}.",
        )
    given, trained = rope.values, rope.length("trained_length")
    scales = {given.get("short_mscale"), given.get("long_mscale")}
    if len(scales) > 1:
        refuse(TARGET, f"its lists have attention factors {scales}", "llama.cpp has one.")
    said: dict[str, Value] = {
        "freq_base": float(rope.base),
        "scaling.type": "longrope",
        "scaling.original_context_length": trained,
        "scaling.attn_factor": rotary.frequencies.attention_factor,
    }
    tensors = {
        "rope_factors_short.weight": _float32(given["short_factor"]),
        "rope_factors_long.weight": _float32(given["long_factor"]),
    }
    return said, tensors, (LISTS_NOTE,)


def _float32(numbers: Iterable[Number]) -> Tensor:
    return torch.tensor([float(number) for number in numbers], dtype=torch.float32)
