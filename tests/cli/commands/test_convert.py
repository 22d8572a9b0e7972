"""``posenc convert``: files and shards, whole or not at all."""

import errno
import json
import tracemalloc

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from posenc.cli.io import permuted
from posenc.interop.huggingface import convert_weights

CONFIG = {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2,
          "num_key_value_heads": 1, "num_hidden_layers": 2, "head_dim": 8}  # fmt: skip


def state(dtype: torch.dtype = torch.bfloat16) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    found = {"model.embed_tokens.weight": torch.randn(9, 16).to(dtype)}
    for layer in range(2):
        for name, rows in (("q_proj", 16), ("k_proj", 8), ("v_proj", 8)):
            key = f"model.layers.{layer}.self_attn.{name}"
            found[f"{key}.weight"] = torch.randn(rows, 16).to(dtype)
    return found


@pytest.fixture
def checkpoint(tmp_path):
    save_file(state(), tmp_path / "model.safetensors", metadata={"format": "pt", "note": "é"})
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_a_file_is_converted_as_its_state_dict_is_and_comes_back_bit_for_bit(checkpoint, run):
    source, there, back = (checkpoint / n for n in ("model.safetensors", "a.safetensors", "b"))
    said = run("convert", source, "--to", "interleaved", "-o", there)
    assert said.status == 0, said.err
    assert said.out == "4 of 7 tensors were brought from half to interleaved.\n"
    wanted, given = convert_weights(state(), CONFIG, to="interleaved"), load_file(there)
    assert all(torch.equal(given[name], x) for name, x in wanted.items())
    assert not torch.equal(given["model.layers.0.self_attn.q_proj.weight"], state()[
        "model.layers.0.self_attn.q_proj.weight"])  # fmt: skip
    with safe_open(there, "pt") as file:
        assert file.metadata() == {"format": "pt", "note": "é", "posenc_pairing": "interleaved"}
    assert run("convert", there, "-o", back).status == 0
    assert back.read_bytes() == source.read_bytes()


def test_shards_go_from_folder_to_folder_and_back(tmp_path, run):
    tensors = state()
    names = list(tensors)
    folder = tmp_path / "model"
    folder.mkdir()
    shards = {"one.safetensors": names[:3], "two.safetensors": names[3:]}
    for shard, held in shards.items():
        save_file({n: tensors[n] for n in held}, folder / shard, metadata={"format": "pt"})
    weight_map = {n: shard for shard, held in shards.items() for n in held}
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    there, back = tmp_path / "there", tmp_path / "back"
    assert run("convert", folder, "-o", there).status == 0
    assert json.loads((there / "config.json").read_text())["posenc_pairing"] == "interleaved"
    wanted = convert_weights(tensors, CONFIG, to="interleaved")
    for shard, held in shards.items():
        given = load_file(there / shard)
        assert all(torch.equal(given[n], wanted[n]) for n in held)
    assert run("convert", there, "-o", back).status == 0
    assert json.loads((back / "config.json").read_text()) == CONFIG
    for name in [*shards, "model.safetensors.index.json"]:
        assert (back / name).read_bytes() == (folder / name).read_bytes()


def test_memory_stays_below_one_tensor(tmp_path, run):
    """Each tensor has 8 MB, a head of it 1; it is read once, and once turned into numbers."""
    big = {"model.embed_tokens.weight": torch.zeros(1024, 2048)}
    for name in ("q_proj", "k_proj"):
        big[f"model.layers.0.self_attn.{name}.weight"] = torch.randn(1024, 2048)
    save_file(big, tmp_path / "model.safetensors")
    config = {"model_type": "llama", "num_hidden_layers": 1, "head_dim": 128, "hidden_size": 2048,
              "num_attention_heads": 8}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    tracemalloc.start()
    assert run("convert", tmp_path, "-o", tmp_path / "out.safetensors").status == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def left(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_full_disk_leaves_nothing(checkpoint, refused, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = left(checkpoint)
    monkeypatch.setattr(permuted, "_permute", full)
    output = checkpoint / "out.safetensors"
    assert "No space left" in refused("convert", checkpoint, "-o", output)
    assert left(checkpoint) == before


def test_a_full_disk_leaves_no_folder_of_shards(checkpoint, refused, monkeypatch):
    names = list(state())
    index = {"weight_map": dict.fromkeys(names, "model.safetensors")}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = left(checkpoint)
    monkeypatch.setattr(permuted, "_copy", full)
    refused("convert", checkpoint, "-o", checkpoint / "out")
    assert left(checkpoint) == before


def test_what_it_refuses(checkpoint, run, refused, tmp_path):
    output = checkpoint / "out.safetensors"
    assert "--output" in refused("convert", checkpoint)
    assert "already" in refused("convert", checkpoint, "--to", "half", "-o", output)
    run("convert", checkpoint, "-o", output)
    twice = checkpoint / "twice.safetensors"
    said = refused("convert", output, "--to", "interleaved", "-o", twice)
    assert "already" in said
    whole = (checkpoint / "model.safetensors").read_bytes()
    (checkpoint / "model.safetensors").write_bytes(whole[:-1])
    assert "a part is missing" in refused("convert", checkpoint, "-o", twice)
    (checkpoint / "model.safetensors").write_bytes(b"not one")
    assert "no safetensors file" in refused("convert", checkpoint, "-o", twice)


def test_it_asks_for_a_configuration(checkpoint, refused):
    (checkpoint / "config.json").unlink()
    assert "--config" in refused("convert", checkpoint, "-o", checkpoint / "out.safetensors")


def test_a_type_that_nobody_measured_is_refused(checkpoint, refused):
    (checkpoint / "config.json").write_text(
        json.dumps(CONFIG | {"model_type": "ours", "rope_theta": 1e4})
    )
    said = refused("convert", checkpoint, "-o", checkpoint / "out.safetensors")
    assert "was not measured" in said


def header(entries: object) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


BROKEN = {
    "gap": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}) + bytes(8),
    "backwards": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, -4]}}),
    "words": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": ["0", "4"]}}) + bytes(4),
    "a list": header([1, 2]),
    "long": (2**40).to_bytes(8, "little") + b"{}",
    "nothing": b"",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_broken_headers_are_refused(checkpoint, refused, data):
    (checkpoint / "model.safetensors").write_bytes(data)
    said = refused("convert", checkpoint, "-o", checkpoint / "out.safetensors")
    assert "no safetensors file" in said


def test_an_index_that_points_out_of_its_folder_is_refused(checkpoint, refused):
    index = {"weight_map": {"a": "../model.safetensors"}}
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "another folder" in refused("convert", checkpoint, "-o", checkpoint / "out")


def test_packed_rows_are_refused(tmp_path, refused):
    tensors = {n: x.to(torch.uint8) for n, x in state().items()}
    save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert "packed" in refused("convert", tmp_path, "-o", tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()
