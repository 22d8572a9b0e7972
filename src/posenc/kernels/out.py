"""Where results are written that a kernel did not take: into ``out``, or not without saying why."""

from torch import Tensor

from posenc.guards import eager, numbers, stored
from posenc.kernels.strides import meet, meets_itself


def written(made: Tensor, out: Tensor | None, **read: Tensor | None) -> Tensor:
    """``made``, in ``out`` if that is given.

    Args:
        made: The result.
        out: Where it shall be; it may be the content that it was made of.
        read: What must stay as it is, by the names that the caller knows.

    Raises:
        ValueError: ``out`` has another shape or dtype, or two of its elements are in one place, or
            one of them lies in what was read.

    Example:
        >>> import torch
        >>> table = torch.ones(3)
        >>> written(torch.zeros(3), table, table=table)
        Traceback (most recent call last):
        ...
        ValueError: out shares memory with table, which would be overwritten. Write to \
torch.empty_like(x), or pass out=x.
    """
    if out is None:
        return made
    check_written(made, out, **read)
    return out.copy_(made)


def check_written(made: Tensor, out: Tensor, **read: Tensor | None) -> None:
    """Refuse an ``out`` that ``written`` would refuse; arguments and errors as there.

    Example:
        >>> import torch
        >>> check_written(torch.zeros(3), torch.ones(2))
        Traceback (most recent call last):
        ...
        ValueError: out is torch.float32 (2,); it must be torch.float32 (3,), as x. Build it with \
torch.empty_like(x), or pass out=x.
    """
    if out.shape != made.shape or out.dtype != made.dtype:
        raise ValueError(
            f"out is {out.dtype} {tuple(out.shape)}; it must be {made.dtype} {tuple(made.shape)}, "
            f"as x. Build it with torch.empty_like(x), or pass out=x."
        )
    check_out(out, **read)


def check_out(out: Tensor, **read: Tensor | None) -> None:
    """Refuse to write where elements share a place, or where something lies that is read.

    Args:
        out: What will be written.
        read: What must stay as it is, by the names that the caller knows.

    Raises:
        ValueError: Two elements of ``out`` are in one place, or one lies in what is read, or it
            has no memory.
    """
    check_memory(out=out)
    if not eager() or not _has_memory(out):
        return
    if meets_itself(out):
        raise ValueError(
            f"out has shape {tuple(out.shape)} and strides {out.stride()}: some of its elements "
            f"are in one place, as in an expanded tensor. Build it with torch.empty_like(x)."
        )
    for name, other in read.items():
        if other is not None and _has_memory(other) and meet(out, other):
            raise ValueError(
                f"out shares memory with {name}, which would be overwritten. Write to "
                f"torch.empty_like(x), or pass out=x."
            )


def check_memory(**operands: Tensor | None) -> None:
    """Refuse operands whose storage was freed, which torch would read all the same.

    Raises:
        ValueError: One has elements and no memory; its name is told.

    Example:
        >>> import torch
        >>> table = torch.ones(2)
        >>> _ = table.untyped_storage().resize_(0)
        >>> check_memory(table=table)
        Traceback (most recent call last):
        ...
        ValueError: table has shape (2,) and no memory: its storage was resized to nothing. Use it \
while it is whole, or keep a copy (a sharded parameter is whole only inside its module).
    """
    if not eager():
        return
    for name, x in operands.items():
        if x is None or not x.numel() or not _has_memory(x) or stored(x) or _is_zero(x):
            continue
        raise ValueError(
            f"{name} has shape {tuple(x.shape)} and no memory: its storage was resized to nothing. "
            f"Use it while it is whole, or keep a copy (a sharded parameter is whole only inside "
            f"its module)."
        )


def _has_memory(x: Tensor) -> bool:
    """Whether its address can be asked for."""
    if x.is_meta or not numbers(x):
        return False
    try:
        return x.data_ptr() >= 0
    except RuntimeError:
        return False  # sparse, or in torch's older vmap


def _is_zero(x: Tensor) -> bool:
    """Whether torch knows that it is nothing but zeros, and keeps none of them."""
    return getattr(x, "_is_zerotensor", lambda: False)()
