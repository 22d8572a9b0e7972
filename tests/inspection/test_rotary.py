"""Numbers about rotary models against transformers, float64 and brute force."""

import math

import pytest
import torch
from transformers import LlamaConfig, Phi3Config
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from posenc.frequencies import Geometric, YaRN
from posenc.inspection.precision import precision_of
from posenc.inspection.rotary import differences, grouped, inspect_config

SIZES = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 4}
LLAMA = {**SIZES, "model_type": "llama", "rope_theta": 1e4, "max_position_embeddings": 4096}
DTYPES = [torch.bfloat16, torch.float16, torch.float32]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1, 257, 4097, 131_072])
def test_shared_positions_by_brute_force(dtype, length):
    lost = precision_of(Geometric(4), length, dtype)
    held = torch.arange(length).to(dtype)
    assert lost.sharing == (held == held[-1]).sum()
    if length > lost.first_shared + 1:
        alike = (held[1:] == held[:-1]).nonzero()
        assert lost.first_shared == alike[0]
    assert lost.first_shared == round(2 / torch.finfo(dtype).eps)


def error_of(rope: dict, length: int, dtype: torch.dtype, schedule) -> float:
    """The largest error of transformers' module after ``.to(dtype)``, against float64."""
    config = LlamaConfig(**SIZES, max_position_embeddings=4096, rope_parameters=rope)
    module = LlamaRotaryEmbedding(config)
    module.inv_freq = module.inv_freq.to(dtype)
    positions = torch.arange(max(0, length - 1024), length)
    cos, sin = module(torch.zeros(1), positions[None])
    frequencies = 2 * math.pi / torch.tensor(schedule.wavelengths(), dtype=torch.float64)
    angles = (positions[:, None] * frequencies).repeat(1, 2)
    exact = torch.stack((angles.cos(), angles.sin())) * schedule.attention_factor
    return (torch.stack((cos[0], sin[0])) - exact).abs().max().item()


YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0}
CASES = [
    ({"rope_type": "default", "rope_theta": 1e4}, Geometric(64)),
    ({"rope_type": "default", "rope_theta": 1e6}, Geometric(64, 1e6)),
    ({**YARN, "original_max_position_embeddings": 4096}, YaRN(Geometric(64), 8.0, 4096)),
]


@pytest.mark.parametrize(("rope", "schedule"), CASES)
@pytest.mark.parametrize("length", [500, 32_768, 1_000_000])
def test_errors_are_those_of_transformers(rope, schedule, length):
    lost = precision_of(schedule, length)
    plain, rounded = (error_of(rope, length, d, schedule) for d in (torch.float32, torch.bfloat16))
    assert lost.float32_error == pytest.approx(plain, abs=3e-7)
    assert lost.frequency_error == pytest.approx(rounded, abs=3e-7)


PLAIN = {"rope_type": "default", "rope_theta": 1e4}
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}
LONGROPE = {
    "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 2048,
    "short_factor": [2.0] * 32, "long_factor": [4.0] * 32,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 2048,
}  # fmt: skip


def turns_of(rope: dict, length: int) -> torch.Tensor:
    """Turns a position in transformers' own module, once it has run over a length."""
    kind = Phi3RotaryEmbedding if rope["rope_type"] == "longrope" else LlamaRotaryEmbedding
    of = Phi3Config if kind is Phi3RotaryEmbedding else LlamaConfig
    outside = {"original_max_position_embeddings": 2048} if of is Phi3Config else {}
    lengths = {**outside, "max_position_embeddings": 4096}
    module = kind(of(**SIZES, **lengths, pad_token_id=0, rope_parameters=dict(rope)))
    module(torch.zeros(1), torch.arange(length)[None])
    return module.inv_freq.double() / (2 * math.pi)


@pytest.mark.parametrize(
    ("rope", "before", "trained", "target"),
    [
        (PLAIN, PLAIN, 4096, 20_000),
        (LINEAR, LINEAR, 4096, 16_384),  # nothing tells a length before it
        (DYNAMIC, DYNAMIC, 4096, 16_384),
        (LONGROPE, LONGROPE, 2048, 4096),
        ({**YARN, "original_max_position_embeddings": 2048}, PLAIN, 2048, 16_384),
        (LLAMA3, PLAIN, 2048, 16_384),
    ],
    ids=lambda value: value["rope_type"] if isinstance(value, dict) else "",
)
def test_turns_are_counted_over_both_lengths(rope, before, trained, target):
    config = {**LLAMA, "rope_parameters": rope}
    numbers = inspect_config(config, length=target).layers[0]
    turns = turns_of(rope, target)
    unfinished = turns_of(before, trained) * trained < 1
    assert numbers.unfinished == unfinished.sum()
    assert numbers.finished_later == (unfinished & (turns * target >= 1)).sum()
    assert numbers.shortest == pytest.approx(1 / turns.max().item(), rel=1e-5)
    assert numbers.longest == pytest.approx(1 / turns.min().item(), rel=1e-5)
    assert (numbers.trained_length, numbers.target_length) == (trained, target)


def test_lengths_and_factors_are_those_of_the_file():
    yarn = {**YARN, "original_max_position_embeddings": 4096}
    assert inspect_config({**LLAMA, "rope_parameters": yarn}).layers[0].target_length == 32_768
    config = {**LLAMA, "rope_parameters": LONGROPE}
    short, long = (inspect_config(config, length=n).layers[0] for n in (2048, 2049))
    assert (short.long_factors, long.long_factors) == (False, True)
    assert long.shortest == pytest.approx(2 * short.shortest)


def test_layers_without_rotation_are_none_and_differences_name_what_changed():
    layers = inspect_config({**LLAMA, "model_type": "smollm3"}).layers
    assert [places for places, _ in grouped(layers)] == [[0, 1, 2], [3]]
    assert layers[3] is None
    assert "base" in differences(layers[0], layers[3])
    one, other = (inspect_config({**LLAMA, "rope_theta": base}).layers[0] for base in (1e4, 1e6))
    assert differences(one, other) == ("base", "longest", "unfinished", "precision")
    assert differences(one, one) == ()
