"""What ranks are asked to do inside torch's own context parallelism."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import (
    _context_parallel_shard,
    _ContextParallel,
)
from torch.distributed.tensor.experimental._context_parallel import (
    _HeadTailLoadBalancer,
    _PerDocumentHeadTailLoadBalancer,
)
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from posenc import ALiBi, Positional, T5Bias, attention
from posenc.backends import score_mod

HEADS, LENGTH = 4, 32
SCORES = {"alibi": ALiBi, "t5": T5Bias}
Kind = _ContextParallel.AttentionType


class Biased(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, q, k, v, *, own, gathered):
        mask = create_block_mask(
            lambda b, h, i, j: own[i] >= gathered[j], None, None, len(own), len(gathered),
            device="cpu",
        )  # fmt: skip
        return flex_attention(q, k, v, score_mod=score_mod(self.bias, own, gathered),
                              block_mask=mask)  # fmt: skip


def refused(group) -> str:
    """What is said inside its context."""
    x = torch.randn(1, HEADS, LENGTH, 8)
    mesh = DeviceMesh.from_group(group, "cpu")
    with context_parallel(mesh, buffers=[x], buffer_seq_dims=[2]):
        told = _said(lambda: attention(x, x, x))
    attention(x, x, x)  # and outside of it again
    return told


def _said(call) -> str:
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return str(error)
    return ""


@torch.no_grad()
def biased(group, scores: str, balancer: str | None) -> tuple[float, float]:
    """How far FlexAttention is from one process by our recipe, and with positions from 0."""
    mesh, world = DeviceMesh.from_group(group, "cpu"), group.size()
    torch.manual_seed(0)
    (q, k, v), bias = torch.randn(3, 1, HEADS, LENGTH, 8), SCORES[scores](HEADS)
    positions = torch.arange(LENGTH).unsqueeze(0)
    balance = {
        None: None,
        "head-tail": _HeadTailLoadBalancer(LENGTH, world, "cpu"),
        "documents": _PerDocumentHeadTailLoadBalancer([[8, 24]], world, "cpu"),
    }[balancer]
    *content, own = _context_parallel_shard(mesh, [q, k, v, positions], [2, 2, 2, 1], balance)
    gathered = own.new_empty(world, own.shape[1])
    dist.all_gather_into_tensor(gathered, own.contiguous(), group=group)
    inner = parallelize_module(Biased(bias), mesh, _ContextParallel(2, Kind.FLEX))
    whole = attention(q, k, v, is_causal=True, positional=Positional(scores=bias))
    (expected,) = _context_parallel_shard(mesh, [whole], [2], balance)
    naive = {"own": torch.arange(own.shape[1]), "gathered": torch.arange(LENGTH)}
    found = [inner(*content, own=own[0], gathered=gathered.flatten()), inner(*content, **naive)]
    right, wrong = (float((out - expected).abs().max()) for out in found)
    return right, wrong
