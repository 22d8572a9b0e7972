"""Rotary encodings of points whose pairs look in directions of their own."""

import math
from fractions import Fraction

import mpmath
import pytest
import torch
from torch import Tensor

from posenc import AxialForm, AxialRotary, DirectedRotary
from posenc.encodings.queries_keys.directions import golden_gate_vectors, spiral_vectors
from posenc.frequencies import FromCheckpoint
from posenc.positions import Coordinates, grid


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def test_golden_gate_in_the_plane_steps_by_the_golden_angle():
    """The published class, with (x, y) first: head h, pair i looks at (hF + i) π (√5 − 1)/2."""
    heads, pairs = 3, 8
    number = torch.arange(heads * pairs, dtype=torch.float64).view(heads, pairs)
    angles = number * math.pi * (math.sqrt(5) - 1) / 2
    sizes = 0.5 * (40 / 0.5) ** torch.linspace(0, 1, pairs, dtype=torch.float64)
    want = torch.stack((angles.cos(), angles.sin()), dim=-1) * sizes[:, None]
    got = golden_gate_vectors(2 * pairs, heads=heads, slowest=0.5, fastest=40.0)
    torch.testing.assert_close(got.flip(-1), want, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("axes", [2, 3, 5])
def test_golden_gate_in_space_is_the_published_sequence(axes):
    """Theirs is erfinv of a quasi-random sequence, thrown onto the sphere; here by torch's."""
    heads, pairs, root = 2, 10, 2.0
    for _ in range(200):
        root = (1 + root) ** (1 / (axes + 1))
    alpha = (1 / root) ** torch.arange(1, axes + 1, dtype=torch.float64)
    number = torch.arange(1, heads * pairs + 1, dtype=torch.float64)[:, None]
    drawn = torch.erfinv(2 * torch.fmod(number * alpha, 1.0) - 1)
    want = (drawn / drawn.norm(dim=1, keepdim=True)).view(heads, pairs, axes)
    got = golden_gate_vectors(2 * pairs, axes, heads, slowest=1.0, fastest=1.0, spread="normal")
    torch.testing.assert_close(got, want, atol=1e-9, rtol=0)


def test_pairs_that_rest_come_first():
    sizes = golden_gate_vectors(20, axes=3, still=0.3, slowest=2.0, fastest=32.0)[0].norm(dim=-1)
    want = [0.0] * 3 + [2 * 16 ** (i / 6) for i in range(7)]
    torch.testing.assert_close(sizes, torch.tensor(want, dtype=torch.float64), atol=1e-12, rtol=0)


def turned_by_sampling(values: Tensor, degrees: float) -> Tensor:
    """The authors' way: the map of values at (row, column) is turned about its middle."""
    a = math.radians(degrees)
    matrix = torch.tensor([[math.cos(a), -math.sin(a), 0.0], [math.sin(a), math.cos(a), 0.0]])
    where = torch.nn.functional.affine_grid(
        matrix[None].double(), [1, 1, *values.shape], align_corners=True
    )
    return torch.nn.functional.grid_sample(
        values[None, None], where, mode="bilinear", padding_mode="border", align_corners=True
    )[0, 0]


def test_spiral_is_the_authors_map_inside_the_image():
    """K = 4: pairs 0, 1 along y, 2, 3 along the diagonal; from d/4 on a quarter turn further."""
    size, dim = 9, 16
    vectors = spiral_vectors(dim, 4)
    row, column = torch.meshgrid(*[torch.arange(size).double()] * 2, indexing="ij")
    frequencies = 1.5 / 10_000.0 ** (torch.arange(0, dim // 2, 2).double() / (dim // 2))
    middle, inner = size // 2, slice(3, 6)
    for pair in range(8):
        along = row if pair < 4 else column
        degrees = 45.0 if pair % 4 >= 2 else 0.0
        map_of_angles = turned_by_sampling(along * frequencies[pair % 4], degrees)
        want = map_of_angles - map_of_angles[middle, middle]
        got = vectors[pair, 0] * (row - middle) + vectors[pair, 1] * (column - middle)
        torch.testing.assert_close(got[inner, inner], want[inner, inner], atol=1e-6, rtol=0)


def test_each_direction_of_a_spiral_has_as_many_pairs():
    for dim, directions in ((8, 2), (16, 4), (48, 4), (96, 6)):
        angles = torch.atan2(*spiral_vectors(dim, directions).unbind(-1)) % math.pi
        counts = (angles * directions / math.pi).round().unique(return_counts=True)[1]
        assert counts.tolist() == [dim // 2 // directions] * directions
    with pytest.raises(ValueError, match="head_dim is 8 with 4 directions"):
        spiral_vectors(8, 4)  # two of them would have no pair


def test_directions_of_a_spiral_are_equally_far_apart():
    angles = torch.atan2(*spiral_vectors(64, 8).unbind(-1)) % math.pi
    apart = angles.mul(180 / math.pi).round(decimals=6).unique()
    torch.testing.assert_close(apart, torch.arange(0, 180, 22.5, dtype=torch.float64))


@pytest.mark.parametrize("scale", [None, (Fraction(1, 3), Fraction(1), Fraction(1, 1000))])
def test_angles_of_several_axes_are_exact(scale):
    """Correctly rounded where float64 has no digit left, against 100 digits."""
    vectors = golden_gate_vectors(6, axes=3)[0]
    generator = torch.Generator().manual_seed(2)
    steps = torch.randint(-(2**61), 2**61, (5, 3), generator=generator)
    points = steps if scale is None else Coordinates(steps, scale=scale)
    table = DirectedRotary(vectors).table(points)
    with mpmath.workdps(100):
        for row in range(5):
            for pair in range(3):
                angle = sum(
                    mpmath.mpf(float(vectors[pair, axis])) * int(steps[row, axis])
                    * (1 if scale is None else mpmath.mpf(scale[axis].numerator)
                       / scale[axis].denominator)
                    for axis in range(3)
                )  # fmt: skip
                want = torch.tensor([float(mpmath.cos(angle)), float(mpmath.sin(angle))]).float()
                assert torch.equal(table[row, :, pair], want)


def test_many_points_are_as_few(monkeypatch):
    encoding, points = DirectedRotary.golden_gate(16, heads=2), grid(30, 20) - 400
    whole = encoding.table(points)
    monkeypatch.setattr("posenc.numerics.exact.CHUNK_PHASES", 100)
    assert torch.equal(encoding.table(points), whole)
    batched = points.view(4, 150, 2)
    assert torch.equal(encoding.table(batched), whole.view(4, 150, *whole.shape[1:]))


def test_vectors_along_the_axes_are_axial():
    """Carries from word to word: angles of two axes, of which one has a frequency of 0."""
    generator = torch.Generator().manual_seed(3)
    along = torch.rand(2, 4, generator=generator, dtype=torch.float64)
    vectors = torch.zeros(8, 2, dtype=torch.float64)
    vectors[:4, 0], vectors[4:, 1] = along
    form = AxialForm("blocks", "yx", "", (8, 8), pairing="half")
    schedules = [FromCheckpoint(each) for each in along]
    positions = torch.randint(-(2**62), 2**62, (50, 2), generator=generator)
    want = AxialRotary(16, form=form, schedules=schedules).table(positions)
    assert torch.equal(DirectedRotary(vectors).table(positions), want)


def test_across_its_direction_a_pair_does_not_turn():
    encoding = DirectedRotary([[0.7, -0.7], [3.0, 0.0]])
    table = encoding.table(torch.tensor([[2**45 + 1, 2**45 + 1], [0, 2**45 + 1]]))
    still = torch.tensor([1.0, 0.0])
    assert torch.equal(table[0, :, 0], still)
    assert torch.equal(table[1, :, 1], still)
    assert not torch.equal(table[1, :, 0], still)


def test_heads_turn_by_their_own_vectors():
    vectors, q = golden_gate_vectors(8, axes=2, heads=3), random(2, 3, 12, 8)
    encoding, points = DirectedRotary(vectors), grid(3, 4)
    got = encoding.encode_queries(q, encoding.table(points))
    for head in range(3):
        alone = DirectedRotary(vectors[head])
        want = alone.encode_queries(q[:, [head]].contiguous(), alone.table(points))
        assert torch.equal(got[:, [head]], want)
