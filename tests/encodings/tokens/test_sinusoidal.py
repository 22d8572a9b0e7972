"""Sinusoidal: what it does to content, what it claims, what it refuses."""

import pytest
import torch

from posenc import Sinusoidal
from posenc.positions import consecutive

# What it does to content.


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_content_is_added_wide_and_rounded_once(dtype):
    x = torch.randn(2, 300, 32).to(dtype)
    table = Sinusoidal(32).table(consecutive(300))
    assert torch.equal(Sinusoidal(32)(x), (x.float() + table).to(dtype))
    assert not torch.equal(Sinusoidal(32)(x), x + table.to(dtype))


@pytest.mark.parametrize(("scale", "factor"), [(None, 1.0), ("sqrt_dim", 4.0), (0.5, 0.5)])
def test_content_is_scaled_before_the_sum(scale, factor):
    """The paper, section 3.4: embeddings are multiplied by √d."""
    x = torch.randn(2, 7, 16)
    encoding = Sinusoidal(16, scale=scale)
    assert torch.equal(encoding(x), x * factor + encoding.table(consecutive(7)))


def test_the_sequence_may_come_first_when_it_is_said():
    x = torch.randn(5, 5, 16)  # square, so that no guess from the shape could be right
    first, second = Sinusoidal(16), Sinusoidal(16, batch_first=False)
    assert torch.equal(second(x), first(x.transpose(0, 1)).transpose(0, 1))
    assert not torch.equal(second(x), first(x))
    positions = torch.stack([consecutive(5, start=start) for start in (0, 10, 20, 30, 40)])
    assert torch.equal(second(x, positions), first(x.transpose(0, 1), positions).transpose(0, 1))


def test_dropout_drops_its_share_and_scales_the_rest():
    x = torch.full((100, 100, 100), 10.0)
    encoding = Sinusoidal(100, dropout=0.1).train()
    got = encoding(x)
    dropped = got == 0
    # A million draws: five standard deviations are 0.0015.
    assert dropped.float().mean().item() == pytest.approx(0.1, abs=0.0015)
    kept = (x + encoding.table(consecutive(100))) / 0.9
    assert torch.allclose(got[~dropped], kept[~dropped])


@pytest.mark.parametrize("start", [0, 10**6, 2**40])
def test_an_offset_is_one_rotation_of_each_pair_at_any_position(start):
    """PE(p + k) = M_k PE(p), with M_k made of the sines and cosines of row k alone."""
    encoding = Sinusoidal(64)
    sin_k, cos_k = encoding.table(torch.tensor([10]))[0].double().unflatten(0, (32, 2)).unbind(-1)
    here, there = (
        encoding.table(consecutive(200, start=s)).double().unflatten(1, (32, 2)).unbind(-1)
        for s in (start, start + 10)
    )
    rotated = (here[0] * cos_k + here[1] * sin_k, here[1] * cos_k - here[0] * sin_k)
    for moved, expected in zip(rotated, there, strict=True):
        assert (moved - expected).abs().max() < 1.5e-7
