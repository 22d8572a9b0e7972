"""Encodings that scale: xPos, and Llama 4's query temperature."""

import pytest
import torch
from mpmath import mp, mpf
from rotary_embedding_torch import RotaryEmbedding
from transformers.models.beam.modeling_beam import compute_attention_scaling as beam
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale as ministral

from posenc import QueryTemperature, Rotary, XPos
from posenc.positions import consecutive


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("position", [0, 1, 511, 512, 20_000])
def test_xpos_tables_are_those_of_mpmath(position):
    table = XPos(Rotary(8)).table(torch.tensor([position]))[0].double()
    with mp.workdps(60):
        for i in range(4):
            zeta = (mpf(2 * i) / 8 + mpf(0.4)) / (1 + mpf(0.4))
            angle, scale = (
                position * mpf(10_000) ** (-mpf(2 * i) / 8),
                zeta ** (mpf(position) / 512),
            )
            turns = mp.cos(angle), mp.sin(angle)
            wanted = [*(turn * scale for turn in turns), *(turn / scale for turn in turns)]
            for row, want in enumerate(wanted):
                assert abs(table[row, i].item() - want) <= abs(want) * mpf(2) ** -23.999


def test_a_public_xpos_changes_a_key_with_the_length_and_here_it_stays():
    """rotary-embedding-torch centers by the length of the call: a cached key is then off.

    Of the same first keys, rotated among 8 tokens and among 512, it makes two things; a decoded
    query meets keys of another center. The exact factor ζ^(−p/512) knows no length.
    """
    theirs = RotaryEmbedding(16, use_xpos=True, cache_if_possible=False)
    k = random(1, 1, 512, 16)
    _, few = theirs.rotate_queries_and_keys(k[:, :, :8], k[:, :, :8])
    _, many = theirs.rotate_queries_and_keys(k, k)
    assert (few - many[:, :, :8]).abs().max() > 0.1

    ours = XPos(Rotary(16, pairing="interleaved"))
    alone = ours.encode_keys(k[:, :, :8], ours.table(consecutive(8)))
    assert torch.equal(alone, ours.encode_keys(k, ours.table(consecutive(512)))[:, :, :8])
    # Products of one call agree, since the center cancels there.
    q_theirs, k_theirs = theirs.rotate_queries_and_keys(k, k)
    q_ours, k_ours = ours(k, k)
    torch.testing.assert_close(q_theirs @ k_theirs.mT, q_ours @ k_ours.mT, atol=2e-3, rtol=1e-3)


def llama4_factor(position: int) -> float:
    """As in the code of Llama 4 in transformers, which counts in float32."""
    p = torch.tensor([position])
    return (torch.log1p(torch.floor((p.float() + 1.0) / 8192.0)) * 0.1 + 1.0).item()


@pytest.mark.parametrize("position", [0, 8190, 8191, 8192, 100_000, 1_000_000])
def test_temperature_is_llama4s(position):
    got = QueryTemperature(8).table(torch.tensor([position])).item()
    assert got == pytest.approx(llama4_factor(position), rel=2e-7)
    with mp.workdps(40):
        want = 1 + mpf("0.1") * mp.log(1 + (position + 1) // 8192)
        assert got == pytest.approx(float(want), rel=2**-24)


def test_temperature_steps_where_it_should_far_out_and_llama4s_does_not():
    """At 2^25 + 8190 float32 counts one period too many; the exact quotient is 4096."""
    position = 2**25 + 8190
    assert (position + 1) // 8192 == 4096
    assert torch.floor((torch.tensor(position).float() + 1.0) / 8192.0).item() == 4097
    got = QueryTemperature(8).table(torch.tensor([position])).item()
    assert got == pytest.approx(1 + 0.1 * float(mp.log(4097)), rel=2**-24)


@pytest.mark.parametrize("position", [0, 16_383, 16_384, 16_385, 100_000, 10**6])
def test_temperature_is_that_of_ministral_3_and_mistral_4(position):
    got = QueryTemperature(8, period=16_384, form="mistral").table([position]).item()
    theirs = ministral(torch.tensor([[position]]), 0.1, 16_384).item()
    assert got == pytest.approx(theirs, rel=2e-7)
    assert got == pytest.approx(1 + 0.1 * float(mp.log(1 + position // 16_384)), rel=2**-24)


@pytest.mark.parametrize("position", [0, 2047, 4095, 100_000, 10**6, 2**40])
def test_temperature_is_that_of_beam(position):
    got = QueryTemperature(8, period=2048, form="beam").table([position]).item()
    assert got == pytest.approx(beam(torch.tensor([[position]])).item(), rel=1e-6)
    with mp.workdps(40):
        want = (1 + mpf(position + 1) / 2048) ** mpf("0.1")
    assert got == pytest.approx(float(want), rel=2**-24)
