"""The checker finds the real faults of public packages and of common slips, and none in ours."""

import math

import pytest
import torch
from torch import nn

import posenc
from posenc import ALiBi, Learned, Rotary, Sinusoidal
from posenc.audit import CannotCheckError, check


def faults(factory, **options) -> dict[str, float]:
    return {fault.name: fault.number for fault in check(factory, **options).faults}


class Tutorial(nn.Module):
    """The module of the PyTorch tutorial, for [seq, batch, dim]."""

    def __init__(self, d_model: int = 64, max_len: int = 5000):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(0)].to(x.dtype)


def test_the_batch_axis():
    """Fed with [batch, seq, dim], the tutorial's module encodes the index of the batch."""
    found = faults(Tutorial)
    assert found["encodes the batch axis"] == pytest.approx(1.416, abs=0.01)  # sin 2, 1 − cos 2, …
    assert "encodes the batch axis" not in faults(Tutorial, seq_first=True)


def test_a_buffer_that_is_cast():
    found = faults(Tutorial, seq_first=True)
    assert 2**-10 < found["breaks when cast"] < 2**-8  # half a unit of bfloat16 below one


def test_a_wrong_exponent():
    def double(x):
        j, p = torch.arange(x.shape[-1]), torch.arange(x.shape[1])[:, None]
        angle = p / 10000 ** (2 * j / x.shape[-1])
        return (x + torch.where(j % 2 == 0, angle.sin(), angle.cos())).to(x.dtype)

    report = check(double)
    assert "wrong exponent" in [fault.name for fault in report.faults]
    assert "Sinusoidal(convention='double_exponent')" in str(report)


def test_length_dependent_encodings():
    def squeezed(x):
        p = torch.arange(x.shape[1])[:, None] / x.shape[1]
        return x + torch.sin(p * torch.arange(1, x.shape[-1] + 1)).to(x.dtype)

    assert faults(squeezed)["depends on the length"] > 0.1


def test_positional_encodings_caches_by_shape_alone():
    from positional_encodings.torch_encodings import PositionalEncoding1D

    found = faults(PositionalEncoding1D, arguments={"channels": 64})
    assert 1e-3 < found["shares state between calls"] < 4e-3  # a bfloat16 table, served as float32


@pytest.mark.filterwarnings("ignore")
def test_rotary_embedding_torch_loses_positions_in_bfloat16():
    from rotary_embedding_torch import RotaryEmbedding

    found = faults(lambda: RotaryEmbedding(64))
    assert found["loses positions in bfloat16"] > 0.1
    assert found["imprecise at long lengths"] > 1e-3


@pytest.mark.filterwarnings("ignore")
def test_rotary_embedding_torch_decodes_xpos_otherwise_than_it_prefills():
    from rotary_embedding_torch import RotaryEmbedding

    report = check(lambda: RotaryEmbedding(32, use_xpos=True))
    assert [fault.name for fault in report.faults] == ["decoding differs from prefill"]
    assert report.passed == ["is relative"]


def test_llama_of_transformers_is_damaged_by_a_cast_and_drifts():
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    config = LlamaConfig(hidden_size=256, num_attention_heads=4)
    report = check(lambda: LlamaRotaryEmbedding(config))
    found = {fault.name: fault.number for fault in report.faults}
    assert found["breaks when cast"] > 0.1
    assert 1e-3 < found["imprecise at long lengths"] < 0.1
    assert "is relative" in report.passed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_alibi_of_bloom_is_coarse_in_bfloat16(dtype):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    def bias(q_len, k_len):
        return build_alibi_tensor(torch.ones(1, k_len), 8, dtype).reshape(8, 1, k_len)

    report = check(bias)
    if dtype == torch.float32:
        assert report.ok
    else:
        assert [fault.name for fault in report.faults] == ["coarse at long lengths"]
        assert report.faults[0].number > 4
        assert "769 different values" in str(report)


def test_slopes_and_signs():
    def linear(slopes):
        def bias(q_len, k_len):
            distance = torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)
            return -torch.tensor(slopes)[:, None, None] * distance.abs()

        return bias

    assert not faults(linear([2.0 ** -(h + 1) for h in range(8)]))
    assert "wrong slopes" in faults(linear([0.5, 0.4, 0.3, 0.2]))
    assert "wrong sign" in faults(linear([-0.25, -0.0625, -0.015625, -0.00390625]))
    mixed = check(linear([0.0625, 0.25, 0.015625, 0.00390625])).faults[0]
    assert "the right ones in another order" in mixed.said


class Turned(nn.Module):
    """Rotary in plain torch, with a slip to choose."""

    def __init__(self, slip: str = "none", dim: int = 32):
        super().__init__()
        self.slip, self.dim = slip, dim

    def forward(self, x, offset: int = 0):
        half = self.dim // 2
        exponent = torch.arange(half, dtype=torch.float64) / half
        if self.slip == "exponent":
            exponent = 2 * exponent
        late = int(self.slip == "cache" and offset > 0)
        p = torch.arange(x.shape[2], dtype=torch.float64) + offset - late
        angle = p[:, None] * 10000.0**-exponent
        both = angle.repeat_interleave(2, -1) if self.slip == "pairing" else angle.repeat(1, 2)
        a, b = x.double().chunk(2, -1)
        return (x * both.cos() + torch.cat((-b, a), -1) * both.sin()).to(x.dtype)


@pytest.mark.parametrize(
    ("slip", "expected"),
    [
        ("none", []),
        ("cache", ["decoding differs from prefill"]),
        ("exponent", ["wrong exponent"]),
    ],
)
def test_slips_of_rotary(slip, expected):
    report = check(lambda: Turned(slip))
    assert [fault.name for fault in report.faults] == expected, str(report)
    if slip == "cache":
        assert "off by one" in str(report)


def test_wrong_pairing():
    report = check(lambda: Turned("pairing"))
    assert report.faults[0].name == "not relative"
    assert "wrong pairing" in str(report)


@pytest.mark.parametrize(
    ("encoding", "arguments"),
    [
        (Sinusoidal, {"dim": 16}),
        (Sinusoidal, {"dim": 16, "convention": "tensor2tensor"}),
        (Learned, {"dim": 16, "max_len": 64}),
        (Rotary, {"frequencies": 16}),
        (ALiBi, {"heads": 4}),
    ],
    ids=str,
)
def test_none_in_ours(encoding, arguments):
    report = check(encoding, arguments=arguments)
    assert report.ok, str(report)
    assert len(report.passed) > 15


@pytest.mark.parametrize("pairing", ["half", "interleaved"])
def test_none_in_ours_as_a_stranger_sees_it(pairing):
    """Our rotary behind a plain function, so that it is judged by its numbers alone."""

    class Plain:
        head_dim = 32

        def __call__(self, x, positions):
            rotary = Rotary(32, pairing=pairing)
            return rotary.encode_queries(x, rotary.table(positions))

    report = check(Plain())
    assert report.ok, str(report)
    assert max(report.errors.values()) < 1e-7
    assert list(report.errors) == [1_000, 10_000, 100_000, 1_000_000]


def test_a_battery_that_fails_is_reported():
    class Wrong(posenc.TokenEncoding):
        dim, batch_first, keeps_norm, keeps_shift = 8, True, False, False

        def table(self, positions, *, dtype=None):
            return torch.zeros(*positions.shape, 8, dtype=dtype or torch.float32)

        def encode(self, x, table):
            return x + table

    assert "encodes_the_sequence" in faults(Wrong)


def test_what_cannot_be_checked_is_said():
    with pytest.raises(CannotCheckError, match="it fits no signature known here"):
        check(math.pi)
    with pytest.raises(CannotCheckError, match=r"could not be built: TypeError.*Pass arguments"):
        check(Learned)
    with pytest.raises(ValueError, match="kind is 'words'"):
        check(Tutorial, kind="words")
