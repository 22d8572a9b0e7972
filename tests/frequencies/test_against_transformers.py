"""Every schedule against transformers' rope utilities, for random configurations.

Their frequencies are float32, so the exact ones agree to a few roundings of float32; the float32
form of a schedule agrees bit for bit. Attention factors are float64 on both sides.
"""

import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers import DeepseekV3Config, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from posenc.frequencies import (
    DynamicNTK,
    Geometric,
    Linear,
    Llama3,
    LongRoPE,
    Proportional,
    YaRN,
)
from posenc.frequencies.schedule import Schedule

DIMS = st.sampled_from([8, 16, 32, 64, 128, 256])
BASES = st.sampled_from([1e4, 1.5e5, 5e5, 1e6, 1e7])
FACTORS = st.one_of(st.sampled_from([1.0, 2.0, 4.0, 8.0, 16.0, 40.0]), st.floats(1.0, 128.0))
TRAINED = st.sampled_from([2048, 4096, 8192, 32768, 131072])
RANDOM = settings(max_examples=25, deadline=None)


def theirs(
    kind: str, dim: int, base: float, longest: int = 131072, seq_len: int | None = None, **fields
) -> tuple[torch.Tensor, float]:
    config = LlamaConfig(
        hidden_size=4 * dim,
        num_attention_heads=4,
        head_dim=dim,
        max_position_embeddings=longest,
        rope_parameters={"rope_type": kind, "rope_theta": base, **fields},
    )
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=seq_len)


def exact(schedule: Schedule) -> torch.Tensor:
    return torch.tensor([2 * math.pi / length for length in schedule.wavelengths()]).double()


def agree(
    schedule: Schedule, inverse: torch.Tensor, factor: float, *, bitwise=True, rtol=4e-6
) -> None:
    torch.testing.assert_close(exact(schedule), inverse.double(), rtol=rtol, atol=1e-12)
    assert schedule.attention_factor == pytest.approx(factor, rel=1e-15)
    if bitwise:
        assert torch.equal(schedule.float32("float32"), inverse)


@RANDOM
@given(dim=DIMS, base=BASES, factor=FACTORS)
def test_linear(dim, base, factor):
    agree(Linear(Geometric(dim, base), factor), *theirs("linear", dim, base, factor=factor))


@RANDOM
@given(dim=DIMS, base=BASES, factor=FACTORS, trained=TRAINED, stretch=st.floats(0.1, 30.0))
def test_dynamic(dim, base, factor, trained, stretch):
    length = max(1, int(stretch * trained))
    schedule = DynamicNTK(Geometric(dim, base), factor, trained).at(length)
    wanted = theirs("dynamic", dim, base, longest=trained, seq_len=length, factor=factor)
    # Rounded once more in their float64 factor: not always the same float32.
    agree(schedule, *wanted, bitwise=False)


@RANDOM
@given(
    dim=DIMS,
    base=BASES,
    factor=FACTORS,
    trained=TRAINED,
    fast=st.floats(16.0, 64.0),
    slow=st.floats(0.5, 4.0),
    truncate=st.booleans(),
    scales=st.sampled_from([(None, None), (1.0, 1.0), (0.707, 1.0), (1.0, 0.5), (0.0, 1.0)]),
    attention=st.sampled_from([None, None, 1.0, 1.3]),
)
def test_yarn(dim, base, factor, trained, fast, slow, truncate, scales, attention):
    """A frequency is f (1 − r + r / factor); where r is near 1, what float32 rounds off r is
    ``factor`` times as much of the result.
    """
    schedule = YaRN(Geometric(dim, base), factor, trained, fast, slow, truncate, *scales, attention)
    fields = {
        "factor": factor, "original_max_position_embeddings": trained, "beta_fast": fast,
        "beta_slow": slow, "truncate": truncate, "mscale": scales[0], "mscale_all_dim": scales[1],
        "attention_factor": attention,
    }  # fmt: skip
    agree(schedule, *theirs("yarn", dim, base, **fields), rtol=4e-6 + 2**-21 * factor)


@RANDOM
@given(
    dim=DIMS,
    base=BASES,
    factor=FACTORS,
    trained=TRAINED,
    low=st.floats(0.5, 2.0),
    width=st.one_of(st.just(0.0), st.floats(0.5, 8.0)),  # 0 in Llama 4 Scout
)
@example(dim=128, base=1.5e5, factor=40.0, trained=8192, low=1.3203125, width=1.0)
def test_llama3(dim, base, factor, trained, low, width):
    """Between its bounds a frequency is f (s + (1 − s) / factor), s = (r − low) / width, where r is
    trained / wavelength. A rounding of r in float32 moves s by up to 2⁻²³ (low + width) / width,
    and where s is near 0 that is ``factor`` times as much of the result.
    """
    schedule = Llama3(Geometric(dim, base), factor, low, low + width, trained)
    fields = {"low_freq_factor": low, "high_freq_factor": low + width,
              "original_max_position_embeddings": trained}  # fmt: skip
    lost = 2**-23 * factor * (low + width) / width if width else 0.0
    agree(schedule, *theirs("llama3", dim, base, factor=factor, **fields), rtol=4e-6 + lost)


@RANDOM
@given(data=st.data(), dim=DIMS, base=BASES, factor=FACTORS, trained=TRAINED, long=st.booleans())
def test_longrope(data, dim, base, factor, trained, long):
    divisors = st.lists(st.floats(1.0, 64.0, width=32), min_size=dim // 2, max_size=dim // 2)
    shorter, longer = (tuple(data.draw(divisors)) for _ in range(2))
    length = trained + 1 if long else trained
    schedule = LongRoPE(Geometric(dim, base), shorter, longer, trained, factor).at(length)
    fields = {"short_factor": list(shorter), "long_factor": list(longer),
              "original_max_position_embeddings": trained}  # fmt: skip
    agree(schedule, *theirs("longrope", dim, base, seq_len=length, factor=factor, **fields))


@RANDOM
@given(dim=DIMS, base=BASES, fraction=st.sampled_from([0.25, 0.5, 0.75, 1.0]), factor=FACTORS)
def test_proportional(dim, base, fraction, factor):
    schedule = Linear(Proportional(dim, fraction, base), factor)
    wanted = theirs("proportional", dim, base, partial_rotary_factor=fraction, factor=factor)
    agree(schedule, *wanted)


@pytest.mark.parametrize("factor", [1.0, 4.0, 40.0])
@pytest.mark.parametrize("all_dim", [None, 0.707, 1.0])
def test_the_softmax_scale_is_deepseeks(factor, all_dim):
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention

    fields = {} if all_dim is None else {"mscale": 1.0, "mscale_all_dim": all_dim}
    rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": factor,
            "original_max_position_embeddings": 4096}  # fmt: skip
    widths = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "q_lora_rank", "kv_lora_rank")
    config = DeepseekV3Config(
        hidden_size=32, num_attention_heads=2, num_hidden_layers=1, rope_parameters=rope | fields,
        **dict.fromkeys(widths, 8),
    )  # fmt: skip
    yarn = YaRN(Geometric(8), factor, 4096, **fields)
    scaling = DeepseekV3Attention(config, layer_idx=0).scaling
    assert scaling == pytest.approx(16**-0.5 * yarn.softmax_factor, rel=1e-14)
