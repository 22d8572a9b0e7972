"""CABLE against its sum, written out, and against the code of its authors."""

import pytest
import torch

from posenc import CABLE, Forgetting, Positional
from posenc.transformer import Encoder, KeyValueCache

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


def test_a_cropped_and_reordered_cache_keeps_what_was_read(cable):
    torch.manual_seed(0)
    positional = Positional(scores=cable)
    encoder = Encoder(DIM, HEADS, 1, positional=positional, head_dim=4, is_causal=True).double()
    x, turned = hidden(), torch.tensor([1, 0])
    with torch.no_grad():
        for size in (None, 12):
            cache = KeyValueCache(size)
            encoder.eval()(x, cache=cache)
            cache.crop(4)
            cache.reorder(turned)
            steps = [encoder(x[turned, i : i + 1], cache=cache) for i in range(4, 7)]
            torch.testing.assert_close(torch.cat(steps, dim=1), encoder(x[turned])[:, 4:])
