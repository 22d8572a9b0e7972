"""The sum in C gives the bits of the reference, whatever the shape and the memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc.kernels.addition import reference
from posenc.kernels.addition.cpu import gradient_of_x, scaled_sum
from posenc.kernels.embedding.reference import embedded
from posenc.kernels.philox import Dropping

pytestmark = pytest.mark.usefixtures("variant")

DTYPES = {
    torch.float32: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float64: torch.float64,
}
LAYOUTS = st.sampled_from(["contiguous", "transposed", "sliced", "unaligned", "expanded"])
DROPPINGS = st.one_of(
    st.none(), st.builds(Dropping, st.floats(0.01, 0.99), st.integers(0, 2**63 - 2))
)
SCALES = st.sampled_from([None, 1.0, 22.627416997969522, -0.3])
BATCH, A, B = (st.integers(1, most) for most in (3, 5, 9))
WIDTHS = st.one_of(st.integers(1, 70), st.sampled_from([64, 128, 1025]))


def table_of(shape, dtype, rows):
    axes = [1 if one else size for size, one in zip(shape[:-1], rows, strict=False)]
    while rows[3] and axes and axes[0] == 1:
        axes.pop(0)
    return torch.randn(*axes, shape[-1], dtype=dtype)


@settings(max_examples=150, deadline=None)
@given(
    dtype=st.sampled_from(list(DTYPES)), layout=LAYOUTS, shape=st.tuples(BATCH, A, B, WIDTHS),
    rows=st.tuples(*[st.booleans()] * 4), scale=SCALES, dropping=DROPPINGS,
)  # fmt: skip
def test_every_shape_gives_the_bits_of_the_reference(
    memory, dtype, layout, shape, rows, scale, dropping
):
    x = memory(torch.randn(shape).to(dtype), layout)
    table = table_of(shape, DTYPES[dtype], rows)
    given = {"scale": scale, "dropping": dropping}
    want = reference.scaled_sum(x, table, **given)
    made = scaled_sum(x, table, **given)
    assert made.is_contiguous()
    assert torch.equal(made, want)
    room = memory(torch.zeros_like(want), "sliced")
    assert scaled_sum(x, table, **given, out=room) is room
    assert torch.equal(room, want)
    if layout != "expanded":
        assert scaled_sum(x, table, **given, out=x) is x
        assert torch.equal(x, want)


@settings(max_examples=80, deadline=None)
@given(
    dtype=st.sampled_from(list(DTYPES)), shape=st.tuples(BATCH, B), dim=WIDTHS,
    each=st.booleans(), scale=SCALES, dropping=DROPPINGS, looked_up=st.booleans(),
)  # fmt: skip
def test_rows_are_looked_up_where_they_are_used(
    dtype, shape, dim, each, scale, dropping, looked_up
):
    weight = torch.randn(30, dim).to(dtype)
    table = torch.randn(20, 2 * dim, dtype=DTYPES[dtype])[:, :dim]
    positions = torch.randint(20, shape if each else shape[1:])
    given = {"scale": scale, "dropping": dropping}
    if looked_up:
        ids = torch.randint(30, shape[::-1]).T
        made = scaled_sum(weight, table, ids=ids, positions=positions, **given)
        want = embedded(ids, weight, table, positions, **given)
    else:
        x = torch.randn(*shape, dim).to(dtype)
        made = scaled_sum(x, table, positions=positions, **given)
        want = reference.scaled_sum(x, table, positions, **given)
    assert torch.equal(made, want)


@settings(max_examples=80, deadline=None)
@given(
    dtype=st.sampled_from(list(DTYPES)), layout=LAYOUTS, shape=st.tuples(BATCH, A, B, WIDTHS),
    scale=SCALES, dropping=DROPPINGS,
)  # fmt: skip
def test_gradients_are_the_bits_of_the_reference(memory, dtype, layout, shape, scale, dropping):
    gradient = memory(torch.randn(shape).to(dtype), layout)
    made = gradient_of_x(gradient, scale, dropping)
    assert torch.equal(made, reference.gradient_of_x(gradient, scale, dropping))


@pytest.mark.slow("large tensors", spares=4)
@pytest.mark.parametrize("dropping", [None, Dropping(0.1, 2**62 + 1)], ids=["all", "some"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_large_results_are_streamed_to_the_last_byte(memory, dtype, dropping):
    """Above the size from which stores go past the caches, at widths that fill no whole line."""
    for layout in ("unaligned", "sliced", "contiguous"):
        x = memory(torch.randn(3, 5, 97, 2049).to(dtype), layout)
        table = torch.randn(97, 2049, dtype=DTYPES[dtype])
        room = memory(torch.zeros_like(x), layout)
        scaled_sum(x, table, scale=3.3, dropping=dropping, out=room)
        want = reference.scaled_sum(x, table, scale=3.3, dropping=dropping)
        assert torch.equal(room, want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_sums_of_any_bits_are_rounded_once_to_nearest_even(dtype):
    """Every upper half of a float32 beside lower ones about a half; what is NaN stays NaN."""
    upper = torch.arange(-(2**15), 2**15, dtype=torch.int32) << 16
    for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        table = (upper | lower).view(torch.float32)[:-1]  # an odd number of them
        made = scaled_sum(torch.zeros(1, len(table), dtype=dtype), table)[0]
        want = table.to(dtype)
        assert torch.equal(made.isnan(), want.isnan())
        assert torch.equal(made[~want.isnan()], want[~want.isnan()])


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)], ids=str)
def test_nothing_is_added_to_nothing(shape):
    assert scaled_sum(torch.empty(2, *shape), torch.empty(shape)).shape == (2, *shape)


def test_dropped_elements_are_0_even_where_the_sum_is_not_finite():
    x = torch.tensor([float("inf"), float("nan"), -1.0, float("-inf")]).repeat(64)
    dropping = Dropping(0.5, 1)
    made, want = (
        f(x, torch.zeros(256), dropping=dropping) for f in (scaled_sum, reference.scaled_sum)
    )
    assert torch.equal(made.nan_to_num(7.0), want.nan_to_num(7.0))
    assert (made == 0).sum() == (want == 0).sum() > 80
    assert not made.signbit()[made == 0].any()


def test_rows_outside_are_refused_before_anything_is_written():
    x, table = torch.ones(3, 4), torch.randn(7, 4)
    for wrong in (7, -1, 2**62):
        where = torch.tensor([0, 1, wrong])
        with pytest.raises(IndexError, match=r"past the last row of the table\. Build"):
            scaled_sum(x, table, positions=where, out=x)
        with pytest.raises(IndexError, match="past the last of 7 vectors"):
            scaled_sum(table, x, ids=where)
    assert (x == 1).all()


def test_memory_that_is_shared_is_left_to_the_reference():
    room, table = torch.zeros(9, 4), torch.randn(8, 4)
    assert scaled_sum(room[1:], table, out=room[:8]) is None
    assert scaled_sum(room[:8], room[1:], out=room[:8]) is None
    assert scaled_sum(room[:8], room[:8], out=room[:8]) is None
    assert scaled_sum(torch.ones(8, 4), table, out=torch.zeros(1, 4).expand(8, 4)) is None
    overlapping = torch.zeros(40).as_strided((8, 4), (2, 1))
    assert scaled_sum(torch.ones(8, 4), table, out=overlapping) is None
    square = torch.zeros(4, 4)
    assert scaled_sum(square.T, torch.randn(4, 4), out=square) is None
    indices = torch.zeros(8, dtype=torch.int64)
    into = indices.view(torch.float64).view(8, 1)
    given = {"positions": indices, "out": into}
    assert scaled_sum(torch.ones(8, 1).double(), torch.ones(8, 1).double(), **given) is None
    assert (room == 0).all()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, t: (x.long(), t),
        lambda x, t: (x, t.double()),
        lambda x, t: (x.double(), t),
        lambda x, t: (x[..., :3], t),
        lambda x, t: (x[:, :3], t),
        lambda x, t: (x[0], t.expand(2, 5, 6)),
        lambda x, t: (x, t[..., :1]),
        lambda x, t: (x.to("meta"), t),
        lambda x, t: (x.to_sparse(), t),
        lambda x, t: (torch.stack((x, x), -1)[..., 0], t),
        lambda x, t: (torch.complex(x, x).conj().imag, t),
    ],
)
def test_what_does_not_fit_is_not_taken(wrong):
    x, table = wrong(torch.randn(2, 5, 6), torch.randn(5, 6))
    assert scaled_sum(x, table) is None
