"""``posenc inspect``: what it says of one file and of two, and what it refuses."""

import json

import pytest
import torch
from safetensors.torch import save_file

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "max_position_embeddings": 131072, "rope_theta": 500000.0,
    "rope_scaling": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
}  # fmt: skip
GEMMA = {
    "model_type": "gemma3",
    "text_config": {"model_type": "gemma3_text", "num_hidden_layers": 12,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
}  # fmt: skip
SMOLLM = {"model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16,
          "num_hidden_layers": 8, "rope_theta": 5e6, "max_position_embeddings": 65536}  # fmt: skip
DEEPSEEK = {"model_type": "deepseek_v3", "num_hidden_layers": 3, "qk_rope_head_dim": 64,
            "qk_nope_head_dim": 128, "rope_theta": 1e4, "max_position_embeddings": 163840,
            "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
                             "original_max_position_embeddings": 4096}}  # fmt: skip
QWEN = {"model_type": "qwen2_vl", "text_config": {
    "model_type": "qwen2_vl_text", "hidden_size": 1536, "num_attention_heads": 12,
    "num_hidden_layers": 2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6,
                        "mrope_section": [16, 24, 24]}}}  # fmt: skip
ONE = {**LLAMA, "num_hidden_layers": 1}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes configurations where commands run, and gives their names."""
    monkeypatch.chdir(tmp_path)

    def write(config: object, name: str = "config.json"):
        (tmp_path / name).write_text(config if isinstance(config, str) else json.dumps(config))
        return name

    return write


@pytest.fixture
def said(run):
    """What is printed, lines joined."""

    def said(*words: object) -> str:
        ran = run("inspect", *words)
        assert ran.status == 0, ran.err
        assert max(map(len, ran.out.splitlines())) <= 80
        return " ".join(ran.out.split())

    return said


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        (
            LLAMA,
            [
                "config.json: llama, 32 layers layers 0-31 base 500,000 scaling llama3 factor 8",
                "trained length 8,192 target length 131,072",
                "pairing half: channels i and i + 64",
                "attention factor 1 wavelengths 6.283 to",
                "in bfloat16: 256 and the next are one",
                "softmax scale 0.0883883",  # 1 / √128
            ],
        ),
        (
            GEMMA,
            [
                "layers 0-4, 6-10 (sliding_attention) base 10,000 scaling default",
                "window the last 4,096 keys",
                "layers 5, 11 (full_attention) base 1,000,000 scaling linear factor 8",
            ],
        ),
        (
            DEEPSEEK,
            [
                "64 of 192 channels of a head (suffix)",
                "softmax scale 0.135234",  # (0.1 ln 40 + 1)² / √192
            ],
        ),
        ({**LLAMA, "model_type": "ours"}, ["assumed: this model type"]),
        (QWEN, ["(16, 24, 24) pairs for time, height and width", "vision (qwen2_vl_vision)"]),
    ],
)
def test_one_file_in_plain_words(said, written, config, wanted):
    out = said(written(config))
    assert [each for each in wanted if each not in out] == []
    assert out == said(".").replace(".: ", "config.json: ", 1)


SAME = "What is told of positions is the same."


@pytest.mark.parametrize(
    ("one", "other", "told", "untold"),
    [
        (ONE, {**ONE, "rope_theta": 1e6},
         ["base 500,000 1,000,000"], ["pairing", "rotated", SAME]),
        (ONE, {**ONE, "rope_theta": None, "rope_scaling": None,
               "rope_parameters": {**LLAMA["rope_scaling"], "rope_theta": 5e5}},
         [SAME], ["layer 0"]),
        (SMOLLM, {**SMOLLM, "model_type": "llama", "num_hidden_layers": 10},
         ["layers 3, 7", "base – 5,000,000", "layers 8-9"], [SAME]),
        (QWEN, {"model_type": "qwen2_vl", "text_config": QWEN["text_config"],
                "vision_config": {"hidden_size": 640, "num_heads": 4}},
         ["vision, layers 0-31"], ["text, layers"]),
    ],
)  # fmt: skip
def test_two_files_and_only_what_differs(said, written, one, other, told, untold):
    out = said(written(one, "a.json"), written(other, "b.json"))
    packed = out.replace(" ", "")
    assert [each for each in told if each.replace(" ", "") not in packed] == []
    assert [each for each in untold if each in out] == []


@pytest.mark.parametrize(
    ("config", "words", "why"),
    [
        ("{", [], "is not JSON"),
        ({"model_type": "ours"}, [], "is not known"),
        (LLAMA, ["--length", 0], "--length is 0"),
        ({"model_type": "gpt2"}, ["--figure", "a.svg"], "neither wavelengths nor a bias"),
    ],
)
def test_what_cannot_be_inspected_is_one_line(run, written, config, words, why):
    ran = run("inspect", written(config), *words)
    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert why in ran.err


@pytest.mark.parametrize("config", [LLAMA, {"model_type": "bloom"}])
def test_a_figure_stands_beside_a_document(run, written, tmp_path, config):
    ran = run("inspect", written(config), "--figure", "figure.svg", "--format", "json")
    assert json.loads(ran.out)["parts"]
    assert ran.err == "wrote figure.svg\n"
    first = (tmp_path / "figure.svg").read_text()
    assert "<svg" in first


def test_weights_beside_the_file_confirm_it(said, written, tmp_path):
    path = written({"model_type": "gpt2"})
    save_file({"wpe.weight": torch.zeros(1024, 768)}, tmp_path / "model.safetensors")
    assert "wpe.weight has 1024 rows of 768" in said(path)
