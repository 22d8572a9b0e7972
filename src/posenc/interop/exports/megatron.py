"""What Megatron-LM is told on its command line."""

from typing import Any

from posenc.encodings.queries_keys.multimodal import MultimodalRotary
from posenc.encodings.queries_keys.rotary import Rotary
from posenc.encodings.tokens.learned import Learned
from posenc.frequencies import Geometric, Linear, Llama3, Schedule, YaRN
from posenc.interop.configurations import Config
from posenc.interop.exports.subject import (
    RotatingModel,
    beside_yarns,
    only_part,
    refuse,
    rotating_model,
    share_of,
)
from posenc.interop.oracle.encodings import bare


def megatron_arguments(config: Config, *, part: str | None = None) -> tuple[str, ...]:
    """The arguments of Megatron-LM for the positions of this model.

    ``--position-embedding-type`` and what belongs to it: ``rope`` (plain, linear by a whole factor,
    Llama 3's scaling with its published borders, either pairing, layers without rotation),
    ``yarn``, ``mrope`` in runs, ``learned_absolute``, ``none``. The other sizes are left to you.
    ``part`` names a part of a model of several, as ``"text"``.

    Reference:
        megatron/training/arguments.py and megatron/core/models/common/embeddings of Megatron-LM.

    Example:
        >>> llama = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        ...          "rope_theta": 500000.0}
        >>> print(*megatron_arguments(llama))
        --position-embedding-type rope --kv-channels 16 --rotary-base 500000 --rotary-percent 1.0
    """
    chosen = only_part(config, part=part)
    entries = [entry for layer in chosen.layers for entry in layer.encodings]
    if not entries:
        return ("--position-embedding-type", "none")
    if all(type(entry) is Learned for entry in entries):
        return _learned(entries[0], chosen.notes)
    return _rotation(rotating_model(config, part=part))


def _learned(table: Learned, notes: tuple[str, ...]) -> tuple[str, ...]:
    if notes:
        refuse(f"beside its table, {notes[0]}")
    if table.offset:
        refuse(f"its table {table!r} starts at another row than 0")
    kind = "--position-embedding-type", "learned_absolute"
    return *kind, "--max-position-embeddings", str(table.max_len)


def _rotation(model: RotatingModel) -> tuple[str, ...]:
    found = model.alike()
    rotary = bare(found)
    model.rope_of(found)
    schedule = rotary.frequencies
    yarn = isinstance(schedule, YaRN)
    kind = "mrope" if found is not rotary else "yarn" if yarn else "rope"
    plain = schedule if isinstance(schedule, Geometric) else getattr(schedule, "of", None)
    if not isinstance(plain, Geometric):
        refuse(f"its frequencies are those of {schedule!r}")
    said = ["--position-embedding-type", kind, "--kv-channels", str(rotary.head_dim)]
    said += ["--rotary-base", str(_whole("base", float(plain.base)))]
    said += ["--rotary-percent", str(share_of(rotary))]
    said += _yarn(schedule, rotary) if yarn else _scaling(schedule)
    if isinstance(found, MultimodalRotary):
        if found.arrangement != "contiguous" or not isinstance(schedule, Geometric):
            refuse(f"its axes are {found.arrangement!r} over {schedule!r}")
        said += ["--mrope-section", *map(str, found.sections)]
    if rotary.pairing == "interleaved":
        said.append("--rotary-interleaved")
    if None in model.rotations:
        pattern = ",".join(str(int(rotation is None)) for rotation in model.rotations)
        said += ["--no-rope-freq", f"[{pattern}]"]
    return tuple(said)


def _whole(name: str, value: Any) -> int:
    if value != int(value):
        refuse(f"its {name} is {value}, which is not whole")
    return int(value)


def _scaling(schedule: Schedule) -> list[str]:
    if isinstance(schedule, Geometric):
        return []
    if isinstance(schedule, Linear):
        return ["--rotary-seq-len-interpolation-factor", str(_whole("factor", schedule.factor))]
    if isinstance(schedule, Llama3):
        borders = (schedule.trained_length, schedule.low, schedule.high)
        if borders != (8192, 1.0, 4.0):
            refuse(f"(trained_length, low, high) are {borders} and not (8192, 1, 4)")
        return ["--use-rope-scaling", "--rope-scaling-factor", str(float(schedule.factor))]
    refuse(f"its frequencies are those of {schedule!r}")


def _yarn(schedule: YaRN, rotary: Rotary) -> list[str]:
    if rotary.rotated_dim != rotary.head_dim or rotary.pairing == "interleaved":
        refuse("its YaRN is partial or interleaved")
    if beside_yarns(schedule) != 1:
        refuse(f"its attention factor is {schedule.attention_factor}, another than YaRN's")
    rounds = "" if schedule.truncate else "no-"
    return [
        "--rotary-scaling-factor", str(float(schedule.factor)),
        "--yarn-original-max-position-embeddings", str(schedule.trained_length),
        "--yarn-beta-fast", str(float(schedule.beta_fast)),
        "--yarn-beta-slow", str(float(schedule.beta_slow)),
        f"--{rounds}yarn-correction-range-round-to-int",
        "--mscale", "1.0", "--mscale-all-dim", "0.0",
    ]  # fmt: skip
