"""Megatron-LM's arguments: their rotation, written again from its sources."""

import math

import pytest
import torch

from posenc.interop.exports import megatron_arguments
from posenc.interop.huggingface import rotaries_from_config, rotary_from_config

HEADS = {"hidden_size": 512, "num_attention_heads": 4, "num_hidden_layers": 4}
LLAMA3 = {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}


def read(words):
    """The words behind each argument: numbers where they are any."""
    found, name = {}, ""
    for word in words:
        if word.startswith("--"):
            name = word.removeprefix("--")
            found[name] = []
        else:
            found[name].append(float(word) if word[0].isdigit() else word)
    return {name: given[0] if len(given) == 1 else given for name, given in found.items()}


def frequencies(args):
    """As ``RotaryEmbedding`` and ``YarnRotaryEmbedding``; and what multiplies cos and sin."""
    dim = int(args["kv-channels"] * args["rotary-percent"])
    plain = [args["rotary-base"] ** (-2 * i / dim) for i in range(dim // 2)]
    if args["position-embedding-type"] == "yarn":
        return yarn(args, plain), (0.1 * math.log(args["rotary-scaling-factor"]) + 1) * args[
            "mscale"
        ]
    plain = [w / args.get("rotary-seq-len-interpolation-factor", 1) for w in plain]
    if "use-rope-scaling" in args:
        plain = [llama3(w, args["rope-scaling-factor"]) for w in plain]
    return plain, 1.0


def llama3(w, factor):
    smooth = min(1.0, max(0.0, (8192 * w / (2 * math.pi) - 1) / 3))
    return w * ((1 - smooth) / factor + smooth)


def yarn(args, plain):
    def border(turns):
        ratio = args["yarn-original-max-position-embeddings"] / (turns * 2 * math.pi)
        return len(plain) * math.log(ratio) / math.log(args["rotary-base"])

    low, high = border(args["yarn-beta-fast"]), border(args["yarn-beta-slow"])
    if "yarn-correction-range-round-to-int" in args:
        low, high = math.floor(low), math.ceil(high)
    kept = [1 - min(1.0, max(0.0, (i - low) / (high - low))) for i in range(len(plain))]
    return [w * (k + (1 - k) / args["rotary-scaling-factor"]) for w, k in zip(plain, kept)]  # noqa: B905


CONFIGS = {
    "plain": {"model_type": "llama", "rope_theta": 5e5},
    "partial, interleaved": {"model_type": "gptj", "rotary_dim": 64, "n_embd": 512, "n_head": 4},
    "linear": {"model_type": "mistral", "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "llama3": {"model_type": "llama", "rope_theta": 5e5, "rope_scaling": LLAMA3},
    "yarn": {"model_type": "qwen2", "rope_scaling": YARN},
    "yarn, not rounded": {"model_type": "qwen2", "rope_scaling": YARN | {"truncate": False}},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_megatron_turns_every_pair_as_we_do(name):
    config = HEADS | CONFIGS[name]
    rotary, args = rotary_from_config(config), read(megatron_arguments(config))
    found, strength = frequencies(args)
    ours = [2 * math.pi / length for length in rotary.frequencies.wavelengths()]
    torch.testing.assert_close(torch.tensor(found), torch.tensor(ours), rtol=1e-6, atol=0)
    assert strength == pytest.approx(rotary.frequencies.attention_factor)
    assert ("rotary-interleaved" in args) == (rotary.pairing == "interleaved")
    assert args["kv-channels"] == rotary.head_dim


def test_layers_without_rotation_are_a_pattern():
    config = HEADS | {"model_type": "smollm3"}
    pattern = read(megatron_arguments(config))["no-rope-freq"]
    assert pattern == "[0,0,0,1]"
    assert [rotary is None for rotary in rotaries_from_config(config)] == [False] * 3 + [True]


def test_other_schemes():
    words = megatron_arguments({"model_type": "gpt2"})
    assert words == ("--position-embedding-type", "learned_absolute", "--max-position-embeddings",
                     "1024")  # fmt: skip
    vl = {
        "model_type": "qwen2_vl_text",
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    }
    args = read(megatron_arguments(HEADS | vl))
    assert (args["position-embedding-type"], args["mrope-section"]) == ("mrope", [16, 24, 24])


REFUSED = [
    ({"model_type": "llama", "rope_theta": 10000.5}, "base"),
    ({"model_type": "llama", "rope_scaling": LLAMA3 | {"high_freq_factor": 8.0}}, "8192"),
    ({"model_type": "deepseek_v3"}, "last channels"),
    ({"model_type": "bloom", "n_head": 4}, "ALiBi"),
]


@pytest.mark.parametrize(("config", "noun"), REFUSED)
def test_what_megatron_would_compute_otherwise_is_refused(config, noun):
    with pytest.raises(ValueError, match=noun):
        megatron_arguments(HEADS | config)
