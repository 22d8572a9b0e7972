"""Grids: every point once, in the order asked for; tokens without a place; packed images."""

from fractions import Fraction
from itertools import permutations, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.deformable_detr.modeling_deformable_detr import (
    DeformableDetrSinePositionEmbedding,
)

from posenc import AxialRotary, Positional, attention
from posenc.positions import (
    NOWHERE,
    Coordinates,
    centers,
    grid,
    kept,
    masked_grid,
    normalized_grid,
    packed_grids,
    placeless,
    prefixed,
)

AXES = st.lists(
    st.tuples(st.integers(0, 4), st.integers(-9, 9), st.integers(-3, 5)), min_size=1, max_size=4
)


@given(axes=AXES, data=st.data())
def test_a_grid_visits_every_point_in_its_order(axes, data):
    sizes, starts, strides = zip(*axes, strict=True)
    order = data.draw(st.sampled_from(list(permutations(range(len(axes))))))
    expected = []
    for visited in product(*(range(sizes[axis]) for axis in order)):
        index = dict(zip(order, visited, strict=True))
        expected.append([starts[a] + strides[a] * index[a] for a in range(len(axes))])
    got = grid(*sizes, start=starts, stride=strides, order=order)
    assert got.dtype == torch.int64
    assert got.tolist() == expected


def test_centers_of_two_resolutions_stand_in_one_system():
    """A coarse cell's center is the mean of those of the fine cells that it covers."""
    fine, coarse = centers(6, 8), centers(3, 4, cell=2)
    by_cell = fine.view(3, 2, 4, 2, 2).double().mean(dim=(1, 3)).view(-1, 2)
    assert torch.equal(coarse.double(), by_cell)
    assert torch.equal(centers(2, 3, start=(10, 0)), centers(2, 3) + torch.tensor([20, 0]))


# Masks.


@given(
    rows=st.integers(1, 5), columns=st.integers(1, 5), seed=st.integers(0, 99), batch=st.booleans()
)
def test_a_masked_grid_counts_real_pixels(rows, columns, seed, batch):
    shape = (2, rows, columns) if batch else (rows, columns)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.7
    got = masked_grid(mask).view(*shape, 4)
    for place in product(*map(range, shape)):
        *image, y, x = place
        column = mask[(*image, slice(None), x)].tolist()
        row = mask[(*image, y)].tolist()
        assert got[place].tolist() == [
            sum(column[: y + 1]) - 1, sum(row[: x + 1]) - 1, sum(column), sum(row)
        ]  # fmt: skip


def test_a_masked_grid_has_detrs_fractions():
    mask = torch.zeros(2, 5, 7, dtype=torch.bool)
    mask[0, :3, :6] = mask[1, :5, :2] = True
    theirs = DeformableDetrSinePositionEmbedding(2, 1, normalize=True, scale=1.0)
    sines = theirs((2, 4, 5, 7), "cpu", torch.float64, mask).flatten(2)  # of one frequency, 1
    y, x, rows, columns = masked_grid(mask).double().unbind(-1)
    for channel, (place, many) in ((0, (y, rows)), (2, (x, columns))):
        fraction = (place + 0.5) / (many + 1e-6)
        torch.testing.assert_close(sines[:, channel], fraction.sin(), rtol=1e-12, atol=1e-12)


# Tokens without a place, dropped tokens.


def test_a_prefix_stands_nowhere_or_where_it_is_put():
    points = grid(2, 2).expand(3, 4, 2)
    assert prefixed(points, 2).shape == (3, 6, 2)
    assert torch.equal(prefixed(points, 2)[:, 2:], points)
    assert placeless(prefixed(points, 2))[0].tolist() == [True, True, False, False, False, False]
    assert prefixed(points, 2)[0, :2].tolist() == [[NOWHERE] * 2, [NOWHERE + 1] * 2]
    assert prefixed(points, at=(-1, 5))[1, 0].tolist() == [-1, 5]
    assert torch.equal(prefixed(points, 0), points)
    marked = prefixed(points, 2)
    assert torch.equal(prefixed(marked, 0), marked)
    assert torch.equal(prefixed(marked, at=3)[:, 1:], marked)
    padded, _ = packed_grids([(1, 2)], length=3)
    assert torch.equal(prefixed(padded, 2)[2:], padded)  # padding has no number


def test_packed_images_attend_as_if_alone():
    """NaViT: of three images in one padded row each gets what it gets by itself."""
    sizes = [(2, 3), (1, 2), (3, 1)]
    points, images = packed_grids(sizes, length=14)
    assert images.tolist() == [0] * 6 + [1] * 2 + [2] * 3 + [-1] * 3
    assert placeless(points).tolist() == [False] * 11 + [True] * 3
    real, ids = points[:11], images[:11]
    q, k, v = torch.randn(3, 1, 2, 11, 8, generator=torch.Generator().manual_seed(1))
    rotary = Positional(queries_keys=AxialRotary(8))
    together = attention(
        q, k, v, positional=rotary, q_positions=real[None], k_positions=real[None],
        document_ids=ids[None],
    )  # fmt: skip
    for image, size in enumerate(sizes):
        own, where = ids == image, grid(*size)[None]
        alone = attention(q[:, :, own], k[:, :, own], v[:, :, own], positional=rotary,
                          q_positions=where, k_positions=where)  # fmt: skip
        torch.testing.assert_close(together[:, :, own], alone, rtol=1e-5, atol=1e-6)


# Normalized coordinates.


@pytest.mark.parametrize("low", [-1, 0])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 16])
def test_normalized_points_are_those_of_linspace_exactly(low, size):
    """Corners from end to end, centers half a cell within."""
    width = Fraction(1 - low, size)
    centers_of = [low + width * i + width / 2 for i in range(size)]
    assert normalized_grid(size, low=low).tolist() == [[c] for c in centers_of]
    got = [row[0] for row in normalized_grid(size, low=low, at="corners").tolist()]
    assert got == [low + Fraction((1 - low) * i, max(size - 1, 1)) - (low if size == 1 else 0)
                   for i in range(size)]  # fmt: skip
    ends = torch.linspace(low, 1, size, dtype=torch.float64).tolist()
    if size > 1:
        assert [float(value) for value in got] == pytest.approx(ends, abs=1e-15)


def test_coordinates_are_dropped_as_points_are():
    """In the order that is asked for."""
    points = Coordinates([[0.1, 0.5], [3600.1, 1e-3], [0.25, 7.0]])
    some = kept(points, torch.tensor([[2, 0], [1, 1]]))
    rows = points.tolist()
    assert some.tolist() == [[rows[2], rows[0]], [rows[1], rows[1]]]
