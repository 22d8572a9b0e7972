"""Tables in Triton hold the numbers of mpmath, rounded once."""

import mpmath
import pytest
import torch
from triton import language as tl

from posenc.frequencies import Geometric
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.sincos import triton as sincos
from posenc.kernels.sincos.triton import fill
from posenc.numerics.columns import Columns
from posenc.numerics.sincos import SinCos

FAR = [0, 1, -1, -5, 10**6, 2**53 + 1, 2**63 - 1, -(2**63)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def table(positions, sincos, dtype=torch.float32, factor=1.0):
    columns = Columns(torch.empty(*positions.shape, 2, len(sincos), dtype=dtype))
    assert fill(columns, positions, sincos, factor)
    return columns.cos, columns.sin


def truth(position, turns, factor):
    with mpmath.workprec(400):
        angle = 2 * mpmath.pi * mpmath.mpf(position * turns % 2**TURN_BITS) / 2**TURN_BITS
        return [factor * f(angle) for f in (mpmath.cos, mpmath.sin)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("factor", [1.0, 1.3465735902799727])
@pytest.mark.parametrize("all_in_doubt", [False, True])
def test_every_value_is_rounded_from_the_truth(oracle, dtype, factor, all_in_doubt, monkeypatch):
    if all_in_doubt:  # so that each is computed by pairs
        monkeypatch.setattr(sincos, "DOUBT", tl.constexpr(0.3))
    positions = torch.cat((torch.tensor(FAR), torch.randint(-(2**62), 2**62, (5,))))
    of = SinCos(Geometric(10))
    made = torch.stack(table(positions, of, dtype, factor))
    exact = [[truth(int(p), turns, factor) for turns in of.turns] for p in positions]
    want = [[[oracle.nearest(part, dtype) for part in both] for both in row] for row in exact]
    want = torch.tensor(want, dtype=torch.float64).to(dtype).movedim(-1, 0)
    assert torch.equal(made, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("function", ["cos", "sin"])
def test_values_next_to_a_midpoint_are_rounded_to_the_right_side(oracle, dtype, function):
    """No float64 settles these: they are within 2^-55 of where the rounding turns."""
    found = list(oracle.next_to_midpoints(dtype, function, 24, seed=1))
    positions = torch.tensor([position for position, _, _ in found])
    made = table(positions, SinCos(Geometric(64)), dtype)[function == "sin"]
    for row, (_, column, truth) in enumerate(found):
        assert made[row, column].item() == oracle.nearest(truth, dtype)


@pytest.mark.parametrize("frequencies", [1, 5, 64, 600])
def test_every_width_is_filled(frequencies):
    of, positions = SinCos(Geometric(2 * frequencies)), torch.arange(7) * 1_000_003
    cos, sin = of.cos_sin(positions)
    made = table(positions, of)
    assert torch.equal(made[0], cos)
    assert torch.equal(made[1], sin)


@pytest.mark.parametrize("cos_first", [False, True])
@pytest.mark.parametrize("axis", [-1, -2])
def test_columns_may_lie_in_any_order(axis, cos_first):
    room = torch.full((2, 3, 8), 7.0)
    of, positions = SinCos(Geometric(6)), torch.tensor([[5, 6, 7], [0, -1, 2**40]])
    columns = Columns(
        room[..., :6].unflatten(-1, (3, 2) if axis == -1 else (2, 3)), axis, cos_first
    )
    assert fill(columns, positions, of)
    cos, sin = table(positions, of)
    assert torch.equal(columns.cos, cos)
    assert torch.equal(columns.sin, sin)
    assert (room[..., 6:] == 7).all()


def test_positions_may_lie_in_steps():
    of = SinCos(Geometric(6))
    for got, want in zip(
        table(torch.arange(20)[::3], of), of.cos_sin(torch.arange(0, 20, 3)), strict=True
    ):
        assert torch.equal(got, want)


def test_what_does_not_fit_is_not_taken():
    of, positions = SinCos(Geometric(4)), torch.arange(3)
    room = torch.zeros(3, 2, 2)
    assert not fill(Columns(room.double()), positions, of)
    assert not fill(Columns(room[:2]), positions, of)
    assert not fill(Columns(torch.zeros(3, 1, 2).expand(3, 2, 2)), positions, of)
    assert not fill(Columns(room), positions.int(), of)
    shared = torch.zeros(3, dtype=torch.int64)
    assert not fill(Columns(shared.view(torch.float32).view(3, 2, 1)), shared, SinCos(Geometric(2)))
    assert fill(Columns(room[:0]), positions[:0], of)
    assert (room == 0).all()
