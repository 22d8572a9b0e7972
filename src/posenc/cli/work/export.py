"""``posenc export``: what a config.json says of positions, for other programs."""

import json
import shlex
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from posenc.cli.errors import UserError, check_heeded
from posenc.cli.files import check, config_in, placed
from posenc.interop import exports
from posenc.interop.exports import subject

TAKES = {
    "gguf-keys": ("part", "architecture"),
    "vllm-overrides": (),
    "megatron": ("part",),
    "npz": ("part", "longest", "length"),
    "safetensors": ("part", "longest", "length"),
    "onnx": ("part", "longest", "length", "operator"),
}
"""The options that each target looks at."""

BINARY = ("npz", "safetensors", "onnx")


def export(asked: Any) -> None:
    config, output = config_in(asked.config), asked.output
    if asked.to in BINARY and output is None:
        raise UserError(f"{asked.to} is no text; give a file, as --output rotation.{asked.to}")
    if asked.to == "onnx" and asked.longest is None:
        raise UserError("a table needs an end; say how many positions, as --longest 4096")
    names = {name for names in TAKES.values() for name in names}
    check_heeded(asked, **{n: n not in TAKES[asked.to] and f"to {asked.to}" for n in names})
    if output is not None:
        check(output, *([f".{asked.to}"] if asked.to in BINARY else []), CONFIG=config)
    part, length, longest = asked.part, asked.length, asked.longest
    if asked.to in ("npz", "safetensors"):
        arrays = exports.arrays(config, part=part, length=length, longest=longest)
        with placed(asked.output) as file:
            (exports.write_npz if asked.to == "npz" else exports.write_safetensors)(arrays, file)
        return
    if asked.to == "onnx":
        model = subject.rotating_model(config, part=part, length=length)
        subject.check_reach(config, longest=longest, length=length)
        program = exports.onnx_program(model.only(), longest=longest, operator=asked.operator)
        made = program.model_proto.SerializeToString()
    else:
        made = f"{_text(asked, config)}\n".encode()
    with nullcontext(sys.stdout.buffer) if output is None else placed(output) as file:
        file.write(made)


def _text(asked: Any, config: Path) -> str:
    if asked.to == "vllm-overrides":
        return json.dumps(exports.vllm_overrides(config))
    if asked.to == "megatron":
        return shlex.join(exports.megatron_arguments(config, part=asked.part))
    keys = exports.gguf_keys(config, part=asked.part, architecture=asked.architecture)
    for note in keys.notes:
        print(f"posenc: {note}", file=sys.stderr)
    tensors = {name: tensor.tolist() for name, tensor in keys.tensors.items()}
    return json.dumps({"metadata": keys.metadata, "tensors": tensors}, indent=2)
