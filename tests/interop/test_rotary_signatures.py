"""Rotary under the signatures of others, against their formulas and, where they are, their code."""

import math
from dataclasses import dataclass

import pytest
import torch

from posenc import Rotary
from posenc.frequencies import Geometric
from posenc.interop.torch import (
    ComplexRoPE,
    CosSinRoPE,
    RotaryPositionalEmbeddings,
    rotary_embedding,
)


def turned(x, angles, interleaved):
    """x with each pair as a complex number times e^(i·angle), in float64."""
    x = x.double()
    pairs = x.unflatten(-1, (-1, 2)) if interleaved else torch.stack(x.chunk(2, -1), -1)
    z = torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.ones_like(angles), angles)
    out = torch.view_as_real(z)
    return out.flatten(-2) if interleaved else torch.cat(out.unbind(-1), -1)


def angles_at(positions, dim, base=10_000.0):
    powers = torch.arange(0, dim, 2).double() / dim
    return positions.unsqueeze(-1).double() * base**-powers


@pytest.fixture
def x():
    torch.manual_seed(0)
    return torch.randn(2, 4, 6, 16)


# The function proposed for torch.


@pytest.mark.parametrize("interleaved", [False, True])
def test_the_function_rotates_by_rows_and_by_what_broadcasts(x, interleaved):
    ids = torch.randint(0, 32, (2, 6))
    angles = angles_at(torch.arange(32), 16)
    cos, sin = angles.cos().float(), angles.sin().float()
    rows = turned(x, angles[ids].unsqueeze(1), interleaved)
    given = {"rows": (cos, sin, ids), "[batch, 1, seq]": (cos[ids][:, None], sin[ids][:, None])}
    for arguments in given.values():
        got = rotary_embedding(x, *arguments, interleaved=interleaved)
        torch.testing.assert_close(got.double(), rows, rtol=0, atol=1e-6)
    alike = turned(x, angles[:6], interleaved)
    for form in (cos[:6], cos[None, :6], cos[None, None, :6], cos[:6].expand(4, 6, 8)):
        got = rotary_embedding(
            x, form, sin[:6].expand(form.shape), interleaved=interleaved
        )  # fmt: skip
        torch.testing.assert_close(got.double(), alike, rtol=0, atol=1e-6)


@pytest.mark.parametrize("at", [torch.tensor(3), torch.tensor([3, 5]), torch.tensor([3])])
def test_one_row_serves_all_tokens_or_those_of_its_batch(x, at):
    angles = angles_at(at, 16)
    angles = angles[:, None, None] if at.ndim else angles
    got = rotary_embedding(x, angles.cos().float(), angles.sin().float())
    torch.testing.assert_close(got.double(), turned(x, angles, False), rtol=0, atol=1e-6)


def test_half_precision_rounds_once(x):
    cos, sin = Rotary(16).table(torch.arange(6)).unbind(-2)
    low = x.bfloat16()
    wide = rotary_embedding(low.float(), cos, sin)
    assert torch.equal(rotary_embedding(low, cos, sin), wide.bfloat16())


def test_gradients_reach_content_and_table(x):
    x, ids = x.double()[:1, :1, :2, :4].clone().requires_grad_(), torch.tensor([[2, 0]])
    angles = angles_at(torch.arange(3), 4)
    cos, sin = (part.requires_grad_() for part in (angles.cos(), angles.sin()))
    assert torch.autograd.gradcheck(lambda *given: rotary_embedding(*given, ids), (x, cos, sin))


# torchtune.


def test_torchtunes_signature(x):
    rope, content = RotaryPositionalEmbeddings(16, 64, 500), x.transpose(1, 2)
    for ids in (None, torch.randint(0, 64, (2, 6)), torch.arange(58, 64)):
        positions = torch.arange(6) if ids is None else ids
        expected = turned(content, angles_at(positions, 16, 500).unsqueeze(-2), True)
        got = rope(content, input_pos=ids)
        torch.testing.assert_close(got.double(), expected, rtol=0, atol=1e-6)
    assert not rope.state_dict()
    far = rope(content, input_pos=torch.full((2, 6), 10**9))
    exact = Rotary(Geometric(16, 500), pairing="interleaved").table(torch.tensor([10**9]))
    assert torch.equal(far, rope.rotary.encode_queries(content, exact.expand(6, 2, 8)))


# torchtitan.


@dataclass
class Config:
    """The fields of torchtitan's ``RoPE.Config`` and their defaults."""

    dim: int = 16
    max_context_length: int = 64
    theta: float = 10_000.0
    scaling: str = "none"
    scaling_factor: float = 8.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192
    rope_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    original_seq_len: int = 4096
    truncate: bool = True


def titan_frequencies(config):
    """As its ``_precompute_cache``, in float64."""
    powers = torch.arange(0, config.dim, 2).double() / config.dim
    plain = config.theta**-powers
    if config.scaling == "llama":
        turns = config.original_max_position_embeddings * plain / (2 * math.pi)
        smooth = ((turns - 1) / 3).clamp(0, 1)
        return plain * ((1 - smooth) / config.scaling_factor + smooth)
    if config.scaling == "yarn":
        low, high = (
            config.dim * math.log(config.original_seq_len / (n * 2 * math.pi))
            / (2 * math.log(config.theta)) for n in (config.beta_fast, config.beta_slow)
        )  # fmt: skip
        low, high = max(math.floor(low), 0), min(math.ceil(high), config.dim - 1)
        ramp = ((torch.arange(config.dim // 2) - low) / (high - low)).clamp(0, 1)
        return plain / config.rope_factor * ramp + plain * (1 - ramp)
    return plain


@pytest.mark.parametrize("module", [ComplexRoPE, CosSinRoPE])
@pytest.mark.parametrize("scaling", ["none", "llama", "yarn"])
def test_torchtitans_signature(x, module, scaling):
    config = Config(theta=500_000.0, scaling=scaling, rope_factor=4.0)
    rope, query, key = module(config), x[0].transpose(0, 1), x[1, :2].transpose(0, 1)
    for positions in (None, torch.randint(0, 64, (6,))):
        at = torch.arange(6) if positions is None else positions
        angles = (at.double().unsqueeze(-1) * titan_frequencies(config)).unsqueeze(-2)
        for got, content in zip(rope(query, key, positions), (query, key), strict=True):
            expected = turned(content, angles, module is ComplexRoPE)
            torch.testing.assert_close(got.double(), expected, rtol=0, atol=1e-6)
    with pytest.raises(IndexError, match="63"):
        rope(query, key, torch.full((6,), 64))
