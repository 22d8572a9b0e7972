"""No command writes over a file that it reads, by whatever name or link."""

import pytest

EXACT = ["parity", "vllm", "exact"]
ASKED = {
    "convert": ["convert", "{other}", "--config", "{read}", "-o", "{write}"],
    "export": ["export", "{read}", "--to", "gguf-keys", "-o", "{write}"],
    "lab": ["lab", "report", "quick", "--folder", "{read}", "--export", "{write}"],
    "parity config": [*EXACT, "--config", "{read}", "--write", "{write}"],
    "parity weights": [*EXACT, "--encoding", "Rotary(8)", "--weights", "{read}",
                       "--write", "{write}"],
    "encode file": ["encode", "--file", "{read}", "-o", "{write}"],
    "encode tokenizer": ["encode", "-", "--tokenizer", "{read}", "--save-tokenizer", "{write}"],
    "encode embeddings": ["encode", "-", "--vocabulary", "{other}", "--embeddings", "{read}",
                          "-o", "{write}"],
}  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("by", ["name", "link"])
def test_what_is_read_is_left_alone(refused, tmp_path, asked, by):
    suffix = ".json" if asked in ("export", "lab") else ".safetensors"
    read, write = tmp_path / f"read{suffix}", tmp_path / f"read{suffix}"
    read.write_text('{"model_type": "llama"}')
    if by == "link":
        write = tmp_path / f"link{suffix}"
        write.symlink_to(read)
    other = tmp_path / "other.safetensors"
    other.touch()
    said = refused(*(word.format(read=read, write=write, other=other) for word in ASKED[asked]))
    assert " is also the " in said
    assert read.read_text() == '{"model_type": "llama"}'
