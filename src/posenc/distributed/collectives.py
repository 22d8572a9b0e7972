"""What ranks hand to each other, with gradients: what moves one way forward moves back backward.

These are torch's own functional collectives, called by the names under which graphs know them.
Gradients add up over ranks: what reaches a rank's tensor is the gradient of the sum of the losses
of all ranks.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def everyones(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: the tensor of each rank, without gradients."""
    if group.size() == 1:
        return x.detach().unsqueeze(0)
    operators = torch.ops._c10d_functional
    stacked = operators.all_gather_into_tensor(
        x.detach().contiguous(), group.size(), group.group_name
    )
    return operators.wait_tensor(stacked).unflatten(0, (group.size(), -1))


def gathered(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: the tensor of each rank; gradients come home as a sum."""
    if group.size() == 1:
        return x.unsqueeze(0)
    return _Gathered.apply(x, group.size(), group.group_name).unflatten(0, (group.size(), -1))  # type: ignore[union-attr]


def exchanged(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """[world, *shape]: row r goes to rank r, and row r of the result came from there."""
    return x if group.size() == 1 else _Exchanged.apply(x, group.group_name)  # type: ignore[return-value]


def from_first(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """The tensor of the group's first rank, without gradients."""
    if group.size() == 1:
        return x
    operators = torch.ops._c10d_functional
    return operators.wait_tensor(operators.broadcast(x, 0, group.group_name))


def shared(x: Tensor, group: dist.ProcessGroup) -> Tensor:
    """``x``, which every rank has alike and uses for itself; its gradients add up over ranks."""
    return x if group.size() == 1 else _Shared.apply(x, group.group_name)  # type: ignore[return-value]


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return _Summed.apply(grad, ctx.name), None  # type: ignore[return-value]


# Backward passes are made of these, too, since what moves there has gradients where gradients of
# gradients are asked for; torch's operators have none.


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        operators = torch.ops._c10d_functional
        # gloo reads memory as it lies
        return operators.wait_tensor(operators.all_reduce(x.contiguous(), "sum", name))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return _Summed.apply(grad, ctx.name), None  # type: ignore[return-value]


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, world: int, name: str) -> Tensor:
        ctx.world, ctx.name = world, name
        operators = torch.ops._c10d_functional
        return operators.wait_tensor(operators.all_gather_into_tensor(x.contiguous(), world, name))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return _Scattered.apply(grad, ctx.world, ctx.name), None, None  # type: ignore[return-value]


class _Scattered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, world: int, name: str) -> Tensor:
        ctx.world, ctx.name = world, name
        operators = torch.ops._c10d_functional
        own = operators.reduce_scatter_tensor(x.contiguous(), "sum", world, name)
        return operators.wait_tensor(own)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:  # type: ignore[override]
        return _Gathered.apply(grad, ctx.world, ctx.name), None, None  # type: ignore[return-value]


class _Exchanged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, name: str) -> Tensor:
        ctx.name = name
        return _exchanged(x, name)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        return _Exchanged.apply(grad, ctx.name), None  # type: ignore[return-value]


def _exchanged(x: Tensor, name: str) -> Tensor:
    operators, ones = torch.ops._c10d_functional, [1] * x.shape[0]
    return operators.wait_tensor(operators.all_to_all_single(x.contiguous(), ones, ones, name))
