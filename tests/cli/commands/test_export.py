"""``posenc export``: what the library gives, in files and on standard output."""

import json

import pytest

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "rope_theta": 5e5, "max_position_embeddings": 131072}  # fmt: skip


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_a_folder_is_read_and_notes_go_beside_the_text(run, config):
    ran = run("export", config.parent, "--to", "gguf-keys")
    assert json.loads(ran.out)["metadata"]
    assert "pairing is no key" in ran.err


@pytest.mark.compiles
@pytest.mark.slow("three seconds")
def test_an_onnx_program_goes_to_a_file(run, config, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install posenc[test]")
    path = tmp_path / "rotation.onnx"
    ran = run("export", config, "--to", "onnx", "--longest", 9, "-o", path)
    assert (ran.status, ran.out) == (0, "")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_inputs()] == ["q", "k", "positions"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--to npz", "--output rotation.npz"),
        ("--to onnx -o x.onnx", "--longest 4096"),
        ("--to megatron --longest 3", "--longest says nothing to megatron"),
    ],
)
def test_what_does_not_fit_is_refused(refused, config, words, said):
    assert said in refused("export", config, *words.split())
