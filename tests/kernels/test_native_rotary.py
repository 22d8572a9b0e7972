"""The rotation in C gives the bits of the reference, whatever the shape and the memory."""

from concurrent.futures import ThreadPoolExecutor
from ctypes import POINTER, PyDLL, c_char_p
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from posenc.kernels.exchange import exchange
from posenc.kernels.rotary import cpu as native
from posenc.kernels.rotary import reference
from posenc.kernels.rotary.cpu import rotate, rotate_heads
from posenc.kernels.rotary.layout import RotaryLayout
from posenc.kernels.rotary.strides import RotaryPlan, table_plan
from posenc.kernels.strides import strided, strided_or_none

pytestmark = pytest.mark.usefixtures("variant")

DTYPES = {
    torch.float32: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float64: torch.float64,
}
LAYOUTS = ("contiguous", "transposed", "sliced", "unaligned", "expanded")
ROTARY_LAYOUTS = st.builds(RotaryLayout, *[st.booleans()] * 4)


def expected(x, table, layout, positions=None):
    return reference.rotate_heads(
        x,
        table,
        positions,
        pairing=layout.pairing,
        rotated=layout.rotated,
        heads_first=layout.heads_first,
        conjugate=layout.conjugate,
    )


def content(memory, shape, layout, dtype, laid):
    batch, heads, tokens, width = shape
    axes = (batch, heads, tokens, width) if layout.heads_first else (batch, tokens, heads, width)
    return memory(torch.randn(axes).to(dtype), laid)


def test_the_library_that_is_compared_is_the_one_that_runs(variant):
    assert Path(native.library()._name).stem == f"kernels_{variant}"
    assert native._native()


@settings(max_examples=150, deadline=None)
@given(
    layout=ROTARY_LAYOUTS,
    dtype=st.sampled_from(list(DTYPES)),
    laid=st.sampled_from(LAYOUTS),
    shape=st.tuples(*[st.integers(1, most) for most in (3, 5, 9)]),
    pairs=st.integers(1, 70),
    rest=st.integers(0, 9),
    rows=st.sampled_from(["shared", "each", "looked up", "looked up for each"]),
)
def test_every_shape_gives_the_bits_of_the_reference(
    memory, layout, dtype, laid, shape, pairs, rest, rows
):
    batch, _, tokens = shape
    x = content(memory, (*shape, 2 * pairs + rest), layout, dtype, laid)
    each = (batch,) if rows.endswith("each") else ()
    positions = None
    if rows.startswith("looked up"):
        table = memory.table(20, pairs=pairs, dtype=DTYPES[dtype])
        positions = torch.randint(20, (*each, tokens))
    else:
        table = memory.table(*each, tokens, pairs=pairs, dtype=DTYPES[dtype])
    want = expected(x, table, layout, positions)

    (fresh,) = rotate_heads((x,), table, positions, layout)
    assert fresh.is_contiguous()
    assert torch.equal(fresh, want)
    room = memory(torch.zeros_like(want), "sliced")
    (written,) = rotate_heads((x,), table, positions, layout, (room,))
    assert written is room
    assert torch.equal(room, want)
    if laid != "expanded":
        contents = (x,)
        assert rotate_heads(contents, table, positions, layout, contents) is contents
        assert torch.equal(x, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_numbers_are_those_of_the_reference(dtype):
    """Zeros of both signs, subnormals, the largest numbers, infinities; and NaN stays NaN."""
    info = torch.finfo(dtype)
    special = [0.0, -0.0, info.tiny, info.tiny / 3, info.max, -info.max, float("inf"), 1.0, 65519.9]
    pairs = torch.cartesian_prod(*[torch.tensor(special, dtype=torch.float64).to(dtype)] * 2)
    x = pairs[:, None, None].contiguous()
    table = torch.tensor([[[0.6], [0.8]]], dtype=DTYPES[dtype])
    made, want = (
        rotate_heads((x,), table, None, RotaryLayout())[0],
        expected(x, table, RotaryLayout()),
    )
    known = ~want.isnan()
    assert torch.equal(made[known].view(-1), want[known].view(-1))
    assert torch.equal(made.signbit()[known], want.signbit()[known])
    assert made[~known].isnan().all()
    assert (~known).any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_narrow_numbers_are_rounded_once_to_nearest_even(dtype):
    """Turned by nothing, every number of the format comes back; by half, ties go to even."""
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    every = every[every.isfinite()]
    every = every[: len(every) // 2 * 2].view(1, 1, -1)
    pairs = every.shape[-1] // 2
    for size in (1.0, 0.5, 0.75, 1 / 3):
        table = torch.stack((torch.full((pairs,), size), torch.zeros(pairs)))[None]
        made = rotate_heads((every,), table, None, RotaryLayout())[0]
        want = (every.float() * size).to(dtype)
        assert torch.equal(made, want)


def test_large_results_are_streamed_to_the_last_byte(memory):
    """Above the size from which stores go past the caches, at widths that fill no whole line."""
    for width, laid in (
        (66, "sliced"),
        (128, "unaligned"),
        (128, "transposed"),
        (2500, "sliced"),
    ):
        tokens = 2**21 // (4 * width)
        x = torch.randn(1, 4, tokens, width)
        table = memory.table(tokens, pairs=32)
        room = memory(torch.zeros_like(x), laid)
        rotate_heads((x,), table, None, RotaryLayout(), (room,))
        assert torch.equal(room, expected(x, table, RotaryLayout()))


def test_new_memory_of_many_megabytes_is_filled(memory):
    """Where large pages are asked for, and results do not go past the caches."""
    q, table = torch.randn(1, 2, 2**15 + 3, 136), memory.table(2**15 + 3, pairs=64)
    assert torch.equal(
        rotate_heads((q,), table, None, RotaryLayout())[0], expected(q, table, RotaryLayout())
    )


def test_queries_and_keys_rotate_in_one_call(memory):
    layout = RotaryLayout(heads_first=False)
    q, k = torch.randn(2, 5, 8, 16), torch.randn(2, 5, 2, 16)
    table, positions = memory.table(99, pairs=8), torch.tensor([[5, 4, 3, 2, 98], [0, 0, 1, 1, 2]])
    made = rotate_heads((q, k), table, positions, layout)
    for got, x in zip(made, (q, k), strict=True):
        assert torch.equal(got, expected(x, table, layout, positions))


@settings(max_examples=60, deadline=None)
@given(
    axes=st.lists(st.integers(1, 4), min_size=2, max_size=3),
    fewer=st.integers(0, 3),
    ones=st.lists(st.booleans(), min_size=3, max_size=3),
    interleaved=st.booleans(),
)
def test_cosines_broadcast_as_tensors_do(memory, axes, fewer, ones, interleaved):
    x = torch.randn(*axes, 10)
    rows = [1 if one else n for n, one in zip(axes, ones, strict=False)][min(fewer, len(axes)) :]
    cos, sin = memory.table(*rows, pairs=5).unbind(-2)
    made = rotate(x, cos, sin, RotaryLayout(interleaved))
    pairing = "interleaved" if interleaved else "half"
    assert torch.equal(made, reference.rotate(x, cos, sin, pairing=pairing))


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4)], ids=str)
def test_nothing_is_rotated_into_nothing(memory, shape):
    made = rotate_heads(
        (torch.empty(shape),), memory.table(shape[2], pairs=2), None, RotaryLayout()
    )
    assert made[0].shape == shape


def test_keys_without_heads_leave_queries_to_rotate(memory):
    q, k, table = torch.randn(1, 2, 3, 4), torch.empty(1, 0, 3, 4), memory.table(3, pairs=2)
    for contents in ((q, k), (k, q)):
        made = rotate_heads(contents, table, None, RotaryLayout())
        assert made[0].shape == contents[0].shape
        rotated = made[0] if contents[0] is q else made[1]
        assert torch.equal(rotated, expected(q, table, RotaryLayout()))


def test_threads_of_python_rotate_side_by_side(memory):
    """Python's lock is held while tensors are read, and let go where a rotation takes long."""
    contents = [torch.randn(1, 4, 700, 64) for _ in range(8)] + [torch.randn(1, 4, 3, 64)] * 8
    tables = {n: memory.table(n, pairs=32) for n in (700, 3)}
    with ThreadPoolExecutor(4) as pool:
        made = pool.map(
            lambda x: rotate_heads((x,), tables[x.shape[-2]], None, RotaryLayout())[0], contents * 4
        )
        for got, x in zip(made, contents * 4, strict=True):
            assert torch.equal(got, expected(x, tables[x.shape[-2]], RotaryLayout()))


@pytest.mark.parametrize("width", [3, 5, 6])
def test_another_width_than_the_one_asked_for_is_not_taken(memory, width):
    x, table = torch.randn(1, 1, 5, 4), memory.table(5, pairs=2)
    assert rotate_heads((x,), table, None, RotaryLayout(), width=width) is None
    assert rotate_heads((x,), table, None, RotaryLayout(), width=4) is not None


@pytest.fixture
def without_dlpack(monkeypatch):
    """A torch that hands no C functions over, as most that are in use."""
    monkeypatch.setattr(Tensor, "__dlpack_c_exchange_api__", None, raising=False)
    native._native_with_tensors.cache_clear()
    yield
    native._native_with_tensors.cache_clear()


@pytest.mark.usefixtures("without_dlpack")
@pytest.mark.parametrize("looked_up", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_without_dlpacks_functions_python_reads_tensors(memory, looked_up, in_place):
    assert exchange() is None
    assert native._native_with_tensors() is None
    q, k, table = torch.randn(2, 5, 3, 8), torch.randn(2, 2, 3, 8), memory.table(9, pairs=4)
    positions = torch.tensor([[8, 0, 1], [2, 2, 2]]) if looked_up else None
    table = table if looked_up else table[:3]
    want = [expected(x, table, RotaryLayout(), positions) for x in (q, k)]
    contents = (q, k)
    made = rotate_heads(
        contents, table, positions, RotaryLayout(), contents if in_place else None, width=8
    )
    assert all(map(torch.equal, made, want))
    assert in_place == (made is contents)
    assert rotate_heads(contents, table, positions, RotaryLayout(), width=6) is None
    assert rotate_heads((q.to_sparse(),), table, None, RotaryLayout()) is None
    if looked_up:
        with pytest.raises(IndexError, match="past the last row of the table"):
            rotate_heads(contents, table, positions + 7, RotaryLayout())


@pytest.mark.skipif(exchange() is None, reason="C reads tensors from torch 2.10 on")
@settings(max_examples=200, deadline=None)
@given(
    layout=ROTARY_LAYOUTS,
    laid=st.sampled_from(LAYOUTS),
    shape=st.tuples(*[st.integers(1, most) for most in (3, 4, 4)]),
    axes=st.sampled_from([2, 3, 4]),
    kv_heads=st.integers(0, 3),
    pairs=st.integers(0, 4),
    rest=st.integers(0, 2),
    dtypes=st.sampled_from([*DTYPES.items(), (torch.float32, torch.float64)]),
    rows=st.sampled_from(["shared", "each", "one", "wrong", "looked up", "looked up for each"]),
)
def test_python_and_c_make_the_same_plan(
    memory, layout, laid, shape, axes, kv_heads, pairs, rest, dtypes, rows
):
    """Of whatever tensors: each field, and whether there is one at all."""
    content_dtype, table_dtype = dtypes
    batch, _, tokens = shape
    width = max(2 * pairs + rest, 1)
    q = content(memory, (*shape, width), layout, content_dtype, laid)
    k = content(memory, (batch, kv_heads, tokens, width), layout, content_dtype, "contiguous")
    contents = (q, k) if kv_heads else (q,)
    contents = tuple(x[(0,) * (4 - axes)] for x in contents)
    lead = {"each": (batch,), "one": (1,), "wrong": (batch + 1,)}.get(rows, ())
    positions = None
    if rows.startswith("looked up"):
        table = memory.table(7, pairs=pairs, dtype=table_dtype)
        each = (batch,) if rows.endswith("each") else ()
        positions = torch.randint(7, (*each, 2 * tokens))[..., ::2]
    else:
        table = memory.table(*lead, tokens, pairs=pairs, dtype=table_dtype)
    planned = table_plan(
        tuple(map(strided, contents)), None, strided(table), strided_or_none(positions), layout
    )
    outs = tuple(torch.empty(x.shape, dtype=x.dtype) for x in contents)
    by_c = plan_of_c(contents, outs, table, positions, layout)
    assert (planned is None) == (by_c is None)
    if planned is not None:
        assert bytes(planned) == bytes(by_c)


def plan_of_c(contents, outs, table, positions, layout):
    """The plan that ``rotary_tensors.c`` makes by itself."""
    assert native._native_with_tensors() is not None  # it knows how to read tensors now
    plan = PyDLL(native.library()._name).posenc_rotary_plan
    plan.argtypes = [c_char_p, POINTER(RotaryPlan)]
    asked = table if positions is None else positions
    flags = native.FLAGS[layout] | native.FRESH
    flags |= native.LOOKED_UP * (positions is not None) | native.WITH_KEYS * (len(contents) == 2)
    made = RotaryPlan()
    objects = contents[0], outs[0], contents[-1], outs[-1], table, asked
    packed = native._pack_tensors(*map(id, objects), contents[0].shape[-1], flags, 1)
    return None if plan(packed, made) else made


def test_positions_outside_the_table_are_refused_before_anything_is_written(memory):
    x, table = torch.ones(1, 1, 3, 4), memory.table(7, pairs=2)
    for wrong in (7, -1, 2**62):
        contents = (x,)
        with pytest.raises(IndexError, match=r"past the last row of the table\. Build"):
            rotate_heads(contents, table, torch.tensor([0, 1, wrong]), RotaryLayout(), contents)
    assert (x == 1).all()


def test_memory_that_is_shared_is_left_to_the_reference(memory):
    """An output that overlaps its input elsewhere, or itself, or the table, is not written by C."""
    room, table = torch.zeros(1, 1, 9, 4), memory.table(8, pairs=2)
    layout, x, kept = RotaryLayout(), torch.ones(1, 1, 8, 4), table.clone()
    assert rotate_heads((room[:, :, 1:],), table, None, layout, (room[:, :, :8],)) is None
    assert rotate_heads((room[:, :, :8],), table, None, layout, (room[:, :, 1:],)) is None
    thin = torch.zeros(1, 1, 1, 4).expand(1, 1, 8, 4)
    assert rotate_heads((x,), table, None, layout, (thin,)) is None
    close = torch.zeros(64).as_strided((1, 1, 8, 4), (32, 32, 3, 1))
    assert rotate_heads((x,), table, None, layout, (close,)) is None
    assert rotate_heads((x,), table, None, layout, (table.view(1, 1, 8, 4),)) is None
    numbers = torch.zeros(16, dtype=torch.int64)
    into = numbers.view(torch.float32).view(1, 1, 8, 4)
    assert rotate_heads((x,), table, numbers[:8], layout, (into,)) is None
    assert rotate_heads((x, x), table, None, layout, (x, x)) is None
    twice = torch.zeros(1, 3, 8, 4)
    heads = torch.ones(1, 2, 8, 4)
    assert rotate_heads((heads, heads), table, None, layout, (twice[:, :2], twice[:, 1:])) is None
    cos, sin = table.unbind(-2)
    assert rotate(cos.clone().repeat(1, 2)[None], cos, sin, layout, table.view(1, 8, 4)) is None
    assert not any(written.any() for written in (room, thin, close, numbers, twice))
    assert torch.equal(table, kept)
    assert (x == 1).all()


def test_operands_without_memory_are_not_taken(memory):
    """Storage that was given back, and tensors that torch knows to be zeros."""
    x, table, numbers = torch.ones(1, 1, 3, 4), memory.table(5, pairs=2), torch.zeros(3).long()
    zeros, layout = torch._efficientzerotensor, RotaryLayout()
    assert rotate_heads((x,), zeros((3, 2, 2)), None, layout) is None
    assert rotate_heads((x,), table, zeros((3,), dtype=torch.int64), layout) is None
    assert rotate_heads((zeros((1, 1, 3, 4)),), table[:3], None, layout) is None
    assert rotate(x, zeros((3, 2)), zeros((3, 2)), layout) is None
    for freed in (table, numbers, x):
        freed.untyped_storage().resize_(0)
        assert rotate_heads((x,), table, numbers, layout) is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, t: (x.long(), t),
        lambda x, t: (x, t.double()),
        lambda x, t: (x.double(), t),
        lambda x, t: (x[..., :2], t),
        lambda x, t: (x[:, :, :3], t),
        lambda x, t: (x[0, 0], t),
        lambda x, t: (x, t[:, :1]),
        lambda x, t: (x, t.expand(3, *t.shape)),
        lambda x, t: (x.to("meta"), t),
        lambda x, t: (x.to_sparse(), t),
        lambda x, t: (torch.stack((x, x), -1)[..., 0], t),
        lambda x, t: (torch.complex(x, x).conj().imag, t),
    ],
)
def test_what_does_not_fit_is_not_taken(memory, wrong):
    x, table = wrong(torch.randn(2, 1, 5, 6), memory.table(5, pairs=3))
    assert rotate_heads((x,), table, None, RotaryLayout()) is None
