"""Which tensors Triton serves, and what their memory must be like."""

from functools import cache
from importlib.util import find_spec

from torch import Tensor

from posenc._guards import PLAIN

DEVICES = {"cuda"}
"""What torch calls them; ROCm's too."""


@cache
def installed() -> bool:
    """Whether there is a Triton; torch for accelerators brings its own."""
    return find_spec("triton") is not None


def served(first: Tensor, *others: Tensor | None) -> bool:
    """Whether all are plain numbers on one accelerator that Triton compiles for.

    Example:
        >>> import torch
        >>> served(torch.ones(2))
        False
    """
    device = first.device
    if device.type not in DEVICES or not installed():
        return False
    present = [x for x in (first, *others) if x is not None]
    return all(type(x) in PLAIN and x.device == device and not x.is_neg() for x in present)


def fits(out: Tensor, x: Tensor) -> bool:
    """Whether ``out`` is ``x``, or in other memory; and no two of its elements are in one place.

    Example:
        >>> import torch
        >>> x = torch.zeros(4)
        >>> fits(x, x), fits(x[:2], x[2:]), fits(x[1:], x[:3]), fits(x[:1].expand(4), x[1:])
        (True, True, False, False)
    """
    steps = sorted(
        (step, size) for step, size in zip(out.stride(), out.shape, strict=True) if size > 1
    )
    reach = 0
    for step, size in steps:
        if step <= reach:
            return False
        reach += step * (size - 1)
    if out.data_ptr() == x.data_ptr() and out.stride() == x.stride() and out.shape == x.shape:
        return True
    (begin, end), (first, last) = _extent(out), _extent(x)
    return end <= first or last <= begin


def _extent(x: Tensor) -> tuple[int, int]:
    """Where the memory of a tensor begins and ends."""
    elements = 1 + sum(
        (size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True) if size > 1
    )
    begin = x.data_ptr()
    return begin, begin + (elements if x.numel() else 0) * x.element_size()
