"""ALiBi against the authors' recipe, BLOOM's code, and exact arithmetic."""

import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor

from posenc import ALiBi
from posenc.positions import consecutive


@pytest.mark.parametrize("heads", [*range(1, 33), 40, 64, 71, 112, 128])
def test_slopes_are_those_of_bloom(heads):
    theirs = build_alibi_tensor(torch.ones(1, 2), heads, torch.float64)[:, 0, 1]
    torch.testing.assert_close(
        torch.tensor(ALiBi(heads).slopes).double(), theirs, rtol=1e-6, atol=0
    )


@pytest.mark.parametrize("heads", [3, 6, 12, 14])
def test_geometric_slopes_differ_where_heads_are_no_power_of_two(heads):
    geometric = ALiBi(heads, slopes="geometric").slopes
    assert geometric == tuple(2 ** (-8 * h / heads) for h in range(1, heads + 1))
    assert geometric != ALiBi(heads).slopes


@pytest.mark.parametrize("most", [8, 4, 16.0])
@pytest.mark.parametrize("heads", [1, 2, 3, 12, 14, 32, 40])
def test_the_largest_exponent_is_that_of_mpt(heads, most):
    theirs = build_mpt_alibi_tensor(heads, 2, alibi_bias_max=most)[:, 0, :]
    ours = ALiBi(heads, alibi_bias_max=most).profile([1, 0])
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0)


def test_half_precision_stays_exact_where_absolute_positions_overflow():
    # slope × position passes float16's 65504 near 131008 for the steepest head of eight.
    far = consecutive(8, start=140_000)
    bias = ALiBi(8).table(far, far, dtype=torch.float16)
    assert torch.equal(bias, ALiBi(8).table(consecutive(8), consecutive(8), dtype=torch.float16))
    absolute = torch.tensor(0.5, dtype=torch.float16) * far.half()
    assert absolute.isinf().all() or absolute.unique().numel() < 8
