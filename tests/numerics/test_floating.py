"""A table is asked for in a floating dtype, and in no other, wherever a dtype can be named."""

import pytest
import torch

from posenc import ALiBi, Sinusoidal, T5Bias
from posenc._rounding import rounded
from posenc.frequencies import Geometric
from posenc.inspection.precision import precision_of
from posenc.inspection.resolution import resolution
from posenc.inspection.similarity import unique_up_to
from posenc.numerics.quotients import quotient_cos_sin
from posenc.numerics.several_axes import cos_sin_of_axes
from posenc.numerics.sincos import SinCos
from posenc.positions import Coordinates
from posenc.positions.checks import floats
from posenc.positions.distances import float_distances

HERE = torch.arange(4)
HALVES = Coordinates([0.5, 1.5])
THIRD = torch.tensor([1]), torch.tensor([3])
ASKED = {
    "rounded": lambda dtype: rounded(torch.ones(2, dtype=torch.float64), dtype),
    "axes": lambda dtype: cos_sin_of_axes((SinCos(Geometric(8)),), HERE[:, None], dtype),
    "quotients": lambda dtype: quotient_cos_sin(*THIRD, (1 << 192,), dtype),
    "floats": lambda dtype: floats(HERE, dtype),
    "coordinates": HALVES.floats,
    "distances": lambda dtype: float_distances(HALVES, HERE, dtype),
    "profile": lambda dtype: T5Bias(4).profile(HERE, dtype=dtype),
    "bias": lambda dtype: ALiBi(4).table(HERE, HERE, dtype=dtype),
    "precision": lambda dtype: precision_of(Geometric(8), 16, dtype),
    "resolution": lambda dtype: resolution(Sinusoidal(8), 16, dtype=dtype),
    "uniqueness": lambda dtype: unique_up_to(Sinusoidal(8), 16, dtype=dtype),
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
def test_a_dtype_without_reals_is_refused(ask, dtype):
    with pytest.raises(TypeError, match=f"dtype is {dtype}"):
        ask(dtype)


@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
def test_a_dtype_of_reals_is_taken(ask):
    assert ask(torch.bfloat16) is not None
