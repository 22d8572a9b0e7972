"""What the plans of all kernels share: layouts of tensors, formats, and which memory meets.

Kernels take what is plainly apart, told from shapes and strides in no time. What they leave goes to
the reference, which computes before it writes; there ``out.py`` refuses what truly meets.
"""

from math import gcd, prod

import torch
from torch import Tensor

from posenc.guards import stored

Strided = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""A tensor without its memory: shape, strides and dtype."""

FORMATS = {
    torch.float32: (0, torch.float32),
    torch.bfloat16: (1, torch.float32),
    torch.float16: (2, torch.float32),
    torch.float64: (3, torch.float64),
}
"""The place of a dtype in FORMATS of the C sources, and the dtype of the table that meets it."""


def strided(x: Tensor) -> Strided:
    """What a plan is made of.

    Raises:
        RuntimeError: ``x`` has no strides.
    """
    return x.shape, x.stride(), x.dtype


def strided_or_none(x: Tensor | None) -> Strided | None:
    """``strided``, of an operand that may be left out."""
    return None if x is None else (x.shape, x.stride(), x.dtype)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of new memory.

    Example:
        >>> contiguous((2, 3, 5))
        (15, 5, 1)
    """
    return tuple(prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


def have_memory(*tensors: Tensor | None) -> bool:
    """Whether all elements are somewhere: not in storage that was freed, nor zeros known to torch.

    Example:
        >>> x = torch.ones(2)
        >>> have_memory(x, None, x[:0]), have_memory(x, torch._efficientzerotensor((2,)))
        (True, False)
    """
    return stored(*[x for x in tensors if x is not None])


def may_meet_itself(sizes: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether two elements may lie in one place: strides do not nest.

    Example:
        >>> may_meet_itself((4, 3), (3, 1)), may_meet_itself((4, 3), (0, 1))
        (False, True)
        >>> may_meet_itself((2, 2), (3, 2))  # 0, 2, 3, 5 do not, but that is not told from strides
        False
        >>> may_meet_itself((2, 3), (3, 2))  # nor do 0, 2, 4, 3, 5, 7
        True
    """
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(steps, sizes, strict=True)):
        if size > 1:
            if step <= reach:
                return True
            reach += step * (size - 1)
    return False


def apart(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have no byte in common, as far as this tells.

    One lies before the other; or both repeat with the same stride, as queries and keys in one
    buffer do, and that holds inside it. ``memory.h`` tells it likewise.

    Example:
        >>> q, k, _ = torch.zeros(2, 5, 3, 4).unbind(-2)
        >>> apart(q, k), apart(q, q[1:])
        (True, False)
    """
    pair = one, other
    if one.is_contiguous() and other.is_contiguous():  # as most are, in half the time
        start, end = one.data_ptr(), other.data_ptr()
        if start + one.nbytes <= end or end + other.nbytes <= start:
            return True
    axes = list(range(one.ndim)) if one.ndim == other.ndim else []
    whole = [list(range(x.ndim)) for x in pair]
    begin = min(x.data_ptr() for x in pair)
    while True:
        (first, last), (start, end) = (_extent(x, of) for x, of in zip(pair, whole, strict=True))
        if last <= start or end <= first:
            return True
        steps = [[x.stride(axis) * x.element_size() for axis in axes] for x in pair]
        shared = [
            (step, axis)
            for axis, step, same in zip(axes, *steps, strict=True)
            if step == same and max(x.shape[axis] for x in pair) > 1
        ]
        if not shared:
            return False
        step, outer = max(shared)
        axes.remove(outer)
        whole = [axes, axes]
        if max(_extent(x, axes)[1] for x in pair) - begin > step:
            return False


def alike(one: Tensor, other: Tensor) -> bool:
    """Whether both are the same elements in the same order.

    Example:
        >>> x = torch.zeros(2, 2)
        >>> alike(x, x.view(2, 2)), alike(x, x.T)
        (True, False)
    """
    return (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


def fits(out: Tensor, x: Tensor, *others: Tensor | None) -> bool:
    """Whether ``out`` may be written while ``x`` and ``others`` are read.

    It is ``x``, or apart from it; it is apart from the others, and from itself.

    Example:
        >>> x = torch.zeros(4)
        >>> fits(x, x), fits(x[:2], x[2:]), fits(x[1:], x[:3]), fits(x[:1].expand(4), x[1:])
        (True, True, False, False)
    """
    if may_meet_itself(out.shape, out.stride()):
        return False
    return (alike(out, x) or apart(out, x)) and all(
        other is None or apart(out, other) for other in others
    )


def meet(one: Tensor, other: Tensor) -> bool:
    """Whether a byte belongs to both tensors; asked of every element where their memory mixes.

    Example:
        >>> x = torch.zeros(6)
        >>> meet(x[::2], x[1::2]), meet(x[::2], x[2:3])
        (False, True)
    """
    if not one.numel() or not other.numel() or apart(one, other):
        return False
    unit = gcd(one.element_size(), other.element_size(), one.data_ptr() - other.data_ptr())
    begin = min(one.data_ptr(), other.data_ptr())
    places, others = (_places(x, begin, unit) for x in (one, other))
    return bool(torch.isin(places, others).any())


def meets_itself(x: Tensor) -> bool:
    """Whether two elements of a tensor lie in one place.

    Example:
        >>> x = torch.zeros(8)
        >>> meets_itself(x.as_strided((2, 3), (3, 2))), meets_itself(x.as_strided((2, 3), (2, 1)))
        (False, True)
    """
    if not may_meet_itself(x.shape, x.stride()):
        return False
    places = _places(x, x.data_ptr(), x.element_size(), every=True)
    return len(places.unique()) < len(places)


def _extent(x: Tensor, axes: list[int]) -> tuple[int, int]:
    """Where the memory of the first elements over some axes begins and ends."""
    begin = x.data_ptr()
    if not x.numel():
        return begin, begin
    last = sum((x.shape[axis] - 1) * x.stride(axis) for axis in axes)
    return begin, begin + (last + 1) * x.element_size()


def _places(x: Tensor, begin: int, unit: int, every: bool = False) -> Tensor:
    """The address of each unit of bytes of each element, in units; repeats once, or each time."""
    width = x.element_size()
    first = (x.data_ptr() - begin) // unit
    places = torch.arange(first, first + width // unit, device="cpu")
    for size, step in zip(x.shape, x.stride(), strict=True):
        if step or every:
            steps = torch.arange(size, device="cpu") * (step * width // unit)
            places = (steps[:, None] + places).flatten()
    return places
