"""Layer normalization and batch normalization, each against torch and against worked numbers."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from posenc.transformer import BatchNorm, LayerNorm


def with_random_parameters(norm):
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return norm


def test_layer_norm_worked_example(worked):
    example = worked["layer_norm"]
    norm = LayerNorm(4, eps=example["eps"])
    norm.weight.data, norm.bias.data = (torch.tensor(example[n]).float() for n in ("gamma", "beta"))
    stages = norm.stages(torch.tensor(example["input"]))
    assert stages.mean.item() == example["mean"]
    assert stages.variance.item() == example["variance"]
    assert_close(stages.scaled, torch.tensor(example["output"]), atol=5e-6, rtol=0)
    assert_close(norm(torch.tensor(example["input"])), stages.scaled, atol=1e-6, rtol=0)


def test_layer_norm_stages_are_its_forward_and_torch_s():
    ours = with_random_parameters(LayerNorm(12, eps=1e-3)).double()
    theirs = nn.LayerNorm(12, eps=1e-3).double()
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 5, 12, dtype=torch.float64) * 3 + 1
    assert torch.equal(ours(x), theirs(x))
    assert_close(ours.stages(x).scaled, ours(x), atol=1e-13, rtol=0)


def test_batch_norm_contrast_worked_example(worked):
    example = worked["batch_norm_contrast"]
    x = torch.tensor([example["f1"], example["f2"]], dtype=torch.float64).T  # two tokens as rows
    by_column = BatchNorm(2, eps=0.0).double().stages(x)
    by_row = LayerNorm(2, eps=0.0).double().stages(x)
    assert_close(by_column.mean, torch.tensor([[0.525, 0.375]], dtype=torch.float64))
    assert_close(by_row.mean, torch.tensor([[0.5], [0.4]], dtype=torch.float64))
    # Two values standardize to −1 and 1: downwards in columns here, along rows there.
    assert_close(by_column.normalized.tolist(), [[-1.0, 1.0], [1.0, -1.0]])
    assert_close(by_row.normalized.tolist(), [[-1.0, 1.0], [1.0, -1.0]])
    # A third token moves the columns, and leaves the other rows alone.
    other = torch.cat([x, torch.tensor([[5.0, 4.0]], dtype=torch.float64)])
    assert_close(LayerNorm(2, eps=0.0).double()(other)[:2].detach(), by_row.scaled.detach())
    assert (BatchNorm(2, eps=0.0).double()(other)[:2] - by_column.scaled).abs().max() > 0.1


def test_batch_norm_is_torch_s_while_training():
    ours = with_random_parameters(BatchNorm(6)).double()
    theirs = nn.BatchNorm1d(6).double()
    theirs.load_state_dict(ours.state_dict(), strict=False)
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    assert_close(ours(x), theirs(x.mT).mT, atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", [LayerNorm, BatchNorm])
def test_squares_of_narrow_tokens_have_room(kind, dtype):
    """Squares of 300 were infinite in float16, and results 0; in bfloat16 a mean lost digits."""
    norm = kind(4)
    x = torch.tensor([[300.0, -300, 100, 0], [-260, 40, 280, 4], [7, 100, -300, 64]], dtype=dtype)
    made, wanted = norm.to(dtype).stages(x), kind(4).double().stages(x.double())
    assert made.scaled.dtype is dtype
    torch.testing.assert_close(made.scaled.double(), wanted.scaled, rtol=0.01, atol=0.01)
    torch.testing.assert_close(made.variance.double(), wanted.variance, rtol=1e-5, atol=0)
