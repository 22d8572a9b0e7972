"""CABLE against its sum, written out, and against the code of its authors."""

import pytest
import torch

from posenc import CABLE, Forgetting

HEADS, DIM = 3, 5


@pytest.fixture
def cable(drawn):
    return drawn(CABLE(HEADS, DIM))


def hidden(seq: int = 7) -> torch.Tensor:
    return torch.randn(2, seq, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(3))


def bias_of(cable: CABLE, x: torch.Tensor, *positions) -> torch.Tensor:
    seq = x.shape[-2]
    return cable(
        torch.zeros(len(x), HEADS, seq, seq).double(), *positions, q_hidden=x, k_hidden=x
    ).detach()


def test_where_keys_are_the_hidden_state_it_is_forgetting(cable):
    x = hidden()
    forgetting = Forgetting(HEADS, DIM).double()
    forgetting.load_state_dict({"weight": -cable.weight, "bias": -cable.bias})
    got = forgetting(torch.zeros(2, HEADS, 7, 7).double(), k=x.unsqueeze(1))
    torch.testing.assert_close(bias_of(cable, x), got.detach())
