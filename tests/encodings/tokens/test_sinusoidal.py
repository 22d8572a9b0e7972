"""Sinusoidal: what it does to content."""

import pytest
import torch

from posenc import Sinusoidal
from posenc.positions import consecutive


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_content_is_added_wide_and_rounded_once(dtype):
    x = torch.randn(2, 300, 32).to(dtype)
    table = Sinusoidal(32).table(consecutive(300))
    assert torch.equal(Sinusoidal(32)(x), (x.float() + table).to(dtype))
    assert not torch.equal(Sinusoidal(32)(x), x + table.to(dtype))


def test_dropout_drops_its_share_and_scales_the_rest():
    x = torch.full((100, 100, 100), 10.0)
    encoding = Sinusoidal(100, dropout=0.1).train()
    got = encoding(x)
    dropped = got == 0
    # A million draws: five standard deviations are 0.0015.
    assert dropped.float().mean().item() == pytest.approx(0.1, abs=0.0015)
    kept = (x + encoding.table(consecutive(100))) / 0.9
    assert torch.allclose(got[~dropped], kept[~dropped])
