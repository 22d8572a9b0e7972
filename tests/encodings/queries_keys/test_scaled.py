"""Encodings that scale: xPos, and Llama 4's query temperature."""

import pytest
import torch
from mpmath import mp, mpf
from rotary_embedding_torch import RotaryEmbedding
from tests.encodings.content import random
from transformers.models.beam.modeling_beam import compute_attention_scaling as beam
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale as ministral

from posenc import QueryTemperature, Rotary, XPos


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


def test_products_are_those_of_a_public_xpos():
    """rotary-embedding-torch centers by the length of the call, which products do not see."""
    theirs = RotaryEmbedding(16, use_xpos=True, cache_if_possible=False)
    q, k = random(1, 1, 512, 16), random(1, 1, 512, 16, seed=1)
    theirs_q, theirs_k = theirs.rotate_queries_and_keys(q, k)
    ours_q, ours_k = XPos(Rotary(16, pairing="interleaved"))(q, k)
    torch.testing.assert_close(ours_q @ ours_k.mT, theirs_q @ theirs_k.mT, atol=2e-3, rtol=1e-3)


def llama4(positions: torch.Tensor) -> torch.Tensor:
    """As in the code of Llama 4 in transformers, which counts in float32."""
    return torch.log1p(torch.floor((positions.float() + 1.0) / 8192.0)) * 0.1 + 1.0


@pytest.mark.parametrize(
    ("encoding", "theirs", "formula"),
    [
        (QueryTemperature(8), llama4, lambda p: 1 + mp.log(1 + (p + 1) // 8192) / 10),
        (
            QueryTemperature(8, period=16_384, form="mistral"),
            lambda positions: ministral(positions[:, None], 0.1, 16_384),
            lambda p: 1 + mp.log(1 + p // 16_384) / 10,
        ),
        (
            QueryTemperature(8, period=2048, form="beam"),
            lambda positions: beam(positions[:, None]),
            lambda p: (1 + mpf(p + 1) / 2048) ** mpf("0.1"),
        ),
    ],
    ids=["llama4", "ministral3", "beam"],
)
def test_temperatures_are_those_of_models_and_of_mpmath(encoding, theirs, formula):
    positions = [0, 2047, 4095, 8190, 8191, 8192, 16_383, 16_384, 100_000, 10**6]
    got = encoding.table(positions).flatten()
    torch.testing.assert_close(
        got, theirs(torch.tensor(positions)).flatten().float(), rtol=1e-6, atol=0
    )
    # At 2^25 + 8190 float32 counts one period of Llama 4 too many.
    far = [*positions, 2**25 + 8190, 2**40]
    with mp.workdps(40):
        want = [float(formula(position)) for position in far]
    assert encoding.table(far).flatten().tolist() == pytest.approx(want, rel=2**-24)
