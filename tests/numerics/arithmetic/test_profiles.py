"""Profiles against transformers, bit for bit, and against each other."""

import pytest
import torch
from transformers import CohereConfig, Llama4TextConfig, LlamaConfig
from transformers.models.cohere.modeling_cohere import CohereRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.llama4.modeling_llama4 import Llama4TextRotaryEmbedding

from posenc import Rotary
from posenc.frequencies import Geometric, Linear, Llama3
from posenc.interop.huggingface import rotary_from_config
from posenc.numerics.arithmetic import PROFILES

LENGTH, DIM = 1500, 64
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
ROPES = {
    "plain": {"rope_type": "default", "rope_theta": 1e6},
    "linear": {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0},
    "llama3": LLAMA3,
    "yarn": {
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0,
        "original_max_position_embeddings": 4096,
    },
}  # fmt: skip
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def configuration(kind=LlamaConfig, rope="plain"):
    return kind(
        hidden_size=2 * DIM, num_attention_heads=2, num_key_value_heads=2, num_hidden_layers=1,
        max_position_embeddings=32768, rope_parameters=dict(ROPES[rope]),
    )  # fmt: skip


def content(dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1, 2, LENGTH, DIM, generator=generator).to(dtype)


def in_arithmetic(rotary: Rotary, name: str) -> Rotary:
    return Rotary(
        rotary.frequencies, head_dim=rotary.head_dim, pairing=rotary.pairing, arithmetic=name
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rope", ROPES)
def test_transformers_bit_for_bit(rope, dtype):
    config, positions = configuration(rope=rope), torch.arange(7, 7 + LENGTH)
    q, k = content(dtype), content(dtype, 1)
    theirs = apply_rotary_pos_emb(q, k, *LlamaRotaryEmbedding(config)(q, positions[None]))
    ours = in_arithmetic(rotary_from_config(config), "transformers")
    made = ours.encode_both(q, k, ours.table(positions))
    assert all(torch.equal(a, b) for a, b in zip(made, theirs, strict=True))
    exact = rotary_from_config(config)
    assert not torch.equal(exact.encode_queries(q, exact.table(positions)), theirs[0])


def test_torchtitan_has_the_table_of_llama_4():
    """Both are Meta's own code: torch.polar of float32 angles."""
    config = configuration(Llama4TextConfig)
    config.head_dim = DIM
    theirs = Llama4TextRotaryEmbedding(config)(content(torch.float32), torch.arange(LENGTH)[None])
    cos, sin = PROFILES["torchtitan"].table(torch.arange(LENGTH), Geometric(DIM, 1e6))
    assert torch.equal(torch.complex(cos, sin), theirs[0])


def test_megatron_and_vllm_on_cpu_are_transformers_where_nothing_is_scaled_linearly():
    q, line = content(torch.bfloat16), torch.arange(LENGTH)
    for schedule in (Geometric(DIM, 1e6), Llama3(Geometric(DIM, 5e5))):
        made = {}
        for name in ("transformers", "megatron", "vllm-native"):
            rotary = Rotary(schedule, arithmetic=name)
            made[name] = rotary.encode_queries(q, rotary.table(line))
        assert torch.equal(made["transformers"], made["megatron"])
        assert torch.equal(made["transformers"], made["vllm-native"])


def test_linear_scaling_of_positions_is_not_that_of_frequencies():
    """1/3 of a position and 1/3 of a frequency round otherwise; 1/4 does not round at all."""
    for factor, equal in ((3.0, False), (4.0, True)):
        schedule = Linear(Geometric(DIM), factor)
        vllm, transformers = (
            PROFILES[name].table(torch.arange(LENGTH), schedule)[1]
            for name in ("vllm", "transformers")
        )
        assert torch.equal(vllm, transformers) == equal


def test_llama_cpp_multiplies_from_pair_to_pair():
    """By hand for base 16 and four pairs: every step is a half, so nothing rounds."""
    profile, schedule = PROFILES["llama.cpp"], Geometric(8, 16.0)
    divisors = profile.frequencies(schedule)
    angles = profile.angles(torch.tensor([3]), divisors, schedule)
    assert angles.tolist() == [[3.0, 1.5, 0.75, 0.375]]
    halved = profile.angles(torch.tensor([3]), divisors, Linear(schedule, 2))
    assert halved.tolist() == [[1.5, 0.75, 0.375, 0.1875]]
    # 1.1 is rounded before its inverse is: 1 / 1.1 itself would be the next float32
    slowed = profile.angles(torch.tensor([1]), divisors, Linear(schedule, 1.1))[0, 0]
    assert slowed == 1 / torch.tensor(1.1)
    assert slowed != torch.tensor(1 / 1.1)
    # the error of one step grows with the pair, here of base 10,000
    steps = profile.angles(torch.tensor([1]), torch.ones(64), Geometric(128))
    power = Geometric(128).float32("float32")
    assert 1e-8 < (steps[0] / power - 1).abs().max() < 5e-6


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_is_near_the_truth_and_names_its_source(name):
    profile = PROFILES[name]
    schedule = Geometric(DIM)
    ours, exact = (p.table(torch.arange(LENGTH), schedule) for p in (profile, PROFILES["exact"]))
    far = max((a - b).abs().max().item() for a, b in zip(ours, exact, strict=True))
    assert far < 5e-4
    assert (far == 0) == (name == "exact")
    assert profile.source
    assert profile.version
    assert profile.evidence in ("run", "table", "read")


def test_cohere_interleaves_and_rotates_in_float32():
    """A second family of transformers, which rotates as SGLang does but for its rounded table."""
    from transformers.models.cohere.modeling_cohere import apply_rotary_pos_emb as turn

    config, q = configuration(CohereConfig), content(torch.float32)
    cos, sin = CohereRotaryEmbedding(config)(q, torch.arange(LENGTH)[None])
    theirs = turn(q, q, cos, sin)[0]
    ours = Rotary(Geometric(DIM, 1e6), pairing="interleaved", arithmetic="sglang")
    assert torch.equal(ours.encode_queries(q, ours.table(torch.arange(LENGTH))), theirs)
