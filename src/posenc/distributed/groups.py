"""Which processes are meant, on what device their tensors lie, and whether all mean the same."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


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
