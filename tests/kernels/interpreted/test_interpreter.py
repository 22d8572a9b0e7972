"""What stands in for a compiled kernel here rounds as one does; if it did not, tests would fail."""

import pytest
import torch
import triton
import triton.language as tl
from tests.kernels.operands import OPERATORS, angles, same


@triton.jit
def narrow(wide, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(wide + at).to(tl.bfloat16))


def narrowed(values):
    out = torch.empty(len(values), dtype=torch.bfloat16)
    narrow[(1,)](values, out, BLOCK=len(values))
    return out


def test_bfloat16_is_rounded_to_nearest_and_ties_to_even():
    upper = torch.arange(-(2**15), 2**15, 32, dtype=torch.int32) << 16
    for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0x18000, 0xFFFF):
        values = (upper | lower).view(torch.float32)
        assert same(narrowed(values), values.bfloat16())


@pytest.mark.usefixtures("interpreters_own")
def test_the_interpreter_itself_cuts_off_which_does_not_pass():
    """Once it no longer does, ``conftest.py`` need not replace it."""
    assert narrowed(torch.tensor([1.0078124])).item() == 1.0
    given, rotary = (torch.randn(2, 3, 8).bfloat16(), angles(3, 4), 4), OPERATORS["rotary"]
    assert not same(rotary.by_triton(*given), rotary.formula(*given))
