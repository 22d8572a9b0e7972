"""Numbers, JSON and arrays of every command; ``python -m tests.goldens.test_cli`` adds new ones."""

import contextlib
import csv
import io
import json
import math
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tests.goldens.written import known, near, write

from posenc.cli.main import main


def safetensors(shapes: dict[str, list[int]]) -> bytes:
    """A file of so many zeros, one byte each."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape)
        entries[name] = {"dtype": "F8_E4M3", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(end)


CASES = known("cli")
"""By the words behind ``posenc``: the status, what was printed, and what was written to made.*"""

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "rope_theta": 5e5}
ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192}  # fmt: skip
LLAMA = SMALL | {"model_type": "llama", "max_position_embeddings": 131072, "rope_scaling": ROPE}
FILES = {
    "llama.json": json.dumps(LLAMA).encode(),
    "smollm.json": json.dumps({**SMALL, "model_type": "smollm3", "num_hidden_layers": 8}).encode(),
    "bloom.json": b'{"model_type": "bloom", "n_head": 4, "n_layer": 2, "hidden_size": 64}',
    "text.txt": b"Hello world haha\nHow old are you\n\nHey you\n" + b"word " * 30 + b"\n",
    "model.safetensors": safetensors(
        {f"model.layers.{i}.self_attn.{n}_proj.weight": [64, 2] for i in range(2) for n in "qkv"}
    )[:-768] + bytes(range(256)) * 3,
}  # fmt: skip
DRAWN = ("walk", "parity", "Learned", "GRAPE")
"""Lines with such a word show random numbers, or float32 cosines of torch."""
WITHOUT_VECTORS = torch.backends.cpu.get_cpu_capability() == "DEFAULT"
WORDING = ("about", "note", "notes", "reason", "posenc")


def made(line: str) -> object:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in FILES.items():
            Path(name).write_bytes(content)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main([word.replace("~", " ") for word in line.split()])
        out.flush()
        text = out.buffer.getvalue().decode()
        written = {file.name: values(file) for file in sorted(Path().glob("made*"))}
    printed: object = list(csv.reader(io.StringIO(text))) if line.endswith("--format csv") else []
    with contextlib.suppress(json.JSONDecodeError):
        printed = json.loads(text)
    return [status, rounded(printed), written]


def values(file: Path) -> object:
    if file.suffix == ".npz":
        found = {name: array.tolist() for name, array in np.load(file).items()}
        return rounded({n: json.loads(v) if n == "metadata" else v for n, v in found.items()})
    if file.suffix != ".safetensors":
        return rounded(json.loads(file.read_text()) if file.suffix == ".json" else file.read_text())
    if b"F8_E4M3" in (raw := file.read_bytes()):
        return raw.hex()
    with safe_open(file, "np") as opened:
        found = {name: opened.get_tensor(name).tolist() for name in sorted(opened.keys())}
        return rounded({**found, "metadata": opened.metadata()})


def rounded(value: object) -> object:
    """Eight digits of each number; those of 1e-12 and less are what roundings leave of 0."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items() if name not in WORDING}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    with contextlib.suppress(TypeError, ValueError):
        if not isinstance(value, bool | int | None) and math.isfinite(number := float(value)):
            return 0.0 if abs(number) < 1e-12 else float(f"{number:.8g}")
    return value


@pytest.mark.parametrize("line", CASES)
def test_nothing_changed(line):
    if WITHOUT_VECTORS and any(word in line for word in DRAWN):
        pytest.skip("torch draws, and takes cosines, otherwise on a processor without vector units")
    assert near(made(line), CASES[line])


if __name__ == "__main__":
    held = {line: value or made(line) for line, value in CASES.items()}
    write("cli", held, separators=(",", ":"))
