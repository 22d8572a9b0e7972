"""Operands anywhere in one buffer: a result is right, or it is refused; never wrong.

Views are drawn at random, so most of them overlap in some way that nobody thought of.
"""

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from posenc.kernels.addition import cpu as addition
from posenc.kernels.addition.operator import scaled_sum
from posenc.kernels.library import library
from posenc.kernels.rotary import cpu as rotary
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.operator import by_reference, rotate_heads

ROOM = 400
NUMBERS = st.integers(0, ROOM // 2)

native = pytest.param("C", marks=pytest.mark.skipif(library() is None, reason="no library"))


@pytest.fixture(params=[native, "torch"])
def backend(request, monkeypatch):
    if request.param == "torch":
        monkeypatch.setattr(addition, "_native", lambda: None)
        monkeypatch.setattr(rotary, "_native", lambda: None)
        monkeypatch.setattr(rotary, "_native_with_tensors", lambda: None)
    return request.param


def view(room, shape, order, gap, offset):
    """A tensor of this shape in a room, its axes in some order of memory, with a gap or nested."""
    steps, step = [0] * len(shape), 1
    for axis in order:
        steps[axis] = step
        step *= shape[axis] + (gap if axis == order[0] else 0)
    steps = [max(step, 0) for step in steps]
    assume(offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) < len(room))
    return room.as_strided(shape, steps, offset)


def _check_words(refused):
    assert str(refused).startswith(("out shares memory with", "out has shape"))


PLACES = st.tuples(st.integers(-1, 3), NUMBERS)
ORDERS = st.permutations([0, 1, 2]).map(lambda order: (3, *order))

ROTATIONS = given(
    orders=st.lists(ORDERS, min_size=4, max_size=4),
    places=st.lists(PLACES, min_size=5, max_size=5),
    in_place=st.booleans(),
    looked_up=st.booleans(),
    kv_heads=st.integers(1, 2),
)
SUMS = given(
    orders=st.lists(ORDERS, min_size=2, max_size=2),
    places=st.lists(PLACES, min_size=3, max_size=3),
    in_place=st.booleans(),
    looked_up=st.booleans(),
)


def often(examples):
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
    )


@pytest.mark.usefixtures("backend")
@often(250)
@ROTATIONS
def test_a_rotation_is_right_or_refused(orders, places, in_place, looked_up, kv_heads):
    rotate_somewhere(orders, places, in_place, looked_up, kv_heads)


@pytest.mark.usefixtures("backend")
@often(250)
@SUMS
def test_a_sum_is_right_or_refused(orders, places, in_place, looked_up):
    add_somewhere(orders, places, in_place, looked_up)


def rotate_somewhere(orders, places, in_place, looked_up, kv_heads):
    room = torch.randn(ROOM)
    shapes = [(1, 2, 3, 4), (1, kv_heads, 3, 4)] * 2
    parts = [view(room, *what, *at) for *what, at in zip(shapes, orders, places[:4], strict=True)]
    q, k, *outs = parts
    table = room[places[4][1] :][: 5 * 4]
    assume(len(table) == 20)
    table = table.view(5, 2, 2) if looked_up else table[:12].view(3, 2, 2)
    numbers = torch.tensor([4, 0, 1]) if looked_up else None
    contents, outs = (q, k), (q, k) if in_place else tuple(outs)
    want = by_reference((q.clone(), k.clone()), table.clone(), numbers, RotaryLayout())
    before, kept = room.clone(), table.clone()
    try:
        made = rotate_heads(contents, table, numbers, layout=RotaryLayout(), outs=outs)
        if made is None:
            made = by_reference(contents, table, numbers, RotaryLayout(), outs)
    except ValueError as refused:
        _check_words(refused)
        return
    assert all(map(torch.equal, made, want))
    assert torch.equal(table, kept)
    for out in outs:
        out.zero_()
        before.as_strided(out.shape, out.stride(), out.storage_offset()).zero_()
    assert torch.equal(room, before)  # nothing else was written


def add_somewhere(orders, places, in_place, looked_up):
    room = torch.randn(ROOM)
    shape = (2, 2, 3, 4)
    x, out = (view(room, shape, order, *at) for order, at in zip(orders, places[:2], strict=True))
    table = room[places[2][1] :][: 5 * 4]
    assume(len(table) == 20)
    table = table.view(5, 4) if looked_up else table[:12].view(3, 4)
    numbers = torch.tensor([4, 0, 1]) if looked_up else None
    out = x if in_place else out
    want = scaled_sum(x.clone(), table.clone(), numbers, scale=3.0)
    before, kept = room.clone(), table.clone()
    try:
        made = scaled_sum(x, table, numbers, scale=3.0, out=out)
    except ValueError as refused:
        _check_words(refused)
        return
    assert torch.equal(made, want)
    assert torch.equal(table, kept)
    out.zero_()
    before.as_strided(out.shape, out.stride(), out.storage_offset()).zero_()
    assert torch.equal(room, before)
