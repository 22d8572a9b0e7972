"""Gradients among ranks: those of gradients, too; what would go without any is told so."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from posenc import Positional, T5Bias, attention
from posenc.distributed import KeyShards, collectives


@pytest.fixture(scope="module")
def group() -> Iterator[str]:
    begun = dist.is_initialized()
    if not begun:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD.group_name
    if not begun:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("error:.*autograd kernel was not registered")
@pytest.mark.parametrize("move", ["share", "gather", "exchange"])
def test_alone_each_is_the_identity_twice_over(group, move):
    penalties = []
    for moved in (lambda x, name: collectives.moved(x, move, name, 1), lambda x, _: x):
        x, weight = (torch.tensor([[1.0, 2.0, -3.0]], requires_grad=True) for _ in range(2))
        (slope,) = torch.autograd.grad(moved(x * weight, group).pow(3).sum(), x, create_graph=True)
        slope.square().sum().backward()
        penalties.append((slope, x.grad, weight.grad))
    for got, want in zip(*penalties, strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("learns", ["sinks", "a bias"])
def test_what_learns_beside_cut_keys_is_told_that_it_would_not(group, learns):
    x, here = torch.randn(1, 2, 3, 8), torch.arange(3)
    given = {"sinks": torch.zeros(2, requires_grad=True)}
    if learns == "a bias":
        given = {"positional": Positional(scores=T5Bias(2))}
    given |= {"q_positions": here, "k_positions": here}
    with pytest.raises(ValueError, match="KeyShards has no gradients"):
        attention(x, x, x, shards=KeyShards(), **given)
    with torch.no_grad():
        got, want = (attention(x, x, x, shards=one, **given) for one in (KeyShards(), None))
    torch.testing.assert_close(got, want)
