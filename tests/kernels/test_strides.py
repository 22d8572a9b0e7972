"""Which memory meets, against every address; and plans whose fields are those of the C structs."""

import ctypes
import re
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import posenc
from posenc.kernels.addition.cpu import AdditionOperands
from posenc.kernels.addition.strides import AdditionPlan, addition_plan
from posenc.kernels.rotary.cpu import TENSORS, RotaryOperands
from posenc.kernels.rotary.strides import Heads, RotaryPlan
from posenc.kernels.sincos.cpu import SinCosOperands
from posenc.kernels.sincos.strides import SinCosPlan, one_axis
from posenc.kernels.strides import (
    alike,
    apart,
    fits,
    may_meet_itself,
    meet,
    meets_itself,
    strided,
)

SOURCES = Path(posenc.__file__).parent / "kernels/csrc"

LAYOUTS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 12)), min_size=1, max_size=3)
DTYPES = st.sampled_from([torch.float32, torch.bfloat16, torch.float64])


def view(room: torch.Tensor, dtype: torch.dtype, axes, offset: int) -> torch.Tensor:
    """Some tensor in a room of bytes, which it does not leave."""
    whole = room.view(dtype)
    sizes, steps = zip(*axes, strict=True)
    assume(offset + sum((n - 1) * step for n, step in axes) < whole.numel())
    return whole.as_strided(sizes, steps, offset)


def places(x: torch.Tensor) -> list[int]:
    """The address of each byte of each element, counted one by one."""
    addresses = [x.data_ptr()]
    for size, step in zip(x.shape, x.stride(), strict=True):
        addresses = [a + i * step * x.element_size() for a in addresses for i in range(size)]
    return [a + byte for a in addresses for byte in range(x.element_size())]


@settings(max_examples=300, deadline=None)
@given(
    first=LAYOUTS, second=LAYOUTS, dtypes=st.tuples(DTYPES, DTYPES),
    offsets=st.tuples(st.integers(0, 20), st.integers(0, 20)),
)  # fmt: skip
def test_what_meets_is_what_has_an_address_in_common(first, second, dtypes, offsets):
    room = torch.zeros(1024, dtype=torch.uint8)
    one, other = view(room, dtypes[0], first, offsets[0]), view(room, dtypes[1], second, offsets[1])
    common = not set(places(one)).isdisjoint(places(other))
    assert meet(one, other) == meet(other, one) == common
    assert not (apart(one, other) and common)
    assert apart(one, other) == apart(other, one)
    assert not (fits(one, other) and common and not alike(one, other))
    itself = len(set(places(one))) < len(places(one))
    assert meets_itself(one) == itself
    assert may_meet_itself(one.shape, one.stride()) or not itself


def test_slices_of_one_buffer_are_apart():
    """As queries, keys and values of one projection, whichever way it is laid out."""
    for joined, axis in ((torch.zeros(2, 5, 12, 4), 2), (torch.zeros(2, 12, 5, 4), 1)):
        q, k = joined.narrow(axis, 0, 8), joined.narrow(axis, 8, 2)
        assert apart(q, k)
        assert apart(k, q)
        assert fits(q, q, k)
        assert not apart(q, joined.narrow(axis, 7, 2))
        assert not apart(q, q)
    beside = torch.zeros(3, 8)
    assert apart(beside[:, ::2], beside[:, 1::2])
    assert not apart(beside[:, ::2], beside[:, 1::4])  # they are, and it is not told
    assert not meet(beside[:, ::2], beside[:, 1::4])


def test_nothing_meets_nothing():
    room = torch.zeros(4)
    assert not meet(room[:0], room)
    assert apart(room[2:2], room)
    assert not meets_itself(room[:0].expand(3, 0))


@pytest.mark.parametrize(
    ("shape", "steps", "whole"),
    [((), (), 1), ((5,), (3,), 3), ((2, 5), (15, 3), 3), ((2, 5), (16, 3), None),
     ((2, 1, 5), (5, 9, 1), 1), ((4, 5), (0, 0), 0), ((4, 5), (0, 1), None)],
)  # fmt: skip
def test_axes_are_one_where_a_single_stride_walks_them(shape, steps, whole):
    assert one_axis(shape, steps) == whole


def test_a_batch_that_shares_its_table_is_one_run_a_row():
    """So that a part of the table serves every row of the batch while it is in cache."""
    x, table = torch.empty(8, 20, 64), torch.empty(20, 64)
    plan, _ = addition_plan(strided(x), strided(table), None)
    assert (list(plan.sizes), plan.width) == ([1, 1, 8], 20 * 64)
    positions = strided(torch.zeros(20, dtype=torch.int64))
    plan, _ = addition_plan(strided(x), strided(table), None, positions=positions)
    assert (list(plan.sizes), plan.width) == ([1, 8, 20], 64)


STRUCTS = {
    "heads": ("rotary.h", Heads),
    "rotary_plan": ("rotary.h", RotaryPlan),
    "rotary_operands": ("rotary.h", RotaryOperands),
    "rotary_tensors": ("rotary_tensors.c", None),
    "addition_plan": ("addition.c", AdditionPlan),
    "addition_operands": ("addition.c", AdditionOperands),
    "sincos_plan": ("sincos.c", SinCosPlan),
    "sincos_operands": ("sincos.c", SinCosOperands),
}
SIZES = {"AXES": 3, "QUERIES_AND_KEYS": 2}


def fields_in_c(name: str, file: str) -> list[tuple[str, int]]:
    """Names of a struct's fields in its source, in order, and how many elements each has."""
    source = re.sub(r"/\*.*?\*/", "", (SOURCES / file).read_text(), flags=re.DOTALL)
    body = re.search(rf"struct {name} \{{(.*?)\n\}};", source, re.DOTALL)[1]
    fields = []
    for declaration in body.split(";"):
        declared = re.sub(r"^\s*(const )?(struct )?\w+", "", declaration)
        for field in filter(str.strip, declared.split(",")):
            word, _, size = re.search(r"(\w+)(\[(\w+)\])?\s*$", field).groups()
            fields.append((word, SIZES[size] if size else 1))
    return fields


@pytest.mark.parametrize("name", STRUCTS)
def test_fields_bear_the_names_of_the_c_structs(name):
    file, structure = STRUCTS[name]
    found = fields_in_c(name, file)
    if structure is None:
        assert found == [(word, 1) for word in TENSORS]
        return
    declared = [(word, getattr(kind, "_length_", 1)) for word, kind in structure._fields_]
    assert found == declared
    plain = [kind for _, kind in structure._fields_ if not hasattr(kind, "_length_")]
    assert all(ctypes.sizeof(kind) == 8 for kind in plain)
