"""DAPE, written out pair by pair from its equation, and in known limits."""

import pytest
import torch
from torch import nn

from posenc import DAPE, FIRE, KERPLE, ALiBi

HEADS = 3


def by_hand(dape: DAPE, scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Equation 3, one query and one key after the other: ``scores`` [heads, q, k]."""
    made = scores + bias
    for i in range(scores.shape[1]):
        for j in range(scores.shape[2]):
            inner = dape.expand.bias.clone()
            for unit in range(len(inner)):
                for head in range(HEADS):
                    inner[unit] += dape.expand.weight[unit, head] * scores[head, i, j]
                    inner[unit] += dape.expand.weight[unit, HEADS + head] * bias[head, i, j]
            inner = torch.where(inner > 0, inner, 0.01 * inner)
            made[:, i, j] += dape.contract.weight @ inner + dape.contract.bias
    return made


@pytest.mark.parametrize("bias", [ALiBi, KERPLE, FIRE])
def test_it_is_its_equation_pair_by_pair(drawn, bias):
    dape = drawn(DAPE(HEADS, bias(HEADS), hidden=4))
    scores = torch.randn(1, HEADS, 5, 5, dtype=torch.float64)
    with torch.no_grad():
        want = by_hand(dape, scores[0], dape.bias.table(range(5), range(5), dtype=torch.float64))
        torch.testing.assert_close(dape(scores)[0], want)


def test_it_is_the_network_of_a_checkpoint(drawn):
    """The modules of the authors' code, on what that code puts together for them."""
    dape, scores = drawn(DAPE(HEADS, ALiBi(HEADS), hidden=4)), torch.randn(2, HEADS, 5, 5).double()
    network = nn.Sequential(nn.Linear(2 * HEADS, 4), nn.LeakyReLU(), nn.Linear(4, HEADS)).double()
    network[0].load_state_dict(dape.expand.state_dict())
    network[2].load_state_dict(dape.contract.state_dict())
    bias = dape.bias.table(range(5), range(5), dtype=torch.float64).expand(scores.shape)
    seen = network(torch.cat([scores, bias], dim=1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    torch.testing.assert_close(dape(scores), scores + bias + seen)


def test_without_a_bias_it_sees_scores_alone(drawn):
    dape, scores = drawn(DAPE(HEADS, None)), torch.randn(2, HEADS, 5, 5).double()
    assert torch.equal(dape(scores, range(7, 12), range(5)), dape(scores))
    assert dape.table(range(7, 9), torch.zeros(2, 5).long()).shape == (2, HEADS, 2, 5)
    with pytest.raises(TypeError, match="q_positions"):
        dape.table([0.5], [1])


def test_it_is_relative_where_its_bias_is():
    assert DAPE(HEADS, KERPLE(HEADS)).is_relative
    assert DAPE(HEADS, None).is_relative
    assert not DAPE(HEADS, FIRE(HEADS)).is_relative
