"""No command writes over a file that it reads, by whatever link."""

import pytest

EXACT = ["parity", "vllm", "exact"]
ASKED = {
    "convert": ["convert", "{other}", "--config", "{read}", "-o", "{write}"],
    "export": ["export", "{read}", "--to", "gguf-keys", "-o", "{write}"],
    "lab": ["lab", "report", "quick", "--folder", "{read}", "--export", "{write}"],
    "parity": [*EXACT, "--config", "{read}", "--write", "{write}"],
    "encode file": ["encode", "--file", "{read}", "-o", "{write}"],
    "encode tokenizer": ["encode", "-", "--tokenizer", "{read}", "--save-tokenizer", "{write}"],
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_read_is_left_alone(refused, tmp_path, asked):
    suffix = ".json" if asked in ("export", "lab") else ".safetensors"
    read, write, other = (tmp_path / f"{name}{suffix}" for name in ("read", "link", "other"))
    read.write_text('{"model_type": "llama"}')
    write.symlink_to(read)
    other.touch()
    said = refused(*(word.format(read=read, write=write, other=other) for word in ASKED[asked]))
    assert " is also the " in said
    assert read.read_text() == '{"model_type": "llama"}'
