"""What is infinite or no number is wrong, wherever it stands, and is called equal to nothing."""

import json

import pytest
import torch
from torch import nan, nn

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.audit import check


class Added(nn.Module):
    """Sines whose rows from ``first`` on are ``value``."""

    table: torch.Tensor

    def __init__(self, first: int = 4096, value: float = nan):
        super().__init__()
        table = Sinusoidal(32).table(torch.arange(4096))
        table[first:] = value
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]].to(x.dtype)


class Turned(nn.Module):
    """Queries, or keys too, that are no numbers from a position on."""

    def __init__(self, first: int, queries: bool = True):
        super().__init__()
        self.first, self.queries, self.rotary = first, queries, Rotary(32)

    def forward(self, q, k, positions):
        table = self.rotary.table(positions)
        lost = (positions >= self.first)[:, None, :, None]
        q, k = self.rotary.encode_queries(q, table), self.rotary.encode_keys(k, table)
        return (q.masked_fill(lost, nan) if self.queries else q), k.masked_fill(lost, nan)


class Bias(nn.Module):
    """ALiBi that is ``value`` from a distance on."""

    heads = 8

    def __init__(self, first: int, value: float = nan):
        super().__init__()
        self.first, self.value = first, value

    def forward(self, q_len, k_len):
        queries, keys = torch.arange(k_len - q_len, k_len), torch.arange(k_len)
        lost = queries[:, None] - keys >= self.first
        return ALiBi(8).table(queries, keys).masked_fill(lost, self.value)


class Logarithm(nn.Module):
    """A bias that learns, with the gradient of 0 · log 0."""

    heads = 8

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(8, 1, 1))

    def forward(self, q_len, k_len):
        distance = (torch.arange(k_len - q_len, k_len)[:, None] - torch.arange(k_len)).abs().float()
        return -torch.where(distance > 0, self.slope * distance.log(), 0.0)


class Remembering(Added):
    """Gives no numbers once it has seen 16 bits."""

    def forward(self, x):
        made = super().forward(x) * (nan if getattr(self, "seen", False) else 1.0)
        self.seen = getattr(self, "seen", False) or x.dtype != torch.float32
        return made


def found(thing):
    report = check(thing, length=2048)
    return report, {fault.name: fault.number for fault in report.found if fault.severity == "wrong"}


@pytest.mark.parametrize("value", [nan, torch.inf])
@pytest.mark.parametrize("first", [40, 100, 2000])
def test_rows_that_are_no_numbers_are_found(first, value):
    report, wrong = found(lambda: Added(first, value))
    assert wrong == {"not-a-number": first}
    assert "nan" not in report.identity
    assert not any("nan" in each.told for each in report.passed)


@pytest.mark.parametrize("first", [100, 2000])
def test_rotations_that_are_no_numbers_are_found(first):
    report, wrong = found(lambda: Turned(first))
    assert wrong["not-a-number"] == first
    assert f"to position {first - 1:,}" in report.identity
    assert not any("nan" in each.told for each in report.passed)


def test_keys_that_are_no_numbers_are_found():
    _, wrong = found(lambda: Turned(100, queries=False))
    assert set(wrong) == {"keys-turned-otherwise"}


@pytest.mark.parametrize("first", [5, 20, 100, 1500])
def test_biases_that_are_no_numbers_are_found(first):
    report, wrong = found(lambda: Bias(first))
    assert wrong == {"not-a-number": first}
    assert report.identity == ""


def test_a_bias_may_hide_keys():
    report, wrong = found(lambda: Bias(1500, -torch.inf))
    assert wrong == {}
    assert "ALiBi" in report.identity


def test_gradients_that_are_no_numbers_are_found():
    _, wrong = found(Logarithm)
    assert set(wrong) == {"not-a-number"}


def test_state_that_makes_numbers_vanish_is_found():
    _, wrong = found(Remembering)
    assert set(wrong) == {"first-dtype-cached"}


class LostOnceUsed(nn.Module):
    """Right in its first call, and no numbers after."""

    used = False

    def forward(self, x):
        """x: [batch, seq, dim]"""
        made = x + Sinusoidal(32).table(torch.arange(x.shape[1]), dtype=x.dtype)
        made, self.used = made * nan if self.used else made, True
        return made


def test_reports_are_json_where_a_number_is_infinite():
    report = check(LostOnceUsed, dim=32)
    assert max(fault.number for fault in report.faults) == torch.inf
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert None in [fault["number"] for fault in told["faults"]]
