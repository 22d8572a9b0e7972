"""Tables in Triton hold the numbers of mpmath, rounded once."""

import mpmath
import pytest
import torch
from triton import language as tl

from posenc.frequencies import Geometric
from posenc.frequencies.schedule import TURN_BITS
from posenc.kernels.sincos import triton as sincos
from posenc.kernels.sincos.triton import fill
from posenc.numerics.rounding import rounded
from posenc.numerics.sincos import SinCos

FAR = [0, 1, -1, -5, 10**6, 2**53 + 1, 2**63 - 1, -(2**63)]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def table(positions, turns, dtype=torch.float32, factor=1.0):
    cos, sin = torch.empty(2, *positions.shape, len(turns), dtype=dtype)
    assert fill(cos, sin, positions, turns, factor)
    return cos, sin


def truth(position, turn, factor):
    with mpmath.workprec(400):
        angle = 2 * mpmath.pi * mpmath.mpf(position * turn % 2**TURN_BITS) / 2**TURN_BITS
        both = [factor * f(angle) for f in (mpmath.cos, mpmath.sin)]
        return [float(x) for x in both]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("factor", [1.0, 1.3465735902799727])
@pytest.mark.parametrize("all_in_doubt", [False, True])
def test_every_value_is_rounded_from_the_truth(dtype, factor, all_in_doubt, monkeypatch):
    if all_in_doubt:  # so that each is computed by pairs
        monkeypatch.setattr(sincos, "DOUBT", tl.constexpr(0.3))
    positions = torch.cat((torch.tensor(FAR), torch.randint(-(2**62), 2**62, (5,))))
    turns = Geometric(10).turns()
    made = torch.stack(table(positions, turns, dtype, factor))
    exact = [[truth(int(p), turn, factor) for turn in turns] for p in positions]
    want = rounded(torch.tensor(exact, dtype=torch.float64), dtype).movedim(-1, 0)
    assert torch.equal(made, want)


@pytest.mark.parametrize("frequencies", [1, 5, 64, 600])
def test_every_width_is_filled(frequencies):
    turns, positions = Geometric(2 * frequencies).turns(), torch.arange(7) * 1_000_003
    cos, sin = SinCos(Geometric(2 * frequencies)).cos_sin(positions)
    made = table(positions, turns)
    assert torch.equal(made[0], cos)
    assert torch.equal(made[1], sin)


def test_columns_may_lie_between_each_other():
    room = torch.full((2, 3, 8), 7.0)
    turns, positions = Geometric(6).turns(), torch.tensor([[5, 6, 7]]).expand(2, 3)
    fill(room[..., 0:6:2], room[..., 1:6:2], positions, turns)
    cos, sin = table(positions, turns)
    assert torch.equal(room[..., 0:6:2], cos)
    assert torch.equal(room[..., 1:6:2], sin)
    assert (room[..., 6:] == 7).all()


def test_what_does_not_fit_is_not_taken():
    turns, positions = Geometric(4).turns(), torch.arange(3)
    cos = torch.zeros(3, 2)
    assert not fill(cos.double(), cos.double(), positions, turns)
    assert not fill(cos, cos[:2], positions, turns)
    assert not fill(cos, torch.zeros(2, 3).T, positions, turns)
    assert not fill(cos, cos.clone(), positions.int(), turns)
    assert fill(cos[:0], cos[:0].clone(), positions[:0], turns)
    assert (cos == 0).all()
