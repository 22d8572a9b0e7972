"""Learned rotations of points: LieRE, ComRoPE and STRING, against their authors' formulas."""

import math
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

from posenc import CayleySTRING, CirculantSTRING, ComRoPE, LieRE
from posenc.positions import Coordinates, grid


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape))).double()


def points(height: int, width: int) -> Coordinates:
    """From 0 to 1 along each axis."""
    scales = (Fraction(1, height - 1), Fraction(1, width - 1))
    return Coordinates(grid(height, width), scale=scales)


def test_liere_is_the_authors_exponential_of_a_whole_head():
    """Their README: the upper triangle less its transpose, times positions, summed, matrix_exp."""
    torch.manual_seed(0)
    encoding = LieRE(8, dtype=torch.float64)
    upper = torch.triu(encoding.generators[:, 0, 0].detach(), diagonal=1)
    skew = upper - upper.mT
    positions = points(3, 4).floats()
    wanted = torch.linalg.matrix_exp((positions[..., None, None] * skew).sum(dim=-3))
    table = encoding.table(points(3, 4), dtype=torch.float64)
    torch.testing.assert_close(table[:, 0, 0], wanted)
    q = random(2, 3, 12, 8)
    got = encoding.encode_queries(q, table)
    torch.testing.assert_close(got, torch.einsum("sij,bhsj->bhsi", wanted, q))


def test_liere_begins_uniform_between_0_and_a_turn():
    drawn = LieRE(64).generators
    assert drawn.shape == (2, 1, 1, 64, 64)
    assert drawn.min() >= 0
    assert drawn.max() <= 2 * math.pi
    assert drawn.mean().item() == pytest.approx(math.pi, abs=0.2)


def test_liere_is_relative_where_its_matrices_commute_and_nowhere_else():
    """Along one axis they do, and in blocks of two channels; with two axes and more they do not."""
    q, k = random(1, 1, 4, 8), random(1, 1, 4, 8).flip(-1)

    def moved(encoding: LieRE, axes: int) -> float:
        here = grid(2, 2)[:, :axes]
        tables = [encoding.table(at, dtype=torch.float64) for at in (here, here + 5)]
        first, second = (encoding.encode_queries(q, t) @ encoding.encode_keys(k, t).mT
                         for t in tables)  # fmt: skip
        return (first - second).abs().max().item()

    torch.manual_seed(1)
    assert moved(LieRE(8, axes=1), 1) < 1e-9
    assert moved(LieRE(8, axes=2, block=2), 2) < 1e-9
    assert moved(LieRE(8, axes=2, block=4), 2) > 0.1


@pytest.mark.parametrize("variant", ["LD", "AP"])
def test_comrope_is_the_authors_exponential(variant):
    """Their F − Fᵀ times a number of axis and block, or where the block's number is the axis's."""
    torch.manual_seed(2)
    heads, block, axes = 3, 4, 2
    encoding = ComRoPE(16, axes, block, heads, variant, dtype=torch.float64)
    freqs = encoding.freqs.detach()
    skew = (freqs - freqs.mT)[:, None]  # [heads, 1, blocks, b, b]
    if variant == "LD":
        skew = skew * encoding.multiplier.detach()[None, :, :, None, None]
    else:
        mask = torch.zeros(axes, 4, dtype=torch.float64)
        for axis in range(axes):
            mask[axis, axis::axes] = 1.0
        skew = skew * mask[None, :, :, None, None]
    positions = points(3, 5).floats()
    exponent = (skew[None] * positions[:, None, :, None, None, None]).sum(dim=2)
    wanted = torch.stack([
        torch.stack([torch.block_diag(*blocks) for blocks in token])
        for token in torch.linalg.matrix_exp(exponent)
    ])  # fmt: skip
    q = random(2, heads, 15, 16)
    got = encoding.encode_queries(q, encoding.table(points(3, 5), dtype=torch.float64))
    torch.testing.assert_close(got, torch.einsum("shij,bhsj->bhsi", wanted, q))


def test_blocks_of_two_channels_are_pairs_of_rotary():
    """exp of ((0, a), (−a, 0)) turns by −a: ComRoPE of block 2 with equal numbers is RoPE."""
    encoding = ComRoPE(4, axes=1, block=2, dtype=torch.float64)
    with torch.no_grad():
        encoding.freqs.zero_()
        encoding.freqs[0, :, 1, 0] = torch.tensor([1.0, 0.1])
        encoding.multiplier.fill_(1.0)
    table = encoding.table(torch.arange(5)[:, None], dtype=torch.float64)
    angle = torch.arange(5)[:, None] * torch.tensor([1.0, 0.1], dtype=torch.float64)
    torch.testing.assert_close(table[:, 0, :, 0, 0], angle.cos())
    torch.testing.assert_close(table[:, 0, :, 1, 0], angle.sin())


def test_cayley_string_is_rotary_after_an_orthogonal_matrix():
    torch.manual_seed(3)
    encoding = CayleySTRING(8, std=0.7, dtype=torch.float64)
    basis = encoding.basis()
    upper = encoding.skew.detach().triu(1)
    one, skew = torch.eye(8, dtype=torch.float64), upper - upper.mT
    torch.testing.assert_close(basis.detach() @ (one + skew), one - skew)
    torch.testing.assert_close(basis @ basis.mT, one)
    # Public code: P as a layer, angles as positions @ frequencies, neighbors as complex numbers.
    layer = nn.Linear(8, 8, bias=False, dtype=torch.float64)
    layer.weight = nn.Parameter(basis.detach())
    positions = points(3, 4)
    turns = positions.floats() @ encoding.frequencies.detach()
    q = random(2, 3, 12, 8)
    pairs = torch.view_as_complex(layer(q).unflatten(-1, (-1, 2)).contiguous())
    wanted = torch.view_as_real(pairs * torch.polar(torch.ones_like(turns), turns)).flatten(-2)
    got = encoding.encode_queries(q, encoding.table(positions, dtype=torch.float64))
    torch.testing.assert_close(got, wanted)


def test_cayley_string_begins_as_rotary_along_each_axis():
    encoding = CayleySTRING(16, axes=3, std=0.0)
    torch.testing.assert_close(encoding.basis(), torch.eye(16, dtype=torch.float64))
    wanted = 100.0 ** (-torch.arange(8) / 8)
    torch.testing.assert_close(encoding.frequencies.detach(), wanted.expand(3, 8))


@pytest.mark.parametrize("width", [8, 9, 3])
def test_circulant_string_is_the_exponential_of_circulant_matrices(width):
    torch.manual_seed(4)
    encoding = CirculantSTRING(width, std=1.0, dtype=torch.float64)
    circulants = torch.stack([
        torch.stack([column.roll(shift) for shift in range(width)], dim=1)
        for column in encoding.columns.detach()
    ])  # fmt: skip
    skew = circulants - circulants.mT
    positions = points(3, 4)
    exponent = torch.einsum("sa,aij->sij", positions.floats(), skew)
    wanted = torch.linalg.matrix_exp(exponent)
    q = random(2, 3, 12, width)
    got = encoding.encode_queries(q, encoding.table(positions, dtype=torch.float64))
    torch.testing.assert_close(got, torch.einsum("sij,bhsj->bhsi", wanted, q))


@pytest.mark.parametrize(
    "build",
    [
        lambda: LieRE(8, block=4),
        lambda: ComRoPE(8, block=4),
        lambda: CayleySTRING(8, std=0.5),
        lambda: CirculantSTRING(8),
    ],
    ids=["liere", "comrope", "cayley", "circulant"],
)
def test_norms_are_kept(build):
    torch.manual_seed(5)
    encoding, q = build().double(), random(1, 2, 12, 8)
    got = encoding.encode_queries(q, encoding.table(points(3, 4), dtype=torch.float64))
    torch.testing.assert_close(got.norm(dim=-1), q.norm(dim=-1))


@pytest.mark.parametrize("variant", ["LD", "AP"])
def test_comrope_takes_narrow_parameters_as_the_numbers_that_they_hold(variant):
    """F − Fᵀ rounded to bfloat16 turned point 199 by a radian more or less."""
    torch.manual_seed(0)
    narrow = ComRoPE(16, axes=1, variant=variant, dtype=torch.bfloat16)
    wide = ComRoPE(16, axes=1, variant=variant, dtype=torch.float64)
    wide.load_state_dict(narrow.state_dict())
    far = torch.tensor([[1], [199]])
    got, wanted = (each.table(far, dtype=torch.float64) for each in (narrow, wide))
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("encoding", [CirculantSTRING(32, 1), ComRoPE(32, 1), LieRE(32, 1)])
def test_narrow_content_and_tables_are_turned_in_float32(encoding, dtype):
    q, table = random(1, 2, 6, 32).to(dtype), encoding.table([[p] for p in range(6)], dtype=dtype)
    got = encoding.encode_queries(q, table)
    wanted = encoding.encode_queries(q.double(), table.double())
    assert got.dtype == dtype
    # One rounding of a float32 result, whatever the sums that it comes from.
    off = (got.double() - wanted).abs()
    assert bool((off <= torch.finfo(dtype).eps / 2 * wanted.abs() + 1e-5).all())
