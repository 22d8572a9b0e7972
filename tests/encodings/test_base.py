"""What holds in all three places: the law of shapes, clear refusals, transforms."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from posenc import ALiBi, Learned, Rotary, Sinusoidal
from posenc.positions import consecutive


def test_one_row_of_a_bias_is_not_for_all_queries():
    with pytest.raises(ValueError, match="heads, queries and keys must be the same"):
        ALiBi(4).encode(torch.zeros(1, 4, 3, 3), torch.zeros(4, 1, 3))


@pytest.mark.parametrize(
    "encoding", [Sinusoidal(8), Sinusoidal(9), Learned(8, 16), Rotary(8)], ids=repr
)
def test_positions_may_be_mapped_over(encoding):
    positions = consecutive(6).view(2, 3)
    torch.testing.assert_close(torch.vmap(encoding.table)(positions), encoding.table(positions))


@pytest.mark.parametrize("build", [lambda: Sinusoidal(8), lambda: Learned(8, 16)])
def test_shapes_can_be_worked_out_without_numbers(build):
    with FakeTensorMode():
        assert build()(torch.randn(2, 5, 8)).shape == (2, 5, 8)


def test_a_compiled_lookup_refuses_what_the_eager_one_refuses():
    encoding = Learned(8, 16, offset=2)
    compiled = torch.compile(encoding.table, backend="eager")
    with pytest.raises(IndexError, match="has 16 rows"):
        encoding.table(torch.tensor([-1]))
    with pytest.raises((IndexError, RuntimeError)):
        compiled(torch.tensor([-1]))
