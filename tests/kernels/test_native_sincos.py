"""Tables in C are correctly rounded: the bits of SinCos, at any position, in any memory."""

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from posenc import Rotary, Sinusoidal
from posenc.frequencies import FromCheckpoint, Geometric
from posenc.kernels.sincos.cpu import fill
from posenc.kernels.sincos.operator import cos_sin
from posenc.numerics.rounding import rounded
from posenc.numerics.sincos import SinCos

NARROW = [torch.float32, torch.bfloat16, torch.float16]
SCHEDULES = [
    Geometric(64),
    Geometric(128, 1e7),
    Geometric(75, 500.0),
    Geometric(2),
    Geometric(1200),
    FromCheckpoint([0.0, 1e-12, 1e-20, 1.0, 3.14159265, 1000.0, -0.3]),
]
WAVES = [SinCos(schedule) for schedule in SCHEDULES]


def bits(table):
    table = table.contiguous()
    return table.view(torch.int32 if table.element_size() == 4 else torch.int16)


def each_alone(sincos, positions, dtype, factor=1.0):
    """Every value from its own phase, in torch."""
    wide = [part * factor for part in sincos.cos_sin(positions, torch.float64)]
    return [rounded(part, dtype) for part in wide]


runs = st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(1, 90))


@settings(max_examples=120, deadline=None)
@given(
    sincos=st.sampled_from(WAVES),
    dtype=st.sampled_from(NARROW),
    runs=st.lists(runs, min_size=1, max_size=4),
    factor=st.sampled_from([1.0, 1.2079441541679836, -0.5]),
)
def test_any_runs_of_positions_give_the_bits_of_each_alone(sincos, dtype, runs, factor):
    positions = torch.cat([torch.arange(n) + min(first, 2**63 - 1 - n) for first, n in runs])
    table = torch.empty(len(positions), 2, len(sincos), dtype=dtype)
    assert fill(table[:, 0], table[:, 1], positions, sincos.turns, factor)
    for got, want in zip(
        table.unbind(1), each_alone(sincos, positions, dtype, factor), strict=True
    ):
        assert torch.equal(got, want)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("first", [0, -5000, 10**7, 2**61, 2**63 - 40_000])
def test_long_tables_of_many_pieces(first, dtype):
    sincos, positions = SinCos(Geometric(64)), torch.arange(40_000) + first
    table = torch.empty(len(positions), 2, 32, dtype=dtype)
    assert fill(table[:, 0], table[:, 1], positions, sincos.turns)
    for got, want in zip(table.unbind(1), each_alone(sincos, positions, dtype), strict=True):
        assert torch.equal(bits(got), bits(want))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("channel", [0, 9, 31])
def test_values_next_to_a_midpoint_are_rounded_to_the_right_side(dtype, channel):
    """Positions whose cosine lies within 2^-53 of where the rounding turns: no float64 settles
    those, and mpmath says which side is right."""
    draw, step = random.Random(channel), {torch.float32: 24, torch.bfloat16: 8}.get(dtype, 11)
    sincos = SinCos(Geometric(64))
    with mp.workdps(120):
        frequency = mpf(10_000) ** (-mpf(2 * channel) / 64)
        for _ in range(3):
            middle = mpf(2 ** (step - 1) + draw.randrange(2 ** (step - 1)) + 0.5) / 2**step
            position = _near(frequency, mp.acos(middle), 2**60)
            truth = mp.cos(position * frequency)
            assert abs(truth - middle) < mpf(2) ** -53
            below = float(mp.floor(middle * 2**step) / 2**step)
            want = below if truth < middle else below + 2.0**-step
            positions = torch.arange(700) + position - 333
            cos, _ = cos_sin(sincos, positions, dtype)
            assert cos[333, channel].item() == want
            assert cos_sin(sincos, positions[333:334], dtype)[0][0, channel].item() == want


def _near(frequency, angle, most):
    """A position up to ``most`` where position · frequency comes near ``angle`` modulo a turn."""
    turn, rest, position = frequency / (2 * mp.pi), angle / (2 * mp.pi), 0
    before, q, x = 0, 1, turn % 1
    while True:  # what is left is divided by the ever smaller errors of the convergents
        step = q * turn - mp.nint(q * turn)
        times = int(mp.nint(rest / step))
        if abs(position + times * q) > most:
            return position
        position, rest = position + times * q, rest - times * step
        x = 1 / (x - mp.floor(x))
        before, q = q, int(mp.floor(x)) * q + before


MEMORY = {
    "interleaved, sine first": lambda t: (t[..., 1:64:2], t[..., 0:64:2]),
    "interleaved, cosine first": lambda t: (t[..., 0:64:2], t[..., 1:64:2]),
    "halves": lambda t: (t[..., 33:65], t[..., :32]),
    "spread": lambda t: (t[..., 0:96:3], t[..., 2:98:3]),
    "two tensors": lambda t: (t[..., :32], t.clone()[..., :32]),
    "transposed": lambda t: (t.mT.contiguous().mT[..., :32], t.mT.contiguous().mT[..., 1:33]),
}


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize("shape", [(3, 7), (4000,), (40_000,)], ids=str)
def test_columns_of_any_table_are_written_and_nothing_else(memory, shape, dtype):
    positions = torch.arange(torch.Size(shape).numel()).view(shape) - 5
    table = torch.full((*shape, 100), 7.0, dtype=dtype)
    cos, sin = MEMORY[memory](table)
    cos_sin(WAVES[0], positions, dtype, out=(cos, sin))
    for got, want in zip((cos, sin), each_alone(WAVES[0], positions, dtype), strict=True):
        assert torch.equal(got, want)
    if table.data_ptr() in (cos.data_ptr(), sin.data_ptr()):
        inside = cos.numel() * (1 if memory == "two tensors" else 2)
        assert int((table == 7).sum()) == table.numel() - inside


def test_zero_is_zero_and_not_less():
    cos, sin = cos_sin(SinCos(FromCheckpoint([0.0, 1.0])), torch.tensor([0, 1]), torch.bfloat16)
    assert bits(sin)[0].tolist() == [0, 0]
    assert cos[:, 0].tolist() == [1, 1]
    assert bits(sin)[1, 0] == 0


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
    assert not fill(table[:, 0], table[:, 1], torch.arange(5), WAVES[0].turns)
    common = SinCos(Geometric(64), "float32")
    for got, want in zip(
        cos_sin(common, torch.arange(9)), common.cos_sin(torch.arange(9)), strict=True
    ):
        assert torch.equal(got, want)
