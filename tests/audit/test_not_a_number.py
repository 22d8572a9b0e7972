"""What is infinite or no number is wrong, wherever it stands, and is called equal to nothing."""

import json

import pytest
import torch
from tests.audit.zoo.right.bias import apart
from torch import inf, nan, nn

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.audit import check


class Added(nn.Module):
    """Sines whose rows from ``first`` on are ``value``."""

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
        lost = (positions >= self.first)[:, None, :, None]
        q, k = self.rotary(q, k, positions)
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
        distance = apart(q_len, k_len).abs().float()
        return -torch.where(distance > 0, self.slope * distance.log(), 0.0)


class Remembering(Added):
    """Gives no numbers once it has seen 16 bits."""

    seen = False

    def forward(self, x):
        made = super().forward(x) * (nan if self.seen else 1.0)
        self.seen = self.seen or x.dtype != torch.float32
        return made


CASES = [
    *((Added(first, value), {"not-a-number": first}, "position") for first in (40, 100, 2000)
      for value in (nan, inf)),
    *((Turned(first), {"not-a-number": first}, f"to position {first - 1:,}")
      for first in (100, 2000)),
    (Turned(100, queries=False), {"keys-turned-otherwise": None}, ""),
    *((Bias(first), {"not-a-number": first}, None) for first in (5, 20, 100, 1500)),
    (Bias(1500, -inf), {}, "ALiBi"),  # which may hide keys
    (Logarithm(), {"not-a-number": None}, ""),
    (Remembering(), {"first-dtype-cached": None}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("thing", "faults", "says"), CASES)
def test_numbers_that_are_none_are_found(thing, faults, says):
    report = check(thing, length=2048)
    wrong = {fault.name: fault.number for fault in report.found if fault.severity == "wrong"}
    for name, number in faults.items():
        assert number in (None, wrong[name])
    assert set(wrong) == set(faults)
    assert says in report.identity if says is not None else report.identity == ""
    assert "not-a-number" not in faults or not any("nan" in each.told for each in report.passed)


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
    assert max(fault.number for fault in report.faults) == inf
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert None in [fault["number"] for fault in told["faults"]]
