"""Sums in Triton give the bits of the reference, and drop what the CPU drops."""

import pytest
import torch

from posenc.kernels.addition import reference
from posenc.kernels.addition.triton import gradient_of_x, scaled_sum
from posenc.kernels.embedding.reference import embedded
from posenc.kernels.philox import Dropping

DTYPES = {
    torch.float32: torch.float32,
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float64: torch.float64,
}
KEYS = [None, Dropping(0.3, 2**62 + 12345), Dropping(0.5, 5)]
SHAPES = [(2, 3, 64), (1, 1, 5), (2, 5, 500), (2, 2, 2, 9)]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dropping", KEYS, ids=str)
def test_the_bits_are_those_of_the_reference(dtype, shape, dropping):
    x = torch.randn(shape).to(dtype).transpose(0, 1).contiguous().transpose(0, 1)
    table = torch.randn(shape[-2:]).to(DTYPES[dtype])
    for scale in (None, 22.6274169979695):
        want = reference.scaled_sum(x, table, scale=scale, dropping=dropping)
        assert torch.equal(scaled_sum(x, table, scale=scale, dropping=dropping), want)
        back = reference.gradient_of_x(x, scale, dropping)
        assert torch.equal(gradient_of_x(x, scale, dropping), back)
    inside = x.clone()
    assert scaled_sum(inside, table, scale=scale, dropping=dropping, out=inside) is inside
    assert torch.equal(inside, want)


@pytest.mark.parametrize("width", [7, 64])
def test_rows_are_looked_up_where_they_are_used(width):
    weight, table = torch.randn(13, width), torch.randn(11, width)
    ids, positions = torch.randint(13, (2, 3)), torch.randint(11, (3,))
    given = {"scale": 0.3, "dropping": KEYS[1]}
    made = scaled_sum(weight, table, ids=ids, positions=positions, **given)
    assert torch.equal(made, embedded(ids, weight, table, positions, **given))


def test_an_id_or_a_position_that_is_no_row_makes_its_token_nan():
    weight, table = torch.ones(3, 4), torch.ones(2, 4)
    ids, positions = torch.tensor([0, 3, -1, 0, 0]), torch.tensor([0, 0, 0, 2, -1])
    made = scaled_sum(weight, table, ids=ids, positions=positions)
    assert made[0].tolist() == [2.0] * 4
    assert made[1:].isnan().all()


def test_memory_that_is_shared_is_not_taken():
    room, table = torch.zeros(9, 4), torch.ones(8, 4)
    assert scaled_sum(room[1:], table, out=room[:8]) is None
    assert scaled_sum(torch.ones(8, 4), table, out=table) is None
    assert scaled_sum(table, table, ids=torch.arange(8), out=table) is None
    assert (room == 0).all()


def test_nothing_is_added_to_nothing():
    assert scaled_sum(torch.empty(0, 3, 4), torch.ones(3, 4)).shape == (0, 3, 4)
