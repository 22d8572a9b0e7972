"""The metadata of a GGUF file that llama.cpp reads of rotation, and the tensors of factors."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import localcontext
from functools import cache
from importlib.resources import files
from typing import Any

from torch import Tensor

from posenc.encodings.queries_keys.rotary import Rotary
from posenc.frequencies import NTK, Geometric, Linear, Schedule, YaRN
from posenc.frequencies.huggingface import Rope
from posenc.frequencies.schedule import PRECISION, as_float32
from posenc.interop.configurations import Config
from posenc.interop.exports.subject import (
    RotatingModel,
    beside_yarns,
    powers_under,
    refuse,
    rotating_model,
)

Value = int | float | str


@dataclass(frozen=True)
class GGUFKeys:
    """What a GGUF file says of rotation."""

    metadata: dict[str, Value]  #: by key
    tensors: dict[str, Tensor]  #: float32 by name: what frequencies are divided by, one a pair
    notes: tuple[str, ...]  #: what neither tells, in words


PAIRING_NOTE = "The pairing is no key: llama.cpp's converter permutes the weights to its own."
LISTS_NOTE = "llama.cpp takes the short or the long list by the context that it was started with."


def gguf_keys(
    config: Config, *, part: str | None = None, architecture: str | None = None
) -> GGUFKeys:
    """The keys and tensors by which llama.cpp computes the rotation of this model.

    Plain, NTK, linear and YaRN are said by ``rope.dimension_count``, ``rope.freq_base`` and
    ``rope.scaling.*``; LongRoPE by ``rope_factors_short`` and ``_long``; any other schedule on
    powers of a base (Llama 3) by the tensor ``rope_freqs``, which divides each frequency. llama.cpp
    multiplies YaRN's 0.1·ln s + 1 itself, so ``rope.scaling.attn_factor`` is what is left of the
    attention factor. Files keep values in float32. ``architecture`` is llama.cpp's name of it, if
    not that of the model type; ``part`` names a part of a model of several, as ``"text"``.

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
    model = rotating_model(config, part=part)
    names = {kind: name for name, facts in architectures().items() for kind in facts["types"]}
    architecture = architecture or names.get(model.model_type)
    if architecture is None:
        raise ValueError(f"Pass what llama.cpp calls the architecture of {model.model_type!r}.")
    program = architectures().get(architecture, {})
    rotary, sliding = _layers(model, program)
    rope = model.rope_of(rotary)
    model.check_pairing(rotary)
    if "whole_heads" in program and rotary.rotated_dim != rotary.head_dim:
        refuse(f"{rotary.rotated_dim} of {rotary.head_dim} channels rotate")
    longrope = rope.kind == "longrope"
    said, tensors = _lists(rotary, rope) if longrope else _scaling(rotary.frequencies)
    needed = "lists" if longrope else "rope_freqs"
    if tensors and needed not in program:
        refuse(f"{architecture!r} reads no {needed}; {rotary.frequencies!r} needs them")
    metadata: dict[str, Value] = {"dimension_count": rotary.rotated_dim, **said}
    if sliding is not None and "scaling.attn_factor" in said:
        refuse("sliding layers would have the attention factor of full ones")
    if sliding is not None and "freq_base_swa" in program:
        metadata["freq_base_swa"] = float(sliding.base)
    keys = {f"{architecture}.rope.{name}": value for name, value in metadata.items()}
    return GGUFKeys(keys, tensors, (PAIRING_NOTE, LISTS_NOTE) if longrope else (PAIRING_NOTE,))


@cache
def architectures() -> Mapping[str, Mapping[str, Any]]:
    """The architectures of llama.cpp whose rotation follows from keys, by name.

    ``types`` are its model types. ``rope_freqs``, ``lists`` and ``freq_base_swa`` say that it reads
    these; ``whole_heads``, that all channels must rotate; ``full_layers``, of how many layers which
    one is full; ``sliding_base``, the fixed base of the others; ``unturned``, that every n-th layer
    does not rotate in models of so many layers (null: of any number).
    """
    file = files("posenc.interop.exports") / "architectures.json"
    return json.loads(file.read_text(encoding="utf-8"))


def _layers(model: RotatingModel, program: Mapping[str, Any]) -> tuple[Rotary, Geometric | None]:
    """The rotation of full layers, and the frequencies of sliding ones where those differ."""
    count = len(model.layers)
    if "full_layers" not in program:
        every, depth = program.get("unturned", (1, 0))
        unturned = range(every - 1, count, every) if depth in (None, count) else ()
        return model.only(unturned), None
    every, which = program["full_layers"]
    full = [layer.layer_type == "full_attention" for layer in model.layers]
    if full != [index % every == which for index in range(count)]:
        refuse(f"of each {every} layers, number {which} (from 0) is full in llama.cpp")
    rotations = dict(zip(full, map(model.plain, filter(None, model.rotations)), strict=True))
    held, plain = rotations.get(True, rotations[False]), rotations[False].frequencies
    # Where the program fixes the base of sliding layers, it leaves them unscaled too; elsewhere
    # they are scaled as full layers are.
    usual = program.get("sliding_base")
    alone = usual is not None or isinstance(held.frequencies, Geometric)
    if alone and isinstance(plain, Geometric) and usual in (None, float(plain.base)):
        return held, plain
    refuse(f"full layers have {held.frequencies!r} and sliding ones {plain!r}")


def _scaling(schedule: Schedule) -> tuple[dict[str, Value], dict[str, Tensor]]:
    if isinstance(schedule, YaRN):
        return _yarn(schedule), {}
    base = powers_under(schedule)
    if base is None:
        refuse(f"{schedule!r} is not on powers of a base")
    said: dict[str, Value] = {"freq_base": float(base.base), "scaling.type": "none"}
    if schedule is base:
        return said, {}
    if isinstance(schedule, NTK):
        grown = float(schedule.factor) ** (base.dim / (base.dim - 2))
        return said | {"freq_base": float(base.base) * grown}, {}
    if isinstance(schedule, Linear) and schedule.of is base:
        return said | {"scaling.type": "linear", "scaling.factor": float(schedule.factor)}, {}
    if schedule.attention_factor != 1.0:
        said["scaling.attn_factor"] = schedule.attention_factor
    with localcontext(PRECISION):
        scaled = schedule.radians()
        if len(scaled) != len(base) or not all(scaled):
            refuse(f"{schedule!r} has pairs that do not rotate, or fewer pairs")
        divisors = as_float32(w / s for w, s in zip(base.radians(), scaled, strict=True))
    return said, {"rope_freqs.weight": divisors}


def _yarn(schedule: YaRN) -> dict[str, Value]:
    borders = (schedule.beta_fast, schedule.beta_slow, schedule.truncate)
    if borders != (32.0, 1.0, True):
        refuse(f"(beta_fast, beta_slow, truncate) are {borders} and not (32, 1, True)")
    share = beside_yarns(schedule)
    return {
        "freq_base": float(schedule.of.base),
        "scaling.type": "yarn",
        "scaling.factor": float(schedule.factor),
        "scaling.original_context_length": schedule.trained_length,
        **({} if share == 1 else {"scaling.attn_factor": share}),
    }


def _lists(rotary: Rotary, rope: Rope) -> tuple[dict[str, Value], dict[str, Tensor]]:
    """LongRoPE: both lists, and one attention factor."""
    given = rope.values
    scales = {given.get("short_mscale"), given.get("long_mscale")}
    if len(scales) > 1:
        refuse(f"its lists have attention factors {scales}, and llama.cpp has one")
    lists = {name: as_float32(given[f"{name}_factor"]) for name in ("short", "long")}
    said: dict[str, Value] = {
        "freq_base": float(rope.base),
        "scaling.type": "longrope",
        "scaling.original_context_length": rope.length("trained_length"),
        "scaling.attn_factor": rotary.frequencies.attention_factor,
    }
    return said, {f"rope_factors_{name}.weight": each for name, each in lists.items()}
