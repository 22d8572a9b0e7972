"""What moves among ranks has gradients of gradients: each move backward is one that is recorded."""

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from posenc.distributed import collectives

MOVES = {
    "_Shared": lambda x, name: collectives._Shared.apply(x, name),
    "_Gathered": lambda x, name: collectives._Gathered.apply(x, 1, name),
    "_Exchanged": lambda x, name: collectives._Exchanged.apply(x, name),
}


@pytest.fixture(scope="module")
def group() -> Iterator[str]:
    begun = dist.is_initialized()
    if not begun:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD.group_name
    if not begun:
        dist.destroy_process_group()


@pytest.mark.filterwarnings("error:.*autograd kernel was not registered")
@pytest.mark.parametrize("move", MOVES)
def test_alone_each_is_the_identity_twice_over(group, move):
    penalties = []
    for moved in (MOVES[move], lambda x, _: x):
        x, weight = (torch.tensor([[1.0, 2.0, -3.0]], requires_grad=True) for _ in range(2))
        (slope,) = torch.autograd.grad(moved(x * weight, group).pow(3).sum(), x, create_graph=True)
        slope.square().sum().backward()
        penalties.append((slope, x.grad, weight.grad))
    for got, want in zip(*penalties, strict=True):
        assert torch.equal(got, want)
