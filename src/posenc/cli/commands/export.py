"""``posenc export``: what a config.json says of positions, for other programs."""

import contextlib
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Literal, Optional

from posenc.cli.errors import UserError
from posenc.cli.options import by_place, option

Target = Literal["gguf-keys", "vllm-overrides", "megatron", "npz", "safetensors", "onnx"]


@dataclass(frozen=True)
class Export:
    """Of positions, that is: for llama.cpp (GGUF metadata keys, and tensors of factors), vLLM
    (--hf-overrides) and Megatron-LM (its command line); or frequencies and exact tables as arrays
    (.npz, .safetensors), or the rotation as an ONNX program. What the other program cannot express
    is refused, and said.
    """

    config: Annotated[
        Path,
        by_place,
        option(
            "The config.json of a Hugging Face model, or the folder that it is in.",
            metavar="CONFIG.json",
        ),
    ]
    to: Annotated[
        Optional[Target],
        option(
            "In whose words; it must be said.",
            "gguf-keys|vllm-overrides|megatron|npz|safetensors|onnx",
        ),
    ] = None
    output: Annotated[
        Optional[Path],
        option("File to write; npz, safetensors and onnx need one.", "FILE",
                       shown="standard output", short="-o"),
    ] = None  # fmt: skip
    part: Annotated[
        Optional[str],
        option("Which part of a model of several, as text.", "NAME", shown="the only one"),
    ] = None
    longest: Annotated[
        Optional[int],
        option("Number of positions in tables; onnx needs it.", "N"),
    ] = None
    length: Annotated[
        Optional[int],
        option("Length of the sequences, for frequencies that depend on it.", "N"),
    ] = None
    architecture: Annotated[
        Optional[str],
        option("What llama.cpp calls it.", "NAME", shown="that of the model type"),
    ] = None
    operator: Annotated[
        Literal["basic", "RotaryEmbedding"],
        option(
            "ONNX: basic operators, or that of opset 23. The program takes 2 query heads and 1 key "
            "head; in Python onnx_program(heads=...) makes others."
        ),
    ] = "basic"

    def run(self) -> None:
        """Exports."""
        self._check()
        config = self.config / "config.json" if self.config.is_dir() else self.config
        self._check_output(config)
        try:
            self._written(config)
        except ImportError as error:
            raise UserError(str(error)) from None

    def _check(self) -> None:
        if self.to is None:
            raise UserError(f"in whose words? say --to, as --to {' | '.join(TAKES)}")
        if self.to in BINARY and self.output is None:
            raise UserError(f"{self.to} is no text; give a file, as --output rotation.{self.to}")
        if self.to == "onnx" and self.longest is None:
            raise UserError("a table needs an end; say how many positions, as --longest 4096")
        for name in ("part", "architecture", "operator", "length", "longest"):
            value = getattr(self, name)
            if value != Export.__dataclass_fields__[name].default and name not in TAKES[self.to]:
                raise UserError(f"--{name} says nothing to {self.to}; leave it out")
            if isinstance(value, int) and value < 1:
                raise UserError(f"--{name} is {value}; it must be at least 1")

    def _check_output(self, config: Path) -> None:
        """Refuses a file that is read, or that its name would call something else."""
        from posenc.cli.files import check

        if self.output is None:
            return
        if self.to in BINARY and self.output.suffix != f".{self.to}":
            raise UserError(f"{self.output}: the name of {self.to} must end in .{self.to}")
        if self.to not in BINARY and self.output.suffix in (f".{each}" for each in BINARY):
            raise UserError(
                f"{self.output}: {self.to} is text; give a name that does not end in "
                f"{self.output.suffix}"
            )
        check(self.output, CONFIG=config)

    def _written(self, config: Path) -> None:
        assert self.to is not None
        if self.length is not None:
            from posenc.interop.exports.subject import depends_on_length

            if not depends_on_length(config):
                raise UserError(
                    "--length says nothing to this model, whose frequencies are the same for any; "
                    "leave it out"
                )
        content = WRITERS[self.to](self, config)
        with self._file() as file:
            content(file)

    @contextlib.contextmanager
    def _file(self) -> Iterator[BinaryIO]:
        from posenc.cli.files import placed

        if self.output is None:
            yield sys.stdout.buffer
            return
        with placed(self.output) as file:
            yield file


TAKES: dict[str, tuple[str, ...]] = {
    "gguf-keys": ("part", "architecture"),
    "vllm-overrides": (),
    "megatron": ("part",),
    "npz": ("part", "longest", "length"),
    "safetensors": ("part", "longest", "length"),
    "onnx": ("part", "longest", "length", "operator"),
}
"""The options that each target looks at."""

BINARY = ("npz", "safetensors", "onnx")

Content = Callable[[BinaryIO], Any]


def _text(text: str) -> Content:
    return lambda file: file.write(f"{text}\n".encode())


def _gguf(given: Export, config: Path) -> Content:
    from posenc.interop.exports import gguf_keys

    keys = gguf_keys(config, part=given.part, architecture=given.architecture)
    for note in keys.notes:
        print(f"posenc: {note}", file=sys.stderr)
    tensors = {name: tensor.tolist() for name, tensor in keys.tensors.items()}
    return _text(json.dumps({"metadata": keys.metadata, "tensors": tensors}, indent=2))


def _vllm(_given: Export, config: Path) -> Content:
    from posenc.interop.exports import vllm_overrides

    return _text(json.dumps(vllm_overrides(config)))


def _megatron(given: Export, config: Path) -> Content:
    from posenc.interop.exports import megatron_arguments

    return _text(shlex.join(megatron_arguments(config, part=given.part)))


def _arrays(given: Export, config: Path) -> Content:
    from posenc.interop.exports import arrays, write_npz, write_safetensors

    found = arrays(config, longest=given.longest, part=given.part, length=given.length)
    write = write_npz if given.to == "npz" else write_safetensors
    return lambda file: write(found, file)


def _onnx(given: Export, config: Path) -> Content:
    from posenc.interop.exports import onnx_program
    from posenc.interop.exports.subject import check_reach, rotating_model

    model = rotating_model(config, "An ONNX program", part=given.part, length=given.length)
    rotary = model.only()
    assert given.longest is not None
    check_reach(config, longest=given.longest, length=given.length)
    program = onnx_program(rotary, longest=given.longest, operator=given.operator)
    return lambda file: file.write(program.model_proto.SerializeToString())


WRITERS: dict[str, Callable[[Export, Path], Content]] = {
    "gguf-keys": _gguf,
    "vllm-overrides": _vllm,
    "megatron": _megatron,
    "npz": _arrays,
    "safetensors": _arrays,
    "onnx": _onnx,
}
