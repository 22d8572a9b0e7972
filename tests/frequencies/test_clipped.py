"""Clipped RoPE: its cosine taper, exact and as the authors' float32 code has it."""

import pytest
import torch
from mpmath import mp, mpf

from posenc.frequencies import Clipped, Geometric
from posenc.frequencies.schedule import TURN_BITS

PLAIN = Geometric(64, 500_000.0)


def test_turns_are_the_formula_rounded_once():
    with mp.workdps(130):
        slow = [mpf(500_000) ** (-mpf(i) / 64) for i in range(0, 64, 2)]
        gains = [mpf(1)] * 12 + [(1 + mp.cos(mp.pi * j / 19)) / 2 for j in range(20)]
        want = tuple(
            int(mp.nint(w * gain / (2 * mp.pi) * mpf(2) ** TURN_BITS))
            for w, gain in zip(slow, gains, strict=True)
        )
    assert Clipped(PLAIN).turns() == want
    assert Clipped(PLAIN).turns()[:13] == PLAIN.turns()[:13]
    assert Clipped(PLAIN).turns()[-1] == 0


def theirs(frequencies, count):
    """The authors' code, ``inv_freq`` in float32."""
    start = len(frequencies) - count
    theta = torch.linspace(0.0, torch.pi, steps=count, dtype=torch.float32)
    clipped = frequencies.clone()
    clipped[start:] = clipped[start:] * (0.5 * (1.0 + torch.cos(theta)))
    return clipped


@pytest.mark.parametrize("count", [1, 2, 20, 32])
def test_the_float32_form_is_that_of_the_authors(count):
    plain = 1.0 / (500_000.0 ** (torch.arange(0, 64, 2).float() / 64))
    assert torch.equal(Clipped(PLAIN, count).float32("float32"), theirs(plain, count))


def test_clipping_nothing_changes_nothing_and_more_than_all_fades_all():
    assert Clipped(PLAIN, 0).turns() == PLAIN.turns()
    assert torch.equal(Clipped(PLAIN, 0).float32("float32"), PLAIN.float32("float32"))
    assert Clipped(PLAIN, 500).turns() == Clipped(PLAIN, 32).turns()
    assert Clipped(PLAIN, 1).turns() == PLAIN.turns()
