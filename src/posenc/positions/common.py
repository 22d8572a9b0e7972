"""Counts of several steps as counts of one."""

from collections.abc import Sequence
from fractions import Fraction

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.guards import demand, graph_looks, may_look
from posenc.positions.real_numbers import MOST, NEAR, nearest, step_for
from posenc.positions.scales import step_of_all

NOWHERE = -(2**63)
"""Every coordinate of the first token without a place; the next ones count on from there."""

MANY = 2**16
"""So many tokens without a place are told apart."""


def in_one_step(
    given: Sequence[tuple[Int64[Tensor, "..."], Fraction]],
) -> tuple[list[Tensor], Fraction]:
    """Counts of a common step: exact where 62 bits hold them, else as ``counts_of`` rounds.

    Example:
        >>> in_one_step([(torch.tensor([1]), Fraction(1, 2)), (torch.tensor([1]), Fraction(1, 3))])
        ([tensor([3]), tensor([2])], Fraction(1, 6))
    """
    step = step_of_all([own for _, own in given])
    times = [(own / step).numerator for _, own in given]
    counts = [values for values, _ in given]
    if all(map(_fit, counts, times)):
        return [_cut(values, n) for values, n in zip(counts, times, strict=True)], step
    step = step_for(max((size_of(values) or 0) * own for values, own in given))
    return [rounded_counts(values, step / own) for values, own in given], step


def in_step(values: Int64[Tensor, "*shape"], own: Fraction, step: Fraction) -> Tensor:
    """Counts of one step as counts of another, exactly.

    Raises:
        ValueError: A number is none of whole steps, or of too many.

    Example:
        >>> in_step(torch.tensor([2, 4]), Fraction(1, 4), Fraction(1, 6))
        tensor([3, 6])
    """
    times, into = (own / step).as_integer_ratio()
    if into != 1 and bool((values % into != 0).any()):
        raise ValueError(
            f"A coordinate is no whole number of steps of {step}; they go in steps of {own}. "
            f"Coordinates.rounded(coordinates, step) takes the nearest."
        )
    values = values if into == 1 else values // into
    if not _fit(values, times, MOST):
        raise ValueError(f"Coordinates in steps of {step} take more than 63 bits.")
    return _cut(values, times)


def rounded_counts(values: Int64[Tensor, "*shape"], step: Fraction) -> Int64[Tensor, "*shape"]:
    """Whole numbers in coarser steps, the nearest ones, ties to even.

    Example:
        >>> rounded_counts(torch.tensor([3, 5, 6]), Fraction(2))
        tensor([2, 2, 3])
    """
    if step == 1:
        return values
    counts = list(nearest(values.flatten().tolist(), step))
    return torch.tensor(counts, dtype=torch.int64, device=values.device).view(values.shape)


def size_of(values: Tensor) -> int | None:
    """The largest |value|, where anybody can look."""
    if not may_look(values):
        return None
    low, high = values.aminmax() if values.numel() else (0, 0)
    return max(-int(low), int(high))


def leave_int64(one: Tensor, other: Tensor) -> bool:
    """Whether a sum or difference of two does, as far as can be seen."""
    return (size_of(one) or 0) + (size_of(other) or 0) > MOST


def _fit(values: Tensor, times: int, most: int = NEAR) -> bool:
    """Whether values · times are at most so large, as far as can be seen."""
    if times == 1:
        return True
    if graph_looks(values):
        inside = ((values <= most // times) & (values >= -(most // times))).all()
        demand(inside, f"Coordinates, each cut into {times} steps, take more than 63 bits.")
        return True
    size = size_of(values)
    return times <= MOST or values.is_meta if size is None else size * times <= most


def _cut(values: Tensor, times: int) -> Tensor:
    if times == 1:
        return values
    return values * times if times <= MOST else torch.zeros_like(values)  # as all of them are


def check_no_marks(*several: Tensor) -> None:
    """Refuse points that stand nowhere, as far as can be seen: what is made of them would stand.

    Raises:
        ValueError: All coordinates of a point are marks, as ``prefixed`` makes them.
    """
    for values in several:
        if values.ndim < 2 or not may_look(values) or not values.numel():
            continue
        if bool((values < NOWHERE + MANY).all(-1).any()):
            raise ValueError(
                "A token that stands nowhere, as a class token of posenc.positions.prefixed, "
                "cannot be moved. Put such tokens before the points at last."
            )
