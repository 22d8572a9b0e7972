"""Which processes are meant, and on what device their tensors lie."""

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
