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
        suffixes = [f".{asked.to}"] if asked.to in BINARY else []
        check(output, *suffixes, CONFIG=config)
    given = {name: getattr(asked, name) for name in TAKES[asked.to]}
    with nullcontext(sys.stdout.buffer) if output is None else placed(output) as file:
        if asked.to == "npz":
            exports.write_npz(exports.arrays(config, **given), file)
        elif asked.to == "safetensors":
            exports.write_safetensors(exports.arrays(config, **given), file)
        elif asked.to == "onnx":
            file.write(_program(config, **given))
        else:
            file.write(f"{_text(asked.to, config, given)}\n".encode())


def _program(
    config: Path, part: str | None, longest: int, length: int | None, operator: Any
) -> bytes:
    model = subject.rotating_model(config, part=part, length=length)
    subject.check_reach(config, longest=longest, length=length)
    program = exports.onnx_program(model.only(), longest=longest, operator=operator)
    return program.model_proto.SerializeToString()


def _text(to: str, config: Path, given: dict[str, Any]) -> str:
    if to == "vllm-overrides":
        return json.dumps(exports.vllm_overrides(config))
    if to == "megatron":
        return shlex.join(exports.megatron_arguments(config, **given))
    keys = exports.gguf_keys(config, **given)
    for note in keys.notes:
        print(f"posenc: {note}", file=sys.stderr)
    tensors = {name: tensor.tolist() for name, tensor in keys.tensors.items()}
    return json.dumps({"metadata": keys.metadata, "tensors": tensors}, indent=2)
