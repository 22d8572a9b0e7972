"""``posenc export``: what the library gives, in files and on standard output."""

import json
import shlex

import numpy
import pytest

from posenc.interop.exports import gguf_keys, megatron_arguments, vllm_overrides

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
         "num_hidden_layers": 2, "rope_theta": 5e5, "max_position_embeddings": 131072,
         "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                          "high_freq_factor": 4.0,
                          "original_max_position_embeddings": 8192}}  # fmt: skip


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_text_goes_to_standard_output(run, config):
    keys = gguf_keys(LLAMA)
    ran = run("export", config, "--to", "gguf-keys")
    said = json.loads(ran.out)
    assert said["metadata"] == keys.metadata
    assert said["tensors"]["rope_freqs.weight"] == keys.tensors["rope_freqs.weight"].tolist()
    assert "pairing is no key" in ran.err
    assert json.loads(run("export", config.parent, "--to", "vllm-overrides").out) == (
        vllm_overrides(LLAMA)
    )
    words = shlex.split(run("export", config, "--to", "megatron").out)
    assert tuple(words) == megatron_arguments(LLAMA)


def test_arrays_go_to_a_file(run, config, tmp_path):
    path = tmp_path / "rotation.npz"
    assert run("export", config, "--to", "npz", "--longest", 3, "-o", path).status == 0
    assert numpy.load(path)["layers.cos"].shape == (3, 8)
    path = tmp_path / "rotation.safetensors"
    assert run("export", config, "--to", "safetensors", "-o", path).status == 0
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        assert json.loads(file.metadata()["layers"])["pairing"] == "half"


def test_a_length_is_heeded_or_refused(run, refused, config, tmp_path):
    path = tmp_path / "rotation.npz"
    said = refused("export", config, "--to", "npz", "--length", 9999, "-o", path)
    assert "--length says nothing to this model" in said
    assert not path.exists()
    dynamic = {"rope_type": "dynamic", "factor": 4.0}
    config.write_text(json.dumps({**LLAMA, "rope_scaling": dynamic}))
    made = []
    for length in (131072, 524288):
        assert run("export", config, "--to", "npz", "--length", length, "-o", path).status == 0
        made.append(path.read_bytes())
    assert made[0] != made[1]


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
        ((), "in whose words"),
        (("--to", "npz"), "--output rotation.npz"),
        (("--to", "onnx", "-o", "x.onnx"), "--longest 4096"),
        (("--to", "megatron", "--longest", "3"), "--longest says nothing to megatron"),
        (("--to", "npz", "-o", "x.npz", "--longest", "0"), "at least 1"),
        (("--to", "gguf-keys", "--architecture", "gemma"), "reads no rope_freqs"),
    ],
)
def test_what_does_not_fit_is_refused(refused, config, words, said):
    assert said in refused("export", config, *words)


@pytest.mark.parametrize("to", ["gguf-keys", "npz"])
@pytest.mark.parametrize("link", [False, True])
def test_what_is_read_is_not_written(refused, config, tmp_path, to, link):
    before = config.read_bytes()
    name = config
    if link:
        name = tmp_path / f"linked.{to}"
        name.symlink_to(config)
    said = refused("export", config.parent, "--to", to, "-o", name)
    assert "is also the CONFIG" in said or "must end in .npz" in said
    assert config.read_bytes() == before


@pytest.mark.parametrize(
    ("to", "name", "said"),
    [
        ("npz", "x.safetensors", "must end in .npz"),
        ("safetensors", "x.npz", "must end in .safetensors"),
        ("npz", "-", "must end in .npz"),
        ("megatron", "-", "a file named -"),
    ],
)
def test_a_name_tells_what_is_in_it(refused, config, tmp_path, monkeypatch, to, name, said):
    monkeypatch.chdir(tmp_path)
    assert said in refused("export", config, "--to", to, "-o", name)
    assert not (tmp_path / name).exists()
