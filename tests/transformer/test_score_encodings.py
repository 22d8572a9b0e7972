"""The encoder takes every score encoding, alone and combined, and all it says stays true."""

import pytest
import torch
from torch.testing import assert_close

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
NEAR = {"rtol": 0, "atol": 2e-5}

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
    "several": lambda: (SCORES["alibi"](), SCORES["t5"](), SCORES["shaw"]()),
}


def encoder_with(scores, *others, depth=2) -> Encoder:
    torch.manual_seed(0)
    positional = Positional(*others, scores=scores)
    return Encoder(DIM, HEADS, depth, positional=positional, kv_heads=2, is_causal=True).eval()


@pytest.mark.parametrize("name", SCORES)
def test_one_pass_is_its_stages_decoding_padding_and_packing_and_learns(name):
    others = (Sinusoidal(DIM), Rotary(WIDTH)) if name == "several" else ()
    encoder, cache = encoder_with(SCORES[name](), *others), KeyValueCache()
    x, before = torch.randn(1, SEQ, DIM), torch.randn(1, 6, DIM)
    whole = encoder(x)
    assert_close(encoder.stages(x).output, whole, **NEAR)
    with torch.no_grad():
        pieces = [x[:, :5], *x[:, 5:].split(1, dim=1)]
        steps = torch.cat([encoder(piece, cache=cache) for piece in pieces], dim=1)
        behind = torch.cat([before, x], dim=1)
        real = (torch.arange(SEQ + 6) >= 6)[None]
        for got in (
            steps,
            encoder(behind, padding_mask=real)[:, 6:],
            encoder(behind, document_ids=real.long())[:, 6:],
        ):
            assert_close(got, whole, **NEAR)
    whole.square().sum().backward()
    for parameter in encoder.positional.parameters():
        assert parameter.grad.isfinite().all()


@pytest.mark.parametrize("name", ["alibi", "t5", "kerple", "sandwich"])
def test_long_rows_take_the_strided_way_and_mean_the_same(name):
    encoder = encoder_with(SCORES[name](), depth=1)
    x, real = torch.randn(2, 300, DIM), torch.ones(2, 300, dtype=torch.bool)
    real[0, :40], real[1, -9:] = False, False
    ids = (torch.arange(300) // 130).expand(2, -1)
    with torch.no_grad():
        for masks in ({}, {"padding_mask": real}, {"document_ids": ids}):
            kept = masks.get("padding_mask", torch.ones_like(real))
            got, meant = encoder(x, **masks), encoder.stages(x, **masks).output
            assert_close(got[kept], meant[kept], **NEAR)
