"""What autograd is told of kernels that write behind its back."""

import torch
from torch import Tensor
from torch.autograd.graph import increment_version


def _each_by_itself(written: tuple[Tensor, ...]) -> None:
    for x in written:
        increment_version(x)


def _takes_several() -> bool:
    """Torch before 2.6 takes one tensor."""
    try:
        increment_version((torch.empty(0, device="cpu"),))
    except TypeError:
        return False
    return True


note_writes = increment_version if _takes_several() else _each_by_itself
"""Lets autograd notice that tensors were written: what it saved of them is no longer right."""
