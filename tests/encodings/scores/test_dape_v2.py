"""DAPE v2 against the convolutions of its authors, and what convolutions may not see."""

import pytest
import torch
from torch import nn

from posenc import FIRE, KERPLE, ALiBi, DAPEv2

HEADS, HIDDEN = 3, 4


@pytest.fixture
def example(drawn):
    def make(kernel: int = 3, bias=ALiBi):
        return drawn(DAPEv2(HEADS, bias(HEADS), HIDDEN, kernel))

    return make


def random_scores(seq: int = 8, heads: int = HEADS) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seq)
    return torch.randn(2, heads, seq, seq, generator=generator, dtype=torch.float64)


def of_the_authors(dape: DAPEv2, scores: torch.Tensor) -> torch.Tensor:
    """Their modules, on what their code puts together for them."""
    kernel = dape.kernel
    network = nn.Sequential(
        nn.Conv2d(2 * HEADS, HIDDEN, (1, kernel), padding=(0, kernel // 2)),
        nn.LeakyReLU(),
        nn.Conv2d(HIDDEN, HEADS, (1, kernel), padding=(0, kernel // 2)),
    ).double()
    for layer, ours in ((network[0], dape.expand), (network[2], dape.contract)):
        layer.load_state_dict({"weight": ours.weight.unsqueeze(2), "bias": ours.bias})
    seq = scores.shape[-1]
    bias = dape.bias.table(range(seq), range(seq), dtype=scores.dtype).expand(scores.shape)
    both = torch.cat([scores, bias], dim=1)
    return (scores + bias + network(torch.tril(both))).detach()


@pytest.mark.parametrize("bias", [ALiBi, KERPLE, FIRE])
@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_it_is_the_code_of_the_authors_but_in_the_last_rows(example, kernel, bias):
    dape, scores = example(kernel, bias), random_scores()
    got, want = dape(scores).detach().tril(), of_the_authors(dape, scores).tril()
    last = kernel // 2
    rows = slice(0, 8 - last)
    torch.testing.assert_close(got[..., rows, :], want[..., rows, :])
    differs = (got - want).abs()[..., 8 - last :, :].amax(dim=(0, 1, 3))
    assert (differs > 1e-3).all()  # where theirs has no zeros to the right
