"""GGUF keys, read as llama.cpp reads them: its rotation, written again from its sources."""

import math

import pytest
import torch

from posenc.interop.exports import gguf_keys
from posenc.interop.exports.gguf import architectures
from posenc.interop.huggingface import rotary_from_config

gguf = pytest.importorskip("gguf", reason="pip install posenc[test]")

ARCHITECTURES = {kind: name for name, facts in architectures().items() for kind in facts["types"]}

HEADS = {"hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 2}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
PAIRS = [1.0 + i / 4 for i in range(48)]
LONGROPE = {"rope_type": "longrope", "short_factor": PAIRS, "long_factor": PAIRS[::-1]}

CONFIGS = {
    "plain": {"model_type": "llama", "rope_theta": 5e5},
    "partial": {"model_type": "gpt_neox", "rotary_pct": 0.25},
    "linear": {"model_type": "mistral", "rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "yarn": {"model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6, "rope_scaling": YARN},
    "yarn, its own factor": {
        "model_type": "qwen2", "rope_scaling": YARN | {"attention_factor": 0.75},
    },
    "yarn, no factor": {
        "model_type": "llama", "rope_scaling": YARN | {"mscale": 1.0, "mscale_all_dim": 1.0},
    },
    "llama3": {"model_type": "llama", "rope_theta": 5e5, "rope_scaling": LLAMA3},
}  # fmt: skip


def angles(keys, architecture, tensors=None):
    """The angle of each pair at position 1, and what cos and sin are multiplied with.

    As ``load_hparams``, ``llama_context`` and ``ggml_rope_cache_init`` of llama.cpp.
    """
    read = {name.removeprefix(f"{architecture}.rope."): v for name, v in keys.metadata.items()}
    dims, base = read["dimension_count"], read.get("freq_base", 10000.0)
    kind, factor = read.get("scaling.type", "linear"), read.get("scaling.factor", 0.0)
    scale = 1.0 if not factor or kind == "none" else 1 / factor
    strength = read.get("scaling.attn_factor", 1.0)
    divisors = keys.tensors.get(tensors or "rope_freqs.weight", torch.ones(dims // 2)).tolist()
    found = []
    for i in range(dims // 2):
        extrapolated = base ** (-2 * i / dims) / divisors[i]
        angle = extrapolated * scale
        if kind == "yarn":
            low, high = (
                dims * math.log(read["scaling.original_context_length"] / (n * 2 * math.pi))
                / (2 * math.log(base)) for n in (32, 1)
            )  # fmt: skip
            low, high = max(0, math.floor(low)), min(dims - 1, math.ceil(high))
            mix = 1 - min(1.0, max(0.0, (i - low) / max(0.001, high - low)))
            angle = angle * (1 - mix) + extrapolated * mix
        found.append(angle)
    if kind == "yarn":
        strength *= 1 + 0.1 * math.log(1 / scale)
    return torch.tensor(found, dtype=torch.float64), strength


@pytest.mark.parametrize("name", CONFIGS)
def test_llama_cpp_turns_every_pair_as_we_do(name):
    config = HEADS | CONFIGS[name]
    rotary = rotary_from_config(config)
    found, strength = angles(gguf_keys(config), ARCHITECTURES[config["model_type"]])
    ours = 2 * math.pi / torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    torch.testing.assert_close(found, ours, rtol=1e-7, atol=0)
    assert strength == pytest.approx(rotary.frequencies.attention_factor, rel=1e-12)


@pytest.mark.parametrize(("length", "tensor"), [(4096, "short"), (4097, "long")])
def test_both_lists_of_longrope(length, tensor):
    config = HEADS | {
        "model_type": "phi3", "head_dim": 96, "max_position_embeddings": 131072, "hidden_size": 384,
        "original_max_position_embeddings": 4096, "rope_scaling": LONGROPE,
    }  # fmt: skip
    rotary = rotary_from_config(config, length=length)
    found, strength = angles(gguf_keys(config), "phi3", f"rope_factors_{tensor}.weight")
    ours = 2 * math.pi / torch.tensor(rotary.frequencies.wavelengths(), dtype=torch.float64)
    torch.testing.assert_close(found, ours, rtol=1e-7, atol=0)
    assert strength == pytest.approx(math.sqrt(1 + math.log(32) / math.log(4096)))


MODERNBERT = {"model_type": "modernbert", "num_hidden_layers": 4, "hidden_size": 64}

KEYS = {
    "sliding layers with a base of their own": (
        MODERNBERT | {"global_rope_theta": 160_000.0, "local_rope_theta": 10_000.0},
        {"freq_base": 160_000.0, "freq_base_swa": 10_000.0},
    ),
    "the sliding base in the program": (
        {"model_type": "gemma3_text", "head_dim": 64, "num_hidden_layers": 6,
         "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
        {"scaling.factor": 8.0, "freq_base_swa": None},
    ),
    "layers left unrotated": (
        {"model_type": "smollm3", "num_hidden_layers": 9}, {"freq_base": 2e6},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_architectures(name):
    config, wanted = KEYS[name]
    architecture = ARCHITECTURES[config["model_type"]]
    read = gguf_keys(HEADS | config).metadata
    assert {key: read.get(f"{architecture}.rope.{key}") for key in wanted} == wanted


def test_every_key_and_architecture_is_one_of_llama_cpp():
    known = {value for name, value in vars(gguf.Keys.Rope).items() if name.isupper()}
    for config in CONFIGS.values():
        architecture = ARCHITECTURES[config["model_type"]]
        for key in gguf_keys(HEADS | config).metadata:
            assert key.replace(architecture, "{arch}", 1) in known
    names = gguf.MODEL_ARCH_NAMES
    assert set(architectures()) <= set(names.values())
    for reads, tensor in (
        ("rope_freqs", gguf.MODEL_TENSOR.ROPE_FREQS),
        ("lists", gguf.MODEL_TENSOR.ROPE_FACTORS_LONG),
    ):
        has = {names[arch] for arch, held in gguf.MODEL_TENSORS.items() if tensor in held}
        assert {name for name, facts in architectures().items() if reads in facts} <= has


REFUSED = [
    ({"model_type": "llama", "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "length"),
    ({"model_type": "qwen2", "rope_scaling": YARN | {"truncate": False}}, "truncate"),
    ({"model_type": "gemma", "head_dim": 128, "rope_scaling": LLAMA3}, "rope_freqs"),
    ({"model_type": "bloom", "n_head": 4}, "ALiBi"),
    ({"model_type": "gptj"}, "architecture"),
]


@pytest.mark.parametrize(("config", "noun"), REFUSED)
def test_what_llama_cpp_would_compute_otherwise_is_refused(config, noun):
    with pytest.raises(ValueError, match=noun):
        gguf_keys(HEADS | config)
