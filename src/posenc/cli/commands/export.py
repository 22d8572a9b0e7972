"""``posenc export``: what a config.json says of positions, for other programs."""

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal

from typing_extensions import Doc

from posenc.cli.errors import UserError, check_heeded
from posenc.cli.files import check, config_in, placed
from posenc.cli.options import Name, Output, SomeWhole, by_place, named

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


@dataclass(frozen=True)
class Export:
    """For llama.cpp (GGUF metadata keys, and tensors of factors), vLLM (--hf-overrides) and
    Megatron-LM (its command line); or frequencies and exact tables as arrays (.npz, .safetensors),
    or the rotation as an ONNX program. What the other program cannot express is refused.

    An ONNX program takes 2 query heads and 1 key head; in Python onnx_program(heads=...) makes
    others.
    """

    config: Annotated[Path, by_place, named("FILE"), Doc("A config.json, or its folder.")]
    to: Annotated[
        Literal["gguf-keys", "vllm-overrides", "megatron", "npz", "safetensors", "onnx"],
        Doc("In whose words."),
    ]
    output: Annotated[Output, Doc("Where to write; npz, safetensors and onnx need it.")] = None
    part: Annotated[Name, Doc("Which part of a model of several, as text.")] = None
    longest: Annotated[SomeWhole, Doc("Positions in tables; onnx needs it.")] = None
    length: Annotated[SomeWhole, Doc("For frequencies that depend on it.")] = None
    architecture: Annotated[Name, Doc("What llama.cpp calls it, if not by the model type.")] = None
    operator: Annotated[
        Literal["basic", "RotaryEmbedding"], Doc("ONNX: basic operators, or that of opset 23.")
    ] = "basic"

    def run(self) -> None:
        """Exports."""
        config = config_in(self.config)
        self._check(config)
        write = self._writer(config)
        if self.output is None:
            write(sys.stdout.buffer)
            return
        with placed(self.output) as file:
            write(file)

    def _check(self, config: Path) -> None:
        if self.to in BINARY and self.output is None:
            raise UserError(f"{self.to} is no text; give a file, as --output rotation.{self.to}")
        if self.to == "onnx" and self.longest is None:
            raise UserError("a table needs an end; say how many positions, as --longest 4096")
        options = {name for names in TAKES.values() for name in names}
        check_heeded(self, **{n: n not in TAKES[self.to] and f"to {self.to}" for n in options})
        if self.output is not None:
            check(self.output, *([f".{self.to}"] if self.to in BINARY else []), CONFIG=config)

    def _writer(self, config: Path) -> Callable[[BinaryIO], Any]:
        from posenc.interop import exports
        from posenc.interop.exports import subject

        given: Any = {"part": self.part, "length": self.length}
        longest: Any = {"longest": self.longest}
        if self.to in ("npz", "safetensors"):
            found = exports.arrays(config, **longest, **given)
            write = exports.write_npz if self.to == "npz" else exports.write_safetensors
            return lambda file: write(found, file)
        if self.to == "onnx":
            model = subject.rotating_model(config, "An ONNX program", **given)
            subject.check_reach(config, **longest, length=self.length)
            program = exports.onnx_program(model.only(), **longest, operator=self.operator)
            data = program.model_proto.SerializeToString()
            return lambda file: file.write(data)
        if self.to == "gguf-keys":
            keys = exports.gguf_keys(config, part=self.part, architecture=self.architecture)
            for note in keys.notes:
                print(f"posenc: {note}", file=sys.stderr)
            tensors = {name: tensor.tolist() for name, tensor in keys.tensors.items()}
            text = json.dumps({"metadata": keys.metadata, "tensors": tensors}, indent=2)
        elif self.to == "vllm-overrides":
            text = json.dumps(exports.vllm_overrides(config))
        else:
            text = shlex.join(exports.megatron_arguments(config, part=self.part))
        return lambda file: file.write(f"{text}\n".encode())
