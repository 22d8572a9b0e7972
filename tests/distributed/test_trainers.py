"""Three lines in a trainer: FSDP2, DDP, compilation, checkpointing, autocast, saved checkpoints."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from posenc import ALiBi, Positional, Rotary, T5Bias
from posenc.distributed import Shards
from posenc.transformer import Encoder

DIM, HEADS, LENGTH, BATCH = 16, 4, 26, 2
IDS = torch.arange(3).repeat_interleave(torch.tensor([9, 12, 5])).expand(BATCH, -1)


def built(scores=None, **changes) -> Encoder:
    torch.manual_seed(0)
    scores = T5Bias(HEADS) if scores is None else scores
    positional = Positional(queries_keys=Rotary(DIM // HEADS), scores=scores)
    return Encoder(DIM, HEADS, 2, positional=positional, is_causal=True, **changes)


def content():
    return torch.randn(2, BATCH, LENGTH, DIM, generator=torch.Generator().manual_seed(2))


def loss_of(out, target, shards):
    """The mean over real tokens, so that the mean over ranks is that over all."""
    losses = (out - target).square().mean(-1)
    real = shards.padding_mask
    mean = losses.mean() if real is None else losses[real.expand(losses.shape)].mean()
    return mean * shards.weight


def one_process(encoder, x, y, ids):
    loss = (encoder(x, document_ids=ids) - y).square().mean()
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in encoder.named_parameters()}


def farthest(found: dict, expected: dict) -> float:
    assert found.keys() == expected.keys()
    return max(
        float((found[n] - g).abs().max() / g.abs().max().clamp(min=1e-3))
        for n, g in expected.items()
    )


def fsdp(group, spread: str, data: int) -> list[float]:
    """FSDP2 on a mesh of data × context ranks: the loss and the gradients of one process."""
    mesh = init_device_mesh("cpu", (data, group.size() // data), mesh_dim_names=("dp", "cp"))
    encoder, (x, y) = built(), content()
    expected, gradients = one_process(built(), x, y, IDS)
    for block in encoder.blocks:
        fully_shard(block, mesh=mesh["dp", "cp"]._flatten("all"))
    fully_shard(encoder, mesh=mesh["dp", "cp"]._flatten("all"))
    each, rank = BATCH // data, mesh["dp"].get_local_rank()
    rows = slice(rank * each, (rank + 1) * each)
    shards = Shards(mesh["cp"], layout="zigzag", document_ids=IDS[rows])
    out = encoder(shards.cut(x[rows]), shards=shards, spread=spread)
    loss = loss_of(out, shards.cut(y[rows]), shards)
    loss.backward()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    found = {n: p.grad.full_tensor() for n, p in encoder.named_parameters()}
    return [float(abs(mean / group.size() - expected)), farthest(found, gradients)]


def ddp(group) -> float:
    encoder, (x, y) = built(), content()
    _, gradients = one_process(built(), x, y, IDS)
    wrapped = DistributedDataParallel(encoder, process_group=group)
    shards = Shards(group, layout="striped", document_ids=IDS)
    loss_of(wrapped(shards.cut(x), shards=shards), shards.cut(y), shards).backward()
    return farthest({n: p.grad for n, p in encoder.named_parameters()}, gradients)


def checkpointed(group, spread: str) -> float:
    """Activation checkpointing, with hidden dropout: the gradients without it."""
    x, y = content()
    shards = Shards(group, layout="zigzag", length=LENGTH)
    found = []
    for again in (False, True):
        encoder = built(dropout=0.2, attention_dropout=0.0).train()
        for block in encoder.blocks if again else ():
            block.forward = partial(checkpoint, block.forward, use_reentrant=False)
        torch.manual_seed(9)
        out = encoder(shards.cut(x), shards=shards, spread=spread)
        loss_of(out, shards.cut(y), shards).backward()
        found.append({n: p.grad for n, p in encoder.named_parameters()})
    return farthest(found[1], found[0])


def compiled(group, spread: str, scores: str | None) -> float:
    """A full graph, forward and backward."""
    torch._dynamo.reset()
    encoder, (x, y) = built({"alibi": ALiBi(HEADS)}.get(scores or "")), content()
    shards = Shards(group, layout="zigzag", document_ids=IDS)
    part, target = shards.cut(x), shards.cut(y)

    def step(part):
        return encoder(part, shards=shards, spread=spread)

    loss_of(step(part), target, shards).backward()
    eager = {n: p.grad.clone() for n, p in encoder.named_parameters()}
    encoder.zero_grad()
    graph = torch.compile(step, fullgraph=True, backend="aot_eager")
    loss_of(graph(part), target, shards).backward()
    return farthest({n: p.grad for n, p in encoder.named_parameters()}, eager)


pytestmark = pytest.mark.slow("trainers around rows that are cut among ranks")


@pytest.mark.parametrize(("data", "spread"), [(1, "gather"), (2, "ring"), (2, "heads")])
def test_fsdp_gets_the_numbers_of_one_process(ranks, data, spread):
    for loss, gradients in ranks.run(4, f"{__name__}:fsdp", spread=spread, data=data):
        assert loss < 1e-5
        assert gradients < 1e-4


def test_ddp_gets_the_gradients_of_one_process(ranks):
    assert max(ranks.run(4, f"{__name__}:ddp")) < 1e-4


@pytest.mark.parametrize("spread", ["gather", "heads", "ring"])
def test_what_is_computed_again_is_dropped_again(ranks, spread):
    assert max(ranks.run(4, f"{__name__}:checkpointed", spread=spread)) < 1e-5


@pytest.mark.compiles
@pytest.mark.parametrize("scores", ["t5", "alibi"])
@pytest.mark.parametrize("spread", ["gather", "heads"])
def test_gather_and_heads_are_full_graphs(ranks, spread, scores):
    assert max(ranks.run(2, f"{__name__}:compiled", spread=spread, scores=scores)) < 1e-4
