"""What holds in all three places: the law of shapes, clear refusals, transforms."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from posenc import Learned, Sinusoidal


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
