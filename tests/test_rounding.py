"""One rounding: torch goes from float64 to the 16-bit formats by way of float32, which is two."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from posenc._rounding import rounded

NARROW = [torch.float32, torch.bfloat16, torch.float16]
SINES = st.floats(-1.0, 1.0)


def to(value: float, dtype: torch.dtype) -> float:
    return rounded(torch.tensor([value], dtype=torch.float64), dtype).double().item()


def exactly(value: float) -> mpf:
    with mp.workprec(60):
        return mpf(value)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@given(value=SINES)
def test_any_double_goes_to_its_nearest(oracle, dtype, value):
    assert to(value, dtype) == oracle.nearest(exactly(value), dtype)


@pytest.mark.parametrize(
    ("dtype", "half_step"), [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)]
)
@pytest.mark.parametrize("tail", [0.0, 2.0**-40, -(2.0**-40), 2.0**-30, -(2.0**-30)])
@pytest.mark.parametrize("steps", [1.0, 3.0])
def test_a_tail_below_float32_decides_a_tie(oracle, dtype, half_step, steps, tail):
    """Half-way values with a tail that float32 forgets: rounding twice loses half of them."""
    value = 0.5 + steps * half_step / 2 + tail
    assert to(value, dtype) == oracle.nearest(exactly(value), dtype)
    assert to(-value, dtype) == -to(value, dtype)


@given(steps=st.integers(-1023, 1023), tail=st.sampled_from([-(2.0**-60), 0.0, 2.0**-60]))
def test_subnormals_of_float16(oracle, steps, tail):
    """Half-way points between neighbors that are multiples of 2^-24, and just beside them."""
    value = (steps + 0.5) * 2.0**-24 + tail
    assert to(value, torch.float16) == oracle.nearest(exactly(value), torch.float16)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_zero_keeps_its_sign(dtype):
    zeros = rounded(torch.tensor([0.0, -0.0], dtype=torch.float64), dtype)
    assert zeros.signbit().tolist() == [False, True]
