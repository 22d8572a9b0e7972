"""Distances q − k sorted into buckets, in whole numbers: no logarithm decides a border."""

from collections.abc import Callable, Sequence
from functools import cache

import torch
from jaxtyping import Int64
from torch import Tensor

from posenc.arguments import check_whole
from posenc.positions import checked


def t5_buckets(
    distance: Int64[Tensor, "*shape"],
    buckets: int = 32,
    max_distance: int = 128,
    bidirectional: bool = True,
) -> Int64[Tensor, "*shape"]:
    """The bucket of each distance q − k, as T5 has them.

    Of the n buckets of one side the first e = n // 2 hold one distance each; the others grow
    logarithmically: bucket e + j begins at the least d with d ≥ e · (M/e)^(j/(n − e)), which in
    whole numbers is d^m · e^j ≥ M^j · e^m with m = n − e. The last one has no end.

    Public code takes logarithms in float32 and may differ where a border is a whole number: of 36
    causal buckets to 50, bucket 27 begins at 18 · (50/18)^(9/18) = 30.

    Args:
        distance: q − k. Keys after their query have buckets of their own (the upper half) if
            ``bidirectional``, and fall into bucket 0 otherwise.
        buckets: Number of buckets, of both sides together.
        max_distance: M, where the last bucket begins at the latest.
        bidirectional: Whether keys after their query are told apart.

    Reference:
        Raffel et al. 2020, "T5", section 2.1 (arXiv:1910.10683), and its authors' code.

    Example:
        >>> t5_buckets(torch.tensor([0, 1, 7, 8, 127, 128, -1]))
        tensor([ 0,  1,  7,  8, 15, 15, 17])
    """
    borders = t5_borders(buckets, max_distance, bidirectional)
    return between_t5_borders(checked(distance, "distances"), borders, bidirectional)


def between_t5_borders(
    distance: Int64[Tensor, "*shape"], borders: Sequence[int], bidirectional: bool
) -> Int64[Tensor, "*shape"]:
    """``t5_buckets`` from the ``t5_borders`` of one side."""
    starts = torch.tensor(borders[1:], device=distance.device)
    if not bidirectional:
        return torch.bucketize(distance.clamp(min=0), starts, right=True)
    side = torch.where(distance < 0, len(borders), 0)
    return side + torch.bucketize(_away(distance), starts, right=True)


@cache
def t5_borders(buckets: int, max_distance: int, bidirectional: bool) -> tuple[int, ...]:
    """The least distance of each bucket of one side."""
    check_whole(buckets=buckets, max_distance=max_distance)
    side = buckets // 2 if bidirectional else buckets
    alone = side // 2
    if alone < 1 or (bidirectional and buckets % 2):
        wanted = "an even number from 4 on" if bidirectional else "2 or more"
        raise ValueError(f"buckets is {buckets}; it must be {wanted}.")
    if max_distance <= alone:
        raise ValueError(f"max_distance is {max_distance}; it must be above {alone}.")
    rest = side - alone
    return tuple(range(alone)) + tuple(
        _least(
            lambda d, j=j: d**rest * alone**j >= max_distance**j * alone**rest, alone, max_distance
        )
        for j in range(rest)
    )


def deberta_buckets(
    distance: Int64[Tensor, "*shape"], buckets: int, max_distance: int
) -> Int64[Tensor, "*shape"]:
    """Distances q − k up to mid = buckets // 2 as they are, farther ones logarithmically.

    Beyond mid the bucket is ±(mid + t) with the least t with d ≤ mid · ((M − 1)/mid)^(t/(mid − 1)),
    in whole numbers d^(mid−1) · mid^t ≤ (M − 1)^t · mid^(mid−1). It ends at ±2·mid, where the table
    of embeddings ends too.

    Public code takes logarithms in float32 and may differ where a border is a whole number: of 18
    buckets to 17, distance 12 = 9 · (16/9)^(4/8) belongs to bucket 13.

    Args:
        distance: q − k.
        buckets: Twice mid.
        max_distance: M.

    Reference:
        He et al. 2021, "DeBERTaV3" (arXiv:2111.09543); ``make_log_bucket_position`` in the
        authors' code.

    Example:
        >>> deberta_buckets(torch.tensor([3, -3, 128, 129, 511]), 256, 512)
        tensor([  3,  -3, 128, 129, 255])
    """
    ends = deberta_ends(buckets, max_distance)
    return between_deberta_ends(checked(distance, "distances"), ends)


def between_deberta_ends(
    distance: Int64[Tensor, "*shape"], ends: Sequence[int]
) -> Int64[Tensor, "*shape"]:
    """``deberta_buckets`` from ``deberta_ends``."""
    away, mid = _away(distance), len(ends)
    far = mid + torch.bucketize(away, torch.tensor(ends, device=distance.device))
    return torch.where(away <= mid, distance, far * distance.sign())


@cache
def deberta_ends(buckets: int, max_distance: int) -> tuple[int, ...]:
    """The largest distance of the buckets mid, mid + 1, … 2·mid − 1."""
    check_whole(buckets=buckets, max_distance=max_distance)
    mid = buckets // 2
    if mid < 2 or max_distance - 1 <= mid:
        raise ValueError(
            f"buckets is {buckets} and max_distance {max_distance}; give 4 buckets or more, and a "
            f"max_distance of at least {mid + 2}."
        )
    most, power = max_distance - 1, mid - 1
    return tuple(
        _least(lambda d, t=t: d**power * mid**t > most**t * mid**power, mid, 2 * max_distance) - 1
        for t in range(mid)
    )


def _away(distance: Tensor) -> Tensor:
    """|distance|; |−2^63| is no int64, and its neighbor lies in the same bucket."""
    return distance.clamp(min=-(2**63) + 1).abs()


def _least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least whole number from ``low`` on for which a growing condition holds."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
