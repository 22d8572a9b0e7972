"""Values that random operands do not reach: special numbers, ties, large memory, doubtful sines."""

from fractions import Fraction

import pytest
import torch
from tests.kernels.operands import OPERATORS, angles, laid, same

from posenc.frequencies import Geometric, TurnsPerUnit
from posenc.kernels.addition import reference
from posenc.kernels.addition.front import scaled_sum
from posenc.kernels.operators import NATIVE, TABLES
from posenc.kernels.philox import Dropping
from posenc.kernels.rotary.front import RotaryLayout, by_formula, rotate_heads
from posenc.kernels.sincos.front import cos_sin, fill_columns
from posenc.numerics.columns import Columns
from posenc.numerics.exact import cos_sin_of_sum
from posenc.numerics.sincos import SinCos

NARROW, HALVES = [torch.float32, torch.bfloat16, torch.float16], [torch.bfloat16, torch.float16]
LONG = pytest.mark.slow("large tensors, or tables of many pieces")
SUM, ROTATE = (OPERATORS[name] for name in ("add_out", "rotary_out"))
native = pytest.mark.skipif(not NATIVE, reason="the formula against itself")


# Rotations and sums.


@pytest.mark.parametrize("dtype", TABLES, ids=str)
def test_special_numbers_are_those_of_the_formula(dtype):
    """Zeros of both signs, subnormals, the largest numbers, infinities, and NaN."""
    info = torch.finfo(dtype)
    special = [0.0, -0.0, info.tiny, info.tiny / 3, info.max, -info.max, float("inf"), 1.0, 65519.9]
    x = torch.cartesian_prod(*[torch.tensor(special, dtype=torch.float64).to(dtype)] * 2)
    table = torch.tensor([[[0.6], [0.8]]], dtype=TABLES[dtype])
    arguments = (x[:, None, None].contiguous(),), table, None, RotaryLayout()
    want = by_formula(*arguments)
    assert want[0].isnan().any()
    assert same(rotate_heads(*arguments), want)
    flat = x.flatten()
    table = torch.zeros(flat.numel(), dtype=TABLES[dtype])
    for dropping in (None, Dropping(0.5, 1)):
        numbers = (1.5, *(dropping.numbers if dropping else (1.0, 0, 0)))
        made = OPERATORS["add"].call(flat, table, *numbers)
        assert same(made, reference.scaled_sum(flat, table, None, *numbers))
        assert dropping is None or (made == 0).sum() > 50


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_narrow_numbers_are_rounded_once_to_nearest_even(dtype):
    """Each number of the format turned by nothing, and by what makes ties; each float32 around."""
    every = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    every = every[every.isfinite()]
    every = every[: len(every) // 2 * 2].view(1, 1, -1)
    for size in (1.0, 0.5, 0.75, 1 / 3):
        pairs = every.shape[-1] // 2
        table = torch.stack((torch.full((pairs,), size), torch.zeros(pairs)))[None]
        made = rotate_heads((every,), table, None, RotaryLayout())[0]
        assert torch.equal(made, (every.float() * size).to(dtype))
    upper = torch.arange(-(2**15), 2**15, dtype=torch.int32) << 16
    for lower in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):
        table = (upper | lower).view(torch.float32)[:-1]  # an odd number of them
        nothing = torch.full((1, len(table)), -0.0, dtype=dtype)
        assert same(scaled_sum(nothing, table)[0], table.to(dtype))


@native
@pytest.mark.parametrize(
    ("width", "layout"),
    [(66, "sliced"), (128, "unaligned"), (128, "reordered"), (2500, "sliced"), (68, "fresh")],
)
def test_large_rotations_are_streamed_to_the_last_byte(width, layout):
    """Above the size from which stores go past the caches, at widths that fill no whole line;
    new memory of many megabytes is of large pages, and nothing goes past the caches."""
    tokens = 2**21 // (4 * width) if layout != "fresh" else 2**15 + 3
    x = torch.randn(1, 4, tokens, width)
    given = (x,), angles(tokens, 32), None, RotaryLayout()
    outs = None if layout == "fresh" else (laid(torch.zeros_like(x), layout),)
    assert same(rotate_heads(*given, outs), by_formula(*given))


@native
@pytest.mark.slow("large tensors", spares=4)
@pytest.mark.parametrize("dropping", [(1.0, 0, 0), Dropping(0.1, 2**62 + 1).numbers])
@pytest.mark.parametrize("dtype", TABLES, ids=str)
def test_large_sums_are_streamed_to_the_last_byte(dtype, dropping):
    for layout in ("unaligned", "sliced", "contiguous"):
        x = laid(torch.randn(3, 5, 97, 2049).to(dtype), layout)
        table = torch.randn(97, 2049, dtype=TABLES[dtype])
        room = laid(torch.zeros_like(x), layout)
        SUM.call(x, table, room, 3.3, *dropping)
        assert same(room, reference.scaled_sum(x, table, None, 3.3, *dropping))


# Tables of cosines and sines.


def filled(places, schedule, dtype=torch.float32, factor=1.0):
    table = torch.empty(len(places), 2, len(schedule), dtype=dtype)
    OPERATORS["sincos_"].call(table, places, *schedule.operands, factor, 0)
    return table


def each_alone(places, schedule, dtype, factor=1.0):
    """Every value from its own phase, in torch, and from more bits where it is in doubt."""
    return torch.stack(cos_sin_of_sum([schedule.summand(places)], dtype, factor), -2)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize(
    "first", [-5000, *(pytest.param(at, marks=LONG) for at in (0, 10**7, 2**61, 2**63 - 40_000))]
)
def test_long_tables_of_many_pieces(first, dtype):
    places, schedule = torch.arange(40_000) + first, SinCos(Geometric(64))
    want = each_alone(places, schedule, dtype)
    assert same(filled(places, schedule, dtype), want)
    room = torch.full((64, 40_000), 7.0, dtype=dtype).T.unflatten(-1, (32, 2))
    fill_columns(schedule, places, Columns(room, -1, cos_first=False))
    assert same(room, want.flip(-2).mT)


@pytest.mark.parametrize("function", ["cos", "sin"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_values_next_to_a_midpoint_are_rounded_to_the_right_side(oracle, dtype, function):
    """No float64 settles those, and mpmath says which side is right: alone, and inside a run."""
    schedule, which = SinCos(Geometric(64)), ("cos", "sin").index(function)
    found = list(oracle.next_to_midpoints(dtype, function, 60, seed=6, limit=2**61))
    alone = cos_sin(schedule, torch.tensor([position for position, _, _ in found]), dtype)[which]
    for row, (position, column, truth) in enumerate(found):
        wanted = oracle.nearest(truth, dtype)
        run = cos_sin(schedule, torch.arange(700) + (position - 333), dtype)[which]
        assert alone[row, column].item() == run[333, column].item() == wanted


@pytest.mark.parametrize("scale", [Fraction(1, 30), Fraction(3, 7)], ids=str)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_fractions_that_come_around_are_as_near_to_0_as_their_frequencies(scale, dtype):
    """1/30 of a turn is no whole number of 2^-192 of one, so 30 of them end a little beside it."""
    schedule = SinCos(TurnsPerUnit(tuple(Fraction(2**k, 2) for k in range(10)))).at_scale(scale)
    places = torch.tensor([sign * 105 << k for sign in (1, -4) for k in range(54)])
    assert same(filled(places, schedule, dtype), each_alone(places, schedule, dtype))


@pytest.mark.parametrize("factor", [1.0, -0.3])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_whole_quarters_of_a_turn_are_in_doubt_and_come_out_whole(dtype, factor):
    """A bound on an error never tells that a sine is 0 and no less; this is told from its phase."""
    places, quarters = torch.arange(-6, 7), SinCos(TurnsPerUnit((0.25, -0.25, 2.0)))
    turned = torch.tensor([1.0, 0.0, -1.0, 0.0], dtype=torch.float64) * factor
    cos, sin = turned[places % 4], turned[(places - 1) % 4]
    wanted = [[cos, cos, turned[:1].expand(13)], [sin, -sin, turned[1:2].expand(13)]]
    wanted = torch.stack([torch.stack(each, -1) for each in wanted], 1).to(dtype)
    assert torch.equal(filled(places, quarters, dtype, factor), wanted)
