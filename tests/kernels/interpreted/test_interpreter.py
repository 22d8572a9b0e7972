"""What stands in for a compiled kernel here rounds as one does; if it did not, tests would fail."""

import pytest
import torch
import triton
import triton.language as tl
from mpmath import mpf

from posenc.kernels.rotary import reference
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.triton import rotate_heads


@triton.jit
def narrow(wide, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(wide + at).to(tl.bfloat16))


def narrowed(values):
    out = torch.empty(len(values), dtype=torch.bfloat16)
    narrow[(1,)](values, out, BLOCK=len(values))
    return out


@pytest.fixture
def awkward():
    """Ties with an even and an odd neighbor, their float32 neighbors, and what is special."""
    whole = torch.tensor([1.0, 1.0078125, -3.984375, 2.0**-130, 1e30, 3.3895e38]).bfloat16()
    bits = whole.view(torch.int16).int() << 16
    near = (bits[:, None] + torch.tensor([0x7FFF, 0x8000, 0x8001], dtype=torch.int32)).flatten()
    near = near.view(torch.float32)
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0])
    padding = torch.zeros(32 - len(near) - len(special))
    return torch.cat((near, special, padding))


def test_bfloat16_is_rounded_to_nearest_and_ties_to_even(oracle, awkward):
    made = narrowed(awkward)
    for got, value in zip(made.tolist(), awkward.tolist(), strict=True):
        if value == value and abs(value) < 3.3895e38:
            assert got == oracle.nearest(mpf(value), torch.bfloat16)
    assert torch.equal(made.isnan(), awkward.isnan())
    assert torch.equal(made.signbit(), awkward.signbit())
    assert torch.equal(made[18:22], awkward[18:22].bfloat16())


@pytest.mark.usefixtures("interpreters_own")
def test_the_interpreter_itself_cuts_off():
    """Once it no longer does, ``conftest.py`` need not replace it."""
    assert narrowed(torch.tensor([1.0078124])).item() == 1.0


@pytest.mark.usefixtures("interpreters_own")
def test_a_kernel_that_cuts_off_does_not_pass(memory):
    x, table = torch.randn(1, 2, 3, 8).bfloat16(), memory.table(3, pairs=4)
    (made,) = rotate_heads((x,), table, None, RotaryLayout())
    assert not torch.equal(made, reference.rotate_heads(x, table))
