"""Rows are cut and joined without loss, and ranks that mean different things all hear of it."""

import pytest
import torch

from posenc.distributed import Shards

IDS = torch.tensor([[5, 5, 5, 5, 5, 8, 8, 8, 8, 5, 5], [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]])
REAL = torch.arange(11) < torch.tensor([[11], [7]])


def round_trip(group, layout: str) -> bool:
    """Whether cut and join are inverses along any axis, with gradients, and agree on who is who."""
    shards = Shards(group, layout=layout, document_ids=IDS, padding_mask=REAL)
    for dim, shape in ((1, (2, 11)), (2, (2, 3, 11)), (-2, (2, 11, 4))):
        whole = torch.randn(shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
        part = shards.cut(whole, dim)
        assert part.shape[dim] == shards.local
        assert torch.equal(shards.join(part, dim), whole)
        (shards.join(part, dim) * whole.detach()).sum().backward()
        # All ranks' losses reach the tokens of this rank, and no others.
        own = shards.join(shards.cut(torch.ones_like(whole), dim), dim)
        held = shards.cut(whole.grad, dim)
        assert torch.allclose(held, shards.cut(group.size() * whole.detach() * own, dim))
    assert torch.equal(shards.join(shards.cut(IDS)), IDS)
    own = shards.of_rank(group.rank())
    assert own.positions is not None
    assert torch.equal(own.positions, shards.positions)
    numbers = torch.tensor([[0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1], [0, 1, 0, 1, 2, 3, 4, 4, 4, 4, 4]])
    assert torch.equal(shards.join(shards.positions)[REAL], numbers[REAL])
    return True


def means(group, layout: str) -> float:
    """How far the mean over ranks, each weighed, is from the mean over all real tokens."""
    shards = Shards(group, layout=layout, lengths=[11, 7])
    losses = torch.arange(22.0, dtype=torch.float64).view(2, 11)
    real = shards.padding_mask
    own = shards.cut(losses)
    own = own if real is None else own[real]
    mean = own.mean() * shards.weight if own.numel() else own.sum()
    every = [torch.zeros((), dtype=torch.float64) for _ in range(group.size())]
    torch.distributed.all_gather(every, mean, group=group)
    assert sum(shards.counts) == 18
    return float(abs(torch.stack(every).mean() - losses[REAL].mean()))


LAYOUTS = ["contiguous", "zigzag", "striped", "zigzag_by_document"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_cut_and_join_are_inverses(ranks, layout):
    for world in (1, 2, 4):
        assert all(ranks.run(world, f"{__name__}:round_trip", layout=layout))


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_weighed_means_of_ranks_are_the_mean_of_all_tokens(ranks, layout):
    for world in (2, 4):
        assert max(ranks.run(world, f"{__name__}:means", layout=layout)) < 1e-13


def told(group) -> tuple[list, str]:
    """Where documents begin, and the words of the error where ranks give other lengths."""
    ends = Shards(group, document_ids=IDS).cu_seqlens.tolist()
    try:
        Shards(group, length=8 + 2 * group.rank())
    except ValueError as error:
        return ends, str(error)
    return ends, ""


def test_documents_begin_alike_and_unequal_arguments_are_one_error_on_every_rank(ranks):
    one, other = ranks.run(2, f"{__name__}:told")
    assert one == other
    assert one[0] == [0, 5, 9, 11, 13, 22]
    assert "rank 0: {'length': 8" in one[1]
    assert "rank 1: {'length': 10" in one[1]
