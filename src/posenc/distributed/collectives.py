"""Groups of processes, and collectives with gradients, which move data the opposite way backward.

These are torch's own functional collectives, called by the names that graphs know.
Gradients add up over ranks: what reaches a rank's tensor is the gradient of the sum of the losses
of all ranks.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


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


def group_of(group: dist.ProcessGroup | DeviceMesh | None) -> dist.ProcessGroup:
    """The process group that is meant; all processes if none is named."""
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(f"The mesh has dimensions {group.mesh_dim_names}; name one of them.")
        return group.get_group()
    if group is None:
        if not dist.is_available() or not dist.is_initialized():
            raise ValueError("There is no process group; call init_process_group first.")
        assert dist.group.WORLD is not None
        return dist.group.WORLD
    return group


def device_of(group: object, *given: object) -> torch.device:
    """That of the first tensor given; else the mesh's, or the CPU."""
    for value in given:
        if isinstance(value, Tensor):
            return value.device
    kind = group.device_type if isinstance(group, DeviceMesh) else "cpu"
    return torch.device(kind)


def agree(said: Any, group: dist.ProcessGroup, about: str, error: Exception | None = None) -> None:
    """Raise one error on every rank unless all of them said the same and none has failed.

    Collectives of unequal shapes hang, or end a process with no Python error.
    """
    if group.size() == 1:
        if error is not None:
            raise error
        return
    answers: list[Any] = [None] * group.size()
    failed = None if error is None else f"{type(error).__name__}: {error}"
    dist.all_gather_object(answers, (said, failed), group=group)
    if any(answer != (answers[0][0], None) for answer in answers):
        each = enumerate(answers)
        lines = "".join(f"\n  rank {rank}: {failed or said}" for rank, (said, failed) in each)
        raise ValueError(f"{about} differ among ranks, or one failed:{lines}") from error
