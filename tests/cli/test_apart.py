"""No command writes over a file that it reads, by whatever name or link."""

from dataclasses import fields
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from posenc.cli.commands import COMMANDS, command_named

WRITTEN = ("output", "write", "export", "figure", "save_tokenizer")

ASKED = {
    ("convert", "config", "output"): ["{weights}", "--config", "{read}", "-o", "{write}"],
    ("export", "config", "output"): ["{read}", "--to", "gguf-keys", "-o", "{write}"],
    ("lab", "folder", "export"): ["report", "quick", "--folder", "{read}", "--export", "{write}"],
    ("parity", "config", "write"): ["vllm", "exact", "--config", "{read}", "--write", "{write}"],
    ("parity", "weights", "write"): [
        *("vllm", "exact", "--encoding", "Rotary(8)"),
        *("--weights", "{read}", "--write", "{write}"),
    ],
}
"""The words of each command that reads one file and writes another."""

for _write in ("output", "save_tokenizer"):
    _words = [f"--{_write.replace('_', '-')}", "{write}"]
    for _read in ("file", "tokenizer", "vocabulary", "embeddings"):
        _text = [] if _read == "file" else ["-"]
        _beside = ["--vocabulary", "{weights}"] if _read == "embeddings" else []
        ASKED["encode", _read, _write] = [*_text, *_beside, f"--{_read}", "{read}", *_words]

BY_NAME = {
    "check": "a figure ends in .png, .svg or .pdf, and what is checked does not",
    "inspect": "a figure ends in .png, .svg or .pdf, and a configuration is JSON",
}
"""Commands that read and write files whose names cannot be the same, and why."""

IN_PLACE = {("convert", "weights", "output"): "a checkpoint may be converted where it lies"}
IS_A_FOLDER = {("lab", "folder", "output"): "the report ends in .html, and what is kept in .json"}


def pairs() -> set[tuple[str, str, str]]:
    """Each command with a file that it reads and one that it writes."""
    found = set()
    for name in COMMANDS:
        command = command_named(name)
        hints = get_type_hints(command)
        paths = [
            f.name for f in fields(command) if Path in (hints[f.name], *get_args(hints[f.name]))
        ]
        read = [each for each in paths if each not in WRITTEN]
        found |= {(name, one, other) for one in read for other in paths if other in WRITTEN}
    return found


def test_every_command_that_reads_and_writes_is_asked():
    told = set(ASKED) | set(IN_PLACE) | set(IS_A_FOLDER)
    assert {each for each in pairs() if each[0] not in BY_NAME} == told


@pytest.mark.parametrize("asked", ASKED, ids="-".join)
@pytest.mark.parametrize("by", ["name", "link", "other-name"])
def test_what_is_read_is_left_alone(refused, tmp_path, asked, by):
    suffix = ".safetensors" if asked[0] in ("parity", "encode", "convert") else ".json"
    read, beside = tmp_path / f"read{suffix}", tmp_path / "beside.safetensors"
    for path in (read, beside):
        path.write_text('{"model_type": "llama"}')
    write = read
    if by == "link":
        write = tmp_path / f"link{suffix}"
        write.symlink_to(read)
    elif by == "other-name":
        (tmp_path / "folder").mkdir()
        write = tmp_path / "folder" / ".." / read.name
    words = [each.format(read=read, write=write, weights=beside) for each in ASKED[asked]]
    said = refused(asked[0], *words)
    assert read.read_text() == '{"model_type": "llama"}', said
    assert " is also the " in said
