"""Tables in C are correctly rounded: the bits of SinCos, at any position, in any memory."""

from fractions import Fraction
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import Rotary, Sinusoidal
from posenc.frequencies import FromCheckpoint, Geometric, TurnsPerUnit
from posenc.kernels.sincos.cpu import fill
from posenc.kernels.sincos.operator import cos_sin
from posenc.numerics.columns import Columns
from posenc.numerics.sincos import SinCos

pytestmark = pytest.mark.usefixtures("variant")

NARROW = [torch.float32, torch.bfloat16, torch.float16]
LONG = pytest.mark.slow("tables of many pieces")
SCHEDULES = [
    Geometric(64),
    Geometric(128, 1e7),
    Geometric(75, 500.0),
    Geometric(2),
    Geometric(1200),
    FromCheckpoint([0.0, 1e-12, 1e-20, 1.0, 3.14159265, 1000.0, -0.3]),
]
SINCOS = [SinCos(schedule) for schedule in SCHEDULES]


def bits(table):
    table = table.contiguous()
    return table.view(torch.int32 if table.element_size() == 4 else torch.int16)


def each_alone(sincos, positions, dtype, factor=1.0):
    """Every value from its own phase, in torch, and from more bits where it is in doubt."""
    return sincos._each(positions, dtype, factor)


@cache
def each_of_a_run(width, first, shape, dtype):
    """The same for positions from the first on, once for every library and every memory."""
    positions = torch.arange(torch.Size(shape).numel()).view(shape) + first
    return positions, each_alone(SinCos(Geometric(width)), positions, dtype)


runs = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 90))


@settings(max_examples=120, deadline=None)
@given(
    sincos=st.sampled_from(SINCOS),
    dtype=st.sampled_from(NARROW),
    runs=st.lists(runs, min_size=1, max_size=4),
    factor=st.sampled_from([1.0, 1.2079441541679836, -0.5]),
)
def test_any_runs_of_positions_give_the_bits_of_each_alone(sincos, dtype, runs, factor):
    positions = torch.cat([torch.arange(n) + min(first, 2**63 - 1 - n) for first, n in runs])
    table = torch.empty(len(positions), 2, len(sincos), dtype=dtype)
    assert fill(Columns(table), positions, sincos, factor)
    for got, want in zip(
        table.unbind(1), each_alone(sincos, positions, dtype, factor), strict=True
    ):
        assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize(
    "first", [-5000, *(pytest.param(at, marks=LONG) for at in (0, 10**7, 2**61, 2**63 - 40_000))]
)
def test_long_tables_of_many_pieces(first, dtype):
    positions, wanted = each_of_a_run(64, first, (40_000,), dtype)
    table = torch.empty(len(positions), 2, 32, dtype=dtype)
    assert fill(Columns(table), positions, SinCos(Geometric(64)))
    for got, want in zip(table.unbind(1), wanted, strict=True):
        assert torch.equal(bits(got), bits(want))


@pytest.mark.parametrize("function", ["cos", "sin"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_values_next_to_a_midpoint_are_rounded_to_the_right_side(oracle, dtype, function):
    """No float64 settles those, and mpmath says which side is right: alone, and inside a run."""
    sincos, which = SinCos(Geometric(64)), ("cos", "sin").index(function)
    found = list(oracle.next_to_midpoints(dtype, function, 60, seed=6, limit=2**61))
    alone = cos_sin(sincos, torch.tensor([position for position, _, _ in found]), dtype)[which]
    for row, (position, column, truth) in enumerate(found):
        wanted = oracle.nearest(truth, dtype)
        assert alone[row, column].item() == wanted
        run = cos_sin(sincos, torch.arange(700) + (position - 333), dtype)[which]
        assert run[333, column].item() == wanted


@pytest.mark.parametrize("scale", [Fraction(1, 30), Fraction(3, 7)], ids=str)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_fractions_that_come_around_are_as_near_to_0_as_their_frequencies(scale, dtype):
    """1/30 of a turn is no whole number of 2^-192 of one, so 30 of them end a little beside it."""
    sincos = SinCos(TurnsPerUnit(tuple(Fraction(2**k, 2) for k in range(10)))).at_scale(scale)
    positions = torch.tensor([sign * 105 << k for sign in (1, -4) for k in range(54)])
    table = torch.empty(len(positions), 2, len(sincos), dtype=dtype)
    assert fill(Columns(table), positions, sincos)
    for got, want in zip(table.unbind(1), each_alone(sincos, positions, dtype), strict=True):
        assert torch.equal(bits(got), bits(want))


MEMORY = {
    "interleaved, sine first": lambda t: Columns(t[..., :64].unflatten(-1, (32, 2)), -1, False),
    "interleaved, cosine first": lambda t: Columns(t[..., :64].unflatten(-1, (32, 2)), -1),
    "halves, sine first": lambda t: Columns(t[..., :64].unflatten(-1, (2, 32)), cos_first=False),
    "halves, cosine first": lambda t: Columns(t[..., 3:67].unflatten(-1, (2, 32))),
    "halves with a gap": lambda t: Columns(t.unflatten(-1, (2, 50))[..., :32]),
    "spread": lambda t: Columns(t[..., :96].unflatten(-1, (32, 3))[..., ::2], -1),
    "spread halves": lambda t: Columns(t.unflatten(-1, (2, 50))[..., :, :64:2][..., :25]),
}


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("shape", [(3, 7), (4000,), pytest.param((40_000,), marks=LONG)], ids=str)
def test_columns_of_any_table_are_written_and_nothing_else(memory, shape, dtype):
    table = torch.full((*shape, 100), 7.0, dtype=dtype)
    columns = MEMORY[memory](table)
    width = 2 * columns.cos.shape[-1]
    positions, wanted = each_of_a_run(width, -5, shape, dtype)
    assert fill(columns, positions, SinCos(Geometric(width)))
    for got, want in zip((columns.cos, columns.sin), wanted, strict=True):
        assert torch.equal(got, want)
    assert int((table == 7).sum()) == table.numel() - columns.table.numel()


def test_tables_that_lie_across_are_filled():
    positions = torch.arange(4000)
    table = torch.full((64, 4000), 7.0).T
    assert fill(Columns(table.unflatten(-1, (2, 32))), positions, SINCOS[0])
    wanted = each_alone(SINCOS[0], positions, torch.float32)
    assert torch.equal(table, torch.cat(wanted, dim=-1))


def test_zero_is_zero_and_not_less():
    cos, sin = cos_sin(SinCos(FromCheckpoint([0.0, 1.0])), torch.tensor([0, 1]), torch.bfloat16)
    assert bits(sin)[0].tolist() == [0, 0]
    assert cos[:, 0].tolist() == [1, 1]
    assert bits(sin)[1, 0] == 0


@pytest.mark.parametrize("factor", [1.0, -0.3])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_whole_quarters_of_a_turn_are_in_doubt_and_come_out_whole(dtype, factor):
    """A bound on an error never tells that a sine is 0 and no less; this is told from its phase."""
    positions, quarters = torch.arange(-6, 7), SinCos(TurnsPerUnit((0.25, -0.25, 2.0)))
    table = torch.empty(len(positions), 2, 3, dtype=dtype)
    assert fill(Columns(table), positions, quarters, factor)
    turned = torch.tensor([1.0, 0.0, -1.0, 0.0], dtype=torch.float64) * factor
    cos, sin = turned[positions % 4], turned[(positions - 1) % 4]
    wanted = [[cos, cos, turned[:1].expand(13)], [sin, -sin, turned[1:2].expand(13)]]
    assert torch.equal(table, torch.stack([torch.stack(each, -1) for each in wanted], 1).to(dtype))


def test_tables_are_written_to_where_they_are_asked_for():
    positions = torch.arange(2000)
    for encoding in (Rotary(64), Sinusoidal(64)):
        room = torch.empty_like(encoding.table(positions))
        assert encoding.table(positions, out=room) is room
        assert torch.equal(room, encoding.table(positions))
        with pytest.raises(ValueError, match=r"the table is torch.float32 \(2000, .*leave it out"):
            encoding.table(positions, out=room[:-1])


def test_float64_and_the_common_formulas_stay_with_torch():
    table = torch.empty(5, 2, 32, dtype=torch.float64)
    assert not fill(Columns(table), torch.arange(5), SINCOS[0])
    common = SinCos(Geometric(64), "float32")
    for got, want in zip(
        cos_sin(common, torch.arange(9)), common.cos_sin(torch.arange(9)), strict=True
    ):
        assert torch.equal(got, want)
