"""The encoder takes every score encoding, alone and combined, and all it says stays true."""

import pytest
import torch

from posenc import (
    FIRE,
    KERPLE,
    ALiBi,
    CoPE,
    DeBERTa,
    Forgetting,
    Positional,
    Rotary,
    Sandwich,
    Shaw,
    Sinusoidal,
    T5Bias,
    TransformerXL,
)
from posenc.transformer import Encoder, KeyValueCache

DIM, HEADS, WIDTH, SEQ = 32, 4, 8, 24

SCORES = {
    "alibi": lambda: ALiBi(HEADS),
    "t5": lambda: T5Bias(HEADS, std=1.0),
    "kerple": lambda: KERPLE(HEADS),
    "sandwich": lambda: Sandwich(HEADS, dim=16),
    "fire": lambda: FIRE(HEADS, threshold=8.0),
    "shaw": lambda: Shaw(HEADS, WIDTH, 5, std=1.0),
    "transformer-xl": lambda: TransformerXL(HEADS, WIDTH, std=0.5),
    "deberta": lambda: DeBERTa(HEADS, WIDTH, 8, 32, std=0.5),
    "cope": lambda: CoPE(HEADS, WIDTH, 16, std=0.5),
    "forgetting": lambda: Forgetting(HEADS, WIDTH, std=0.5),
}
MIXTURES = {
    "rotary + alibi": lambda: Positional(queries_keys=Rotary(WIDTH), scores=ALiBi(HEADS)),
    "sinusoidal + t5": lambda: Positional(Sinusoidal(DIM), scores=T5Bias(HEADS, std=1.0)),
    "alibi + t5 + fire": lambda: Positional(
        scores=(ALiBi(HEADS), T5Bias(HEADS, std=1.0), FIRE(HEADS, threshold=8.0))
    ),
    "rotary + shaw + alibi": lambda: Positional(
        queries_keys=Rotary(WIDTH), scores=(Shaw(HEADS, WIDTH, 5, std=1.0), ALiBi(HEADS))
    ),
}


def encoders():
    alone = {name: lambda build=build: Positional(scores=build()) for name, build in SCORES.items()}
    return {**alone, **MIXTURES}


@pytest.fixture(params=encoders())
def encoder(request):
    torch.manual_seed(0)
    positional = encoders()[request.param]()
    return Encoder(DIM, HEADS, 2, positional=positional, kv_heads=2, is_causal=True).eval()


def test_one_pass_equals_its_stages_and_decoding(encoder):
    x, cache = torch.randn(2, SEQ, DIM), KeyValueCache()
    with torch.no_grad():
        whole = encoder(x)
        torch.testing.assert_close(encoder.stages(x).output, whole, rtol=0, atol=2e-5)
        pieces = [x[:, :5], *x[:, 5:].split(1, dim=1)]
        steps = torch.cat([encoder(piece, cache=cache) for piece in pieces], dim=1)
    torch.testing.assert_close(steps, whole, rtol=0, atol=2e-5)


def test_padding_moves_nothing(encoder):
    x = torch.randn(1, SEQ, DIM)
    real = torch.arange(SEQ + 6) >= 6
    padded = torch.cat([torch.randn(1, 6, DIM), x], dim=1)
    with torch.no_grad():
        got = encoder(padded, padding_mask=real[None])[:, 6:]
        torch.testing.assert_close(got, encoder(x), rtol=0, atol=2e-5)


def test_packed_documents_stand_alone(encoder):
    x = torch.randn(1, SEQ, DIM)
    ids = (torch.arange(SEQ) >= 9).long()[None]
    with torch.no_grad():
        together = encoder(x, document_ids=ids)
        torch.testing.assert_close(together[:, :9], encoder(x[:, :9]), rtol=0, atol=2e-5)
        torch.testing.assert_close(together[:, 9:], encoder(x[:, 9:]), rtol=0, atol=2e-5)


def test_everything_learns(encoder):
    encoder.train()
    encoder(torch.randn(2, SEQ, DIM)).square().sum().backward()
    for name, parameter in encoder.positional.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("name", ["alibi", "t5", "kerple", "sandwich"])
def test_long_rows_take_the_strided_way_and_mean_the_same(name):
    torch.manual_seed(0)
    encoder = Encoder(
        DIM, HEADS, 1, positional=Positional(scores=SCORES[name]()), is_causal=True
    ).eval()
    x, real = torch.randn(2, 300, DIM), torch.ones(2, 300, dtype=torch.bool)
    real[0, :40], real[1, -9:] = False, False
    ids = (torch.arange(300) // 130).expand(2, -1)
    with torch.no_grad():
        for masks in ({}, {"padding_mask": real}, {"document_ids": ids}):
            kept = masks.get("padding_mask", torch.ones_like(real))
            got, meant = encoder(x, **masks), encoder.stages(x, **masks).output
            torch.testing.assert_close(got[kept], meant[kept], rtol=0, atol=2e-5)
