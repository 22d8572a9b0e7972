"""Random command lines: a result, or one line that says what was wrong; nothing else, and soon."""

import contextlib
import io
import json
import math
import os
import tempfile
import time
import warnings
from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

from hypothesis import strategies as st
from tests.fuzz.tally import TALLY

from posenc.cli.commands import COMMANDS, command_named
from posenc.cli.main import main
from posenc.cli.options import by_place

CONFIGURATION = (
    '{"model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1,'
    ' "rope_theta": 10000.0, "max_position_embeddings": 64}'
)


def safetensors(shapes: dict[str, list[int]]) -> bytes:
    """A file of so many zeros, one byte each."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape)
        entries[name] = {"dtype": "F8_E4M3", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(entries).encode()
    return len(header).to_bytes(8, "little") + header + bytes(end)


FILES = {
    "lines.txt": b"a b c\nd e\n",
    "one.txt": b"a line without an end",
    "empty.txt": b"",
    "no_utf8.txt": b"x\n\xff",
    "config.json": CONFIGURATION.encode(),
    "half.json": CONFIGURATION[:40].encode(),
    "weights.safetensors": safetensors(
        {f"layers.0.self_attn.{name}_proj.weight": [64, 1] for name in "qkv"}
    ),
    "module.py": b"from torch import nn\nclass Same(nn.Module):\n    def forward(self, x):\n"
    b"        return x\n",
}
EXPRESSIONS = [
    *("Rotary(8)", "Rotary(7)", "Rotary(8, head_dim=12, rotated='suffix')", "XPos(Rotary(8))"),
    *("Rotary(YaRN(Geometric(8), 2, 64))", "Rotary(Proportional(8, 0.5))", "AxialRotary(8)"),
    *("MultimodalRotary(Rotary(8), (1, 1, 2))", "DINOv3Rotary(8, (2, 2))", "RoPEMixed(8, 2)"),
    *("QueryTemperature(8)", "ALiBi(2)", "ALiBi(2, is_causal=True)", "T5Bias(2)", "FIRE(2)"),
    *("KERPLE(2)", "Sandwich(2)", "Shaw(2, 8, 4)", "DeBERTa(2, 8)", "TransformerXL(2, 8)"),
    *("CoPE(2, 8, 4)", "Forgetting(2, 8)", "Temperature(2)", "SwinBias(2)", "SwinV2Bias(2)"),
    *("DecomposedRelative(2, 8, 4)", "Sinusoidal(8)", "Learned(8, 20)", "PoSE(9)", "Positional()"),
    *("", "x", "Rotary(", "Rotary(8", "__import__('os')", "Rotary(8)(8)", "Rotary(10**9)"),
]
NUMBERS = [
    *("0", "1", "2", "4", "8", "16", "50", "64") * 4,
    *("3", "7", "300", "-1", "-3", "1.5", "1e3", "nan", "inf"),
    *("9223372036854775807", "-9223372036854775808", "99999999999999999999", "x", ""),
]
OUTPUTS = [
    "o.png",
    "o.svg",
    "o.pdf",
    "o.npz",
    "o.safetensors",
    "o.csv",
    "o.json",
    "o.x",
    "no/o.png",
]
VALUES = {
    "encoding": EXPRESSIONS,
    "output": OUTPUTS,
    "figure": OUTPUTS,
    "save_tokenizer": ["o.json", "no/o.json", "lines.txt"],
    "format": ["text", "csv", "json", "x"],
    "dtype": ["float32", "float64", "float16", "bfloat16", "x"],
    "to": ["half", "interleaved", "x"],
    "convention": ["paper", "concatenated", "tensor2tensor", "timestep", "per_dimension", "x"],
    "theme": ["light", "dark", "x"],
    "norm": ["pre", "post", "x"],
    "stage": ["softmax", "13", "residual", "x", ""],
    "text": ["a b a", "", "x" * 100, "你好 !"],
    "target": ["module.py:Same", "module.py:x", "none.py:x", "os:getcwd", "x", ""],
    "arguments": ["{}", "[1]", "{", '{"frequencies": 8}'],
    "kind": ["tokens", "rotary", "bias", "pairs", "x"],
    "length": ["0", "1", "2", "5", "11", "20", "64", "300", "-4", "x", "99999999999999999999"],
}
PATHS = [*FILES, "none", ".", "-"]
LEFT_OUT = {"explore"}  # it serves until it is stopped
INSIDE = ("Traceback", "object has no", "NoneType", "unexpected keyword", "not subscriptable")
SECONDS = 60
MEMORY = 6 << 30


@st.composite
def lines(draw) -> list[str]:
    """Words: a command, and some of its options and arguments, most of them sensible."""
    name = draw(st.sampled_from([each for each in COMMANDS if each not in LEFT_OUT]))
    command = command_named(name)
    hints, words = get_type_hints(command, include_extras=True), [name]
    for field in fields(command):
        placed = by_place in get_args(hints[field.name])
        if draw(st.integers(0, 9)) >= (8 if placed else 3):
            continue
        if not placed:
            words.append(f"--{field.name.replace('_', '-')}")
        if get_args(hints[field.name])[0] is bool:
            continue
        several = VALUES.get(field.name, PATHS if "Path" in str(hints[field.name]) else NUMBERS)
        words.append(draw(st.sampled_from(several)))
    if draw(st.integers(0, 19)) == 0:
        words.insert(
            draw(st.integers(0, len(words))), draw(st.sampled_from(["--x", "-", "--", "y"]))
        )
    return words


def check_line(words: list[str]) -> None:
    """Run it where nothing can be harmed, and read what it says."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in FILES.items():
            Path(name).write_bytes(content)
        since = time.monotonic()
        status, said = _ran(words)
        took = time.monotonic() - since
        left = [each.name for each in Path(".").iterdir() if each.name.startswith(".")]
    TALLY.count("commands", f"status {status}")
    assert status in (0, 1, 2), f"{words} ended with {status}"
    if status == 2:
        boxed = "For full helptext" in said  # by tyro
        assert boxed or said.startswith("posenc: "), f"{words} complained by {said!r}"
        # And why, in the words of the subject, or all forms.
        quoted = boxed or "could not check" in said
        assert quoted or said.count("\n") == 1, f"{words} complained by {said!r}"
        inside = [] if quoted else [each for each in INSIDE if each in said]
        assert not inside, f"{words} complained in the words of something inside: {said}"
    assert took < SECONDS, f"{words} took {took:.0f} seconds"
    assert not left, f"{words} left {left}"
    assert _memory() < MEMORY, f"{words} took {_memory() >> 20} MB"


def _ran(words: list[str]) -> tuple[int, str]:
    """The exit status and what went to standard error."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(action="ignore"),
    ):
        return main(words), err.getvalue()


def _memory() -> int:
    """Bytes that this process has in memory."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if status.exists() else 0
