"""``posenc convert``: files and shards, whole or not at all."""

import json
import os
import tracemalloc

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from posenc.interop.huggingface import convert_weights

CONFIG = {"model_type": "llama", "hidden_size": 16, "num_attention_heads": 2,
          "num_key_value_heads": 1, "num_hidden_layers": 2, "head_dim": 8}  # fmt: skip
INDEX = "model.safetensors.index.json"


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
    given = load_file(there)
    for name, x in convert_weights(state(), CONFIG, to="interleaved").items():
        assert torch.equal(given[name], x)
        assert torch.equal(x, state()[name]) is not ("q_proj" in name or "k_proj" in name)
    with safe_open(there, "pt") as file:
        assert file.metadata() == {"format": "pt", "note": "é", "posenc_pairing": "interleaved"}
    assert run("convert", there, "-o", back).status == 0
    assert back.read_bytes() == source.read_bytes()


def test_shards_go_from_folder_to_folder_and_back(tmp_path, run):
    tensors, folder = state(), tmp_path / "model"
    folder.mkdir()
    names = list(tensors)
    shards = {"one.safetensors": names[:3], "two.safetensors": names[3:]}
    for shard, held in shards.items():
        save_file({n: tensors[n] for n in held}, folder / shard, metadata={"format": "pt"})
    weight_map = {n: shard for shard, held in shards.items() for n in held}
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
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
    for name in [*shards, INDEX]:
        assert (back / name).read_bytes() == (folder / name).read_bytes()


def test_memory_stays_below_one_tensor(tmp_path, run):
    """Each tensor has 8 MB, a head of it 1."""
    names = ("q_proj", "k_proj")
    big = {f"model.layers.0.self_attn.{n}.weight": torch.randn(1024, 2048) for n in names}
    save_file(big, tmp_path / "model.safetensors")
    config = CONFIG | {"head_dim": 128, "hidden_size": 2048, "num_attention_heads": 8}
    (tmp_path / "config.json").write_text(
        json.dumps(config | {"num_key_value_heads": 8} | {"num_hidden_layers": 1})
    )
    tracemalloc.start()
    assert run("convert", tmp_path, "-o", tmp_path / "out.safetensors").status == 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "half", "-o", "out.safetensors"], "already"),
        (["--config", "none.json", "-o", "out.safetensors"], "--config"),
    ],
)
def test_what_cannot_be_converted_is_refused_and_leaves_nothing(
    checkpoint, refused, monkeypatch, words, said
):
    monkeypatch.chdir(checkpoint)
    before = os.listdir()
    assert said in refused("convert", ".", *words)
    assert os.listdir() == before


def test_packed_rows_are_refused(tmp_path, refused):
    save_file({n: x.to(torch.uint8) for n, x in state().items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert "packed" in refused("convert", tmp_path, "-o", tmp_path / "out.safetensors")
