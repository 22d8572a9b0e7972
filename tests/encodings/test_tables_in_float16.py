"""What float16 would make infinite in a table is refused, in one place for all encodings."""

import pytest
import torch

from posenc import (
    FIRE,
    GRAPE,
    KERPLE,
    AdditiveGRAPE,
    ALiBi,
    QueryTemperature,
    Rotary,
    ScoreBias,
    Temperature,
)

HALF = torch.float16


def _power():
    bias = KERPLE(1, "power")
    torch.nn.init.constant_(bias.p, 2.0)
    torch.nn.init.constant_(bias.a, 1.0)
    return bias


def _twice():
    """Each of the two is within float16."""
    return ALiBi(1, slopes=(0.25,)) + ALiBi(1, slopes=(0.25,))


def _slow():
    grape = GRAPE(4, 1)
    with torch.no_grad():
        grape.generators.copy_(0.01 * torch.eye(4)[:2].view_as(grape.generators))
    return grape


FAR = {
    "ALiBi": lambda dtype: ALiBi(1, slopes=(0.5,)).table([200_000], [0], dtype=dtype),
    "ALiBi's profile": lambda dtype: ALiBi(1, slopes=(0.5,)).profile([200_000], dtype=dtype),
    "some heads": lambda dtype: ALiBi(2, slopes=(0.5, 0.25))[:1].profile([200_000], dtype=dtype),
    "a sum": lambda dtype: _twice().table([200_000], [0], dtype=dtype),
    "KERPLE": lambda dtype: _power().table([1000], [0], dtype=dtype),
    "Temperature": lambda dtype: Temperature(1, scale=1e5).table([5], [0], dtype=dtype),
    "QueryTemperature": lambda dtype: QueryTemperature(4, scale=1e5).table([10**6], dtype=dtype),
    "GRAPE": lambda dtype: _slow().table([1000], dtype=dtype),
    "AdditiveGRAPE": lambda dtype: AdditiveGRAPE(1, 4).table([200_000], [0], dtype=dtype),
    "FIRE": lambda dtype: FIRE(1).table([70_000], [0], dtype=dtype),
}


@pytest.mark.parametrize("table", FAR.values(), ids=list(FAR))
def test_what_float16_makes_infinite_is_refused(table):
    assert table(torch.float32).isfinite().all()
    with pytest.raises(ValueError, match=r"beyond 65504, the largest number of float16\. Ask for"):
        table(HALF)


class Hides(ScoreBias):
    """Hides keys after their query, by the number that hides in any dtype."""

    is_relative = True

    def __init__(self, heads):
        super().__init__()
        self.heads = heads

    def table(self, q_positions, k_positions, *, dtype=None):
        later = q_positions.unsqueeze(-1) < k_positions.unsqueeze(-2)
        bias = torch.where(later, -torch.inf, 0.0).to(dtype or torch.float32)
        return bias.unsqueeze(-3).expand(self.heads, *bias.shape)


def test_an_infinity_of_float32_is_meant():
    at = torch.arange(3)
    assert torch.equal(Hides(2).table(at, at, dtype=HALF).float(), Hides(2).table(at, at))


def test_what_float16_holds_is_as_it_was():
    assert ALiBi(1, slopes=(0.5,)).table([131_000], [0], dtype=HALF).item() == -65_504
    assert Rotary(4).table([10**9], dtype=HALF).isfinite().all()


def test_nobody_looks_where_none_may():
    with torch.device("meta"):
        far = ALiBi(1).table(torch.tensor([200_000]), torch.tensor([0]), dtype=HALF)
    assert far.is_meta
