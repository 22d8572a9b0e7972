"""Blocked computation is proven equal to the direct, bit for bit.

A few positions at a time are multiplied each by itself; a long run is built in blocks. Both are
asked for through the same door, so a long run must equal its own pieces.
"""

import pytest
import torch

from posenc.frequencies import FromCheckpoint, Geometric
from posenc.numerics.columns import Columns
from posenc.numerics.sincos import FEW_PHASES, SinCos
from posenc.positions import consecutive

NARROW = [torch.float32, torch.bfloat16, torch.float16]
SCHEDULES = {
    "base 1e4": Geometric(64),
    "base 1e7": Geometric(128, 1e7),
    "odd": Geometric(75, 500.0),
    "one frequency": Geometric(2),
    "zero, slow, fast and backward": FromCheckpoint(
        [0.0, 1e-12, 1e-20, 1.0, 3.14159265, 1000.0, -0.3, 2.0**-63]
    ),
}
BEGINNINGS = [0, 1, -1000, 10**7, 2**61, -(2**62) - 12345, -(2**63), 2**63 - 4000]


def bits(table):
    return table.contiguous().view(torch.int32 if table.element_size() == 4 else torch.int16)


def directly(sincos, positions, dtype):
    """A few rows at a time: too few to be worth blocks."""
    rows = positions.split(FEW_PHASES // len(sincos))
    parts = [sincos.cos_sin(part, dtype) for part in rows]
    return [torch.cat(tables) for tables in zip(*parts, strict=True)]


@pytest.mark.slow("more of its kind", spares=4)
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("first", BEGINNINGS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_long_run_equals_its_pieces(name, first, dtype):
    sincos = SinCos(SCHEDULES[name])
    length = 4000 if len(sincos) > 4 else 20_000
    if first + length > 2**63:
        first = 2**63 - length
    positions = consecutive(length) + first
    assert length * len(sincos) > FEW_PHASES
    for blocked, direct in zip(
        sincos.cos_sin(positions, dtype), directly(sincos, positions, dtype), strict=True
    ):
        assert torch.equal(bits(blocked), bits(direct))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_run_of_many_blocks_equals_its_pieces(dtype):
    """Long enough that values in doubt, about one in a million, occur in every dtype."""
    sincos = SinCos(Geometric(64))
    positions = consecutive(30_000, start=12_345_678_901)
    for blocked, direct in zip(
        sincos.cos_sin(positions, dtype), directly(sincos, positions, dtype), strict=True
    ):
        assert torch.equal(bits(blocked), bits(direct))


@pytest.mark.parametrize("function", ["cos", "sin"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_a_value_next_to_a_midpoint_is_not_settled_by_a_sum(oracle, dtype, function):
    """Inside a block, 2^-55 from where the rounding turns: only more bits decide."""
    sincos, which = SinCos(Geometric(64)), ("cos", "sin").index(function)
    for position, column, truth in oracle.next_to_midpoints(
        dtype, function, 16, seed=5, limit=2**61
    ):
        values = sincos.cos_sin(consecutive(1001, start=position - 700), dtype)[which]
        assert values[700, column].item() == oracle.nearest(truth, dtype)


LAYOUTS = {
    "interleaved, sine first": lambda t: Columns(t[:, :64].unflatten(-1, (32, 2)), -1, False),
    "interleaved, cosine first": lambda t: Columns(t[:, :64].unflatten(-1, (32, 2)), -1),
    "halves, sine first": lambda t: Columns(t[:, :64].unflatten(-1, (2, 32)), cos_first=False),
    "halves with a gap": lambda t: Columns(t.unflatten(-1, (2, 50))[..., :32]),
}


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("transposed", [False, True])
def test_columns_of_any_table_are_written_and_nothing_else(layout, transposed, dtype):
    sincos = SinCos(Geometric(64))
    table = torch.full((3000, 100), 7.0, dtype=dtype)
    if transposed:
        table = torch.full((100, 3000), 7.0, dtype=dtype).T
    columns = LAYOUTS[layout](table)
    made = sincos.cos_sin(consecutive(3000), dtype, out=columns)
    for written, got, expected in zip(
        (columns.cos, columns.sin), made, sincos.cos_sin(consecutive(3000), dtype), strict=True
    ):
        assert torch.equal(bits(got), bits(expected))
        assert torch.equal(bits(written), bits(expected))
    assert int((table == 7.0).sum()) == table.numel() - 2 * 3000 * 32


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("factor", [1.2079441541679836, 0.5, -1.0])
def test_a_factor_is_part_of_the_one_rounding(dtype, factor):
    """Blocked and direct agree on every bit of factor · cos and factor · sin."""
    sincos, positions = SinCos(Geometric(64)), torch.arange(5, 3000)
    blocked = sincos.cos_sin(positions, dtype, factor=factor)
    parts = [sincos.cos_sin(some, dtype, factor=factor) for some in positions.split(500)]
    for made, wanted in zip(blocked, zip(*parts, strict=True), strict=True):
        assert torch.equal(made, torch.cat(wanted))
