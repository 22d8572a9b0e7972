"""What is infinite or no number is wrong, wherever it stands, and is called equal to nothing."""

import json

import pytest
import torch
from tests.audit.zoo.arithmetic import apart
from torch import inf, nan, nn

from posenc import ALiBi, Rotary, Sinusoidal
from posenc.audit import check

SINES = Sinusoidal(32).table(torch.arange(4096))


def added(first, value=nan):
    """Sines whose rows from ``first`` on are ``value``."""
    table = SINES.clone()
    table[first:] = value
    return lambda x: x + table[: x.shape[1]].to(x.dtype)


def turned(first, queries=True):
    """Queries, or keys too, that are no numbers from a position on."""

    def turn(q, k, positions):
        lost = (positions >= first)[:, None, :, None]
        q, k = Rotary(32)(q, k, positions)
        return (q.masked_fill(lost, nan) if queries else q), k.masked_fill(lost, nan)

    return turn


def biased(first, value=nan):
    """ALiBi that is ``value`` from a distance on."""

    def bias(q_len, k_len):
        keys = torch.arange(k_len)
        made = ALiBi(8).table(keys[k_len - q_len :], keys)
        return made.masked_fill(apart(q_len, k_len) >= first, value)

    return bias


class Logarithm(nn.Module):
    """A bias that learns, with the gradient of 0 · log 0."""

    heads = 8

    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.ones(8, 1, 1))

    def forward(self, q_len, k_len):
        distance = apart(q_len, k_len).abs().float()
        return -torch.where(distance > 0, self.slope * distance.log(), 0.0)


class Remembering(nn.Module):
    """Gives no numbers once it has seen 16 bits, or any call."""

    lost = False

    def __init__(self, in_16_bits=True):
        super().__init__()
        self.in_16_bits = in_16_bits

    def forward(self, x):
        """x: [batch, seq, dim]"""
        made = x + SINES[: x.shape[1]].to(x.dtype) * (nan if self.lost else 1.0)
        self.lost = self.lost or x.dtype != torch.float32 or not self.in_16_bits
        return made


CASES = [
    *((added(first, value), {"not-a-number": first}, "position") for first in (40, 100, 2000)
      for value in (nan, inf)),
    *((turned(first), {"not-a-number": first}, f"to position {first - 1:,}")
      for first in (100, 2000)),
    (turned(100, queries=False), {"keys-turned-otherwise": None}, ""),
    *((biased(first), {"not-a-number": first}, None) for first in (5, 20, 100, 1500)),
    (biased(1500, -inf), {}, "ALiBi"),  # which may hide keys
    (Logarithm(), {"not-a-number": None}, ""),
    (Remembering(), {"first-dtype-cached": None}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("thing", "faults", "says"), CASES)
def test_numbers_that_are_none_are_found(thing, faults, says):
    report = check(thing, length=2048, dim=32)
    wrong = {fault.name: fault.number for fault in report.found if fault.severity == "wrong"}
    assert set(wrong) == set(faults)
    assert all(number in (None, wrong[name]) for name, number in faults.items())
    assert says in report.identity if says is not None else report.identity == ""
    assert "not-a-number" not in faults or not any("nan" in each.told for each in report.passed)


def test_reports_are_json_where_a_number_is_infinite():
    report = check(Remembering(in_16_bits=False), dim=32)
    assert max(fault.number for fault in report.faults) == inf
    told = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    assert None in [fault["number"] for fault in told["faults"]]
