"""Resonance RoPE: whole wavelengths, so a pair returns to the same value again and again."""

import pytest
import torch
from mpmath import mp, mpf

from posenc import Rotary
from posenc.frequencies import Geometric, Resonance, YaRN
from posenc.frequencies.schedule import TURN_BITS

PLAIN = Geometric(64)


@pytest.mark.parametrize("of", [PLAIN, YaRN(PLAIN, 4.0, 4096, truncate=False)])
def test_turns_are_one_over_a_whole_number_rounded_once(of):
    lengths = [round(length) for length in of.wavelengths()]
    with mp.workdps(130):
        want = tuple(int(mp.nint(mpf(2) ** TURN_BITS / length)) for length in lengths)
    assert Resonance(of).turns() == want
    assert Resonance(of).attention_factor == of.attention_factor


def test_a_pair_repeats_after_its_wavelength():
    """Position p and p + k · λ are one phase, up to the 192 bits that a turn is kept in."""
    rotary, lengths = Rotary(Resonance(PLAIN)), Resonance(PLAIN).wavelengths()
    for pair in (0, 7, 31):
        step = int(lengths[pair])
        near = rotary.table([0, 1, 5, step - 1])[..., pair]
        after = rotary.table([step, step + 1, step + 5, 2 * step - 1])[..., pair]
        torch.testing.assert_close(after, near, rtol=0, atol=1e-40)
        far = 10**12 * step
        there = rotary.table([far, far + 1, far + 5, far + step - 1])[..., pair]
        torch.testing.assert_close(there, near, rtol=0, atol=1e-40)
