"""Collectives with gradients: the backward pass moves data the opposite way.

These are torch's own functional collectives, called by the names that graphs know.
Gradients add up over ranks: what reaches a rank's tensor is the gradient of the sum of the losses
of all ranks.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def everyones(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: the tensor of each rank, without gradients."""
    return gathered(x.detach(), group)


def gathered(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: the tensor of each rank; gradients come home as a sum."""
    if group.size() == 1:
        return x.unsqueeze(0)
    return moved(x, "gather", group.group_name, group.size()).unflatten(0, (group.size(), -1))


def exchanged(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: row r goes to rank r, and row r of the result came from there."""
    return x if group.size() == 1 else moved(x, "exchange", group.group_name, group.size())


def from_first(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The tensor of the group's first rank, without gradients."""
    if group.size() == 1:
        return x
    operators = torch.ops._c10d_functional
    return operators.wait_tensor(operators.broadcast(x, 0, group.group_name))


def shared(x: Tensor, group_name: str) -> Tensor:
    """``x``, which every rank has alike and uses for itself; its gradients add up over ranks."""
    return moved(x, "share", group_name, 0)


def moved(x: Tensor, move: str, group_name: str, world: int) -> Tensor:
    """``x`` after one of the moves of ``BACKWARD``."""
    return _Moved.apply(x, move, group_name, world)  # type: ignore[return-value]


BACKWARD = {"gather": "scatter", "scatter": "gather", "exchange": "exchange"}
BACKWARD |= {"share": "sum", "sum": "sum"}


class _Moved(torch.autograd.Function):
    """One move; its backward pass is another, so that gradients have gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, move: str, name: str, world: int) -> Tensor:
        ctx.move, ctx.name, ctx.world = move, name, world
        operators = torch.ops._c10d_functional
        if move == "share":
            return x.view_as(x)
        x = x.contiguous()  # gloo reads memory as it lies
        if move == "gather":
            made = operators.all_gather_into_tensor(x, world, name)
        elif move == "scatter":
            made = operators.reduce_scatter_tensor(x, "sum", world, name)
        elif move == "exchange":
            made = operators.all_to_all_single(x, [1] * world, [1] * world, name)
        else:
            made = operators.all_reduce(x, "sum", name)
        return operators.wait_tensor(made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:  # type: ignore[override]
        return moved(grad, BACKWARD[ctx.move], ctx.name, ctx.world), None, None, None
