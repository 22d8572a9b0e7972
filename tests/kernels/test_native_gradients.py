"""Autograd through the rotation in C: its gradient is the rotation backwards."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Rotary
from posenc.kernels.rotary import reference
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.operator import rotate_heads


def rotated(x, table, positions=None, layout=None):
    made = rotate_heads((x,), table, positions, layout=layout or RotaryLayout())
    assert made is not None
    return made[0]


@settings(max_examples=12, deadline=None)
@given(layout=st.builds(RotaryLayout, *[st.booleans()] * 4), looked_up=st.booleans())
def test_first_and_second_derivatives_are_right(memory, layout, looked_up):
    x = torch.randn(2, 3, 3, 6, dtype=torch.float64, requires_grad=True)
    table = memory.table(3, pairs=2, dtype=torch.float64)
    positions = torch.tensor([2, 0, 0]) if looked_up else None
    assert torch.autograd.gradcheck(lambda x: rotated(x, table, positions, layout), x)
    assert torch.autograd.gradgradcheck(lambda x: rotated(x, table, positions, layout).sin(), x)


@settings(max_examples=60, deadline=None)
@given(
    layout=st.builds(RotaryLayout, *[st.booleans()] * 4),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    laid=st.sampled_from(
        ["contiguous", "transposed", "sliced", "unaligned", "expanded", "strided channels"]
    ),
)
def test_gradients_are_the_bits_of_the_reference(memory, layout, dtype, laid):
    x = torch.randn(2, 4, 4, 20).to(dtype).requires_grad_()
    table, gradient = memory.table(4, pairs=8), memory(torch.randn(2, 4, 4, 20).to(dtype), laid)
    (got,) = torch.autograd.grad(rotated(x, table, None, layout), x, gradient)
    back = layout.backwards()
    want = reference.rotate_heads(
        gradient,
        table,
        pairing=back.pairing,
        rotated=back.rotated,
        heads_first=back.heads_first,
        conjugate=back.conjugate,
    )
    assert torch.equal(got, want)


def test_a_gradient_of_a_sum_has_no_memory_of_its_own(memory):
    """``sum`` hands an expanded tensor back, with stride 0 everywhere."""
    x, table = torch.randn(1, 2, 5, 8, requires_grad=True), memory.table(5, pairs=4)
    rotated(x, table).sum().backward()
    ones = torch.ones(1, 2, 5, 8)
    assert torch.equal(x.grad, rotated(ones, table, None, RotaryLayout(conjugate=True)))


def test_a_table_that_learns_gets_its_gradient_from_the_reference():
    rotary = Rotary(8)
    table = rotary.table(torch.arange(5), dtype=torch.float64).requires_grad_()
    x = torch.randn(1, 2, 5, 8, dtype=torch.float64)
    assert rotate_heads((x,), table, layout=RotaryLayout()) is None
    assert torch.autograd.gradcheck(lambda t: rotary.encode_queries(x, t), table)


def test_writing_in_place_is_noticed_by_autograd():
    """What a product saved for its gradient was overwritten: that raises, as it does in torch."""
    rotary = Rotary(8)
    q, weight = torch.randn(1, 1, 3, 8), torch.randn(1, 1, 3, 8, requires_grad=True)
    table = rotary.table(torch.arange(3))
    product = (q * weight).sum()
    before = q._version
    rotary.encode_queries(q, table, out=q)
    assert q._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def test_a_leaf_that_needs_a_gradient_is_not_overwritten():
    rotary, q = Rotary(8), torch.randn(1, 1, 3, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        rotary.encode_queries(q, rotary.table(torch.arange(3)), out=q)
    with torch.no_grad():
        want = rotary.encode_queries(q, rotary.table(torch.arange(3)))
        rotary.encode_queries(q, rotary.table(torch.arange(3)), out=q)
    assert torch.equal(q, want)


def test_rotation_in_place_of_a_computed_tensor_passes_its_gradient():
    rotary, x = Rotary(8), torch.randn(1, 1, 3, 8, dtype=torch.float64, requires_grad=True)
    table = rotary.table(torch.arange(3), dtype=torch.float64)

    def in_place(x):
        q = x * 2
        return rotary.encode_queries(q, table, out=q)

    assert torch.autograd.gradcheck(in_place, x)
