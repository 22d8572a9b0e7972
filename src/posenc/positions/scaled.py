"""Steps and their differences as floats: times an exact scale, each rounded once."""

from array import array
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float64
from torch import Tensor

from posenc._guards import demand, graph_looks, may_look
from posenc._rounding import rounded
from posenc.positions.scales import Factor
from posenc.positions.seen import Seen
from posenc.positions.words import Words, as_floats, float_differences, pairs

BLOCK = 1 << 16
"""So many pairs at a time stay in cache, with what they are made of."""

LARGE = 1e18
"""2^64 steps of such a size are within float32."""


def scaled(
    wide: Tensor, scale: tuple[Factor, Factor], dtype: torch.dtype, out: Tensor | None = None
) -> Tensor:
    """``wide``, which is written to, times a scale; in a dtype or in ``out``.

    Raises:
        ValueError: A dtype of less range than float64 makes a number infinite, as far as seen.
    """
    above, below = scale
    if above != 1.0:
        wide.mul_(_row(above, wide) if isinstance(above, tuple) else above)
    if below != 1.0:
        wide.div_(_row(below, wide) if isinstance(below, tuple) else _divisor(below, wide))
    made = _cast(wide, dtype)
    if _may_leave(scale, dtype):
        check_finite(made)
    return made if out is None else out.copy_(made)


def _cast(wide: Tensor, dtype: torch.dtype) -> Tensor:
    """``rounded(wide, dtype)``, which takes twice as long for a few numbers."""
    if dtype is torch.float32:
        return wide.float()
    return wide if dtype is torch.float64 else rounded(wide, dtype)


def _may_leave(scale: tuple[Factor, Factor], dtype: torch.dtype) -> bool:
    """Whether so many steps as int64 holds may leave a dtype, on the way or at last."""
    above, below = scale
    largest = max(above) if isinstance(above, tuple) else above
    least = min(below) if isinstance(below, tuple) else below
    return dtype is torch.float16 or largest > LARGE or least < 1 / LARGE


def check_finite(numbers: Tensor) -> None:
    """Refuse positions that their dtype has made infinite; unless none may look.

    Raises:
        ValueError: It has.

    Example:
        >>> check_finite(torch.tensor([70_000]).half())
        Traceback (most recent call last):
        ...
        ValueError: A position or distance is beyond 65504, the largest number of float16. Ask for \
float32, and cast what comes out.
    """
    largest, name = torch.finfo(numbers.dtype).max, str(numbers.dtype).removeprefix("torch.")
    remedy = "Ask for float32, and cast what comes out."
    if numbers.dtype is not torch.float16:
        remedy = "Give positions in a larger unit."
    words = f"A position or distance is beyond {largest:g}, the largest number of {name}. {remedy}"
    if graph_looks(numbers):
        demand(~numbers.isinf().any(), words)
    elif may_look(numbers) and bool(numbers.isinf().any()):
        raise ValueError(words)


def _row(factors: tuple[float, ...], like: Tensor) -> Tensor:
    """Numbers as a row beside the last axis of ``like``."""
    if like.is_cpu and may_look(like):  # in a third of the time
        return torch.frombuffer(array("d", factors), dtype=torch.float64)
    return torch.tensor(factors, dtype=like.dtype, device=like.device)


def _divisor(factor: float, like: Tensor) -> Tensor | float:
    """A number, as a tensor where torch would multiply with its reciprocal."""
    return factor if like.is_cpu and may_look(like) else _row((factor,), like)


def whole_row(numbers: int | tuple[int, ...]) -> Tensor | int:
    """The same of whole numbers, on the CPU."""
    if isinstance(numbers, int):
        return numbers
    return torch.frombuffer(array("q", numbers), dtype=torch.int64)


def doubles_of(steps: Tensor, rest: Tensor | None, seen: Seen) -> Float64[Tensor, "*shape"]:
    """Steps with their rests as float64, which may be written to."""
    if seen.held is not None:
        return seen.doubles.clone()  # type: ignore[union-attr]
    return steps.double() if rest is None else as_floats(steps, rest)


def float_pairs(
    one: Tensor, other: Tensor, scale: tuple[Factor, Factor], dtype: torch.dtype
) -> Tensor:
    """Differences of numbers that float64 holds, each rounded once."""
    if one.is_cpu and may_look(one) and one.numel() * other.shape[-1] >= 2 * BLOCK:
        return in_blocks(partial(pairs, other=other), (one,), other, scale, dtype)
    return scaled(pairs(one, other), scale, dtype)


def differences_of_rows(steps: Tensor, rest: Tensor, *, other: Words, long: bool) -> Tensor:
    return float_differences(Words(steps, rest), other, long=long)


def in_blocks(
    of_rows: Callable[..., Tensor],
    rows: Sequence[Tensor],
    others: Tensor,
    scale: tuple[Factor, Factor],
    dtype: torch.dtype,
) -> Tensor:
    """What some rows at a time give, which stay in cache from one operation to the next."""
    batch = torch.broadcast_shapes(rows[0].shape[:-1], others.shape[:-1])
    made = others.new_empty(*batch, rows[0].shape[-1], others.shape[-1], dtype=dtype)
    many = max(1, BLOCK * made.shape[-2] // made.numel())
    parts = (each.split(many, dim=-1) for each in rows)
    for to, *some in zip(made.split(many, dim=-2), *parts, strict=True):
        scaled(of_rows(*some), scale, dtype, out=to)
    return made
