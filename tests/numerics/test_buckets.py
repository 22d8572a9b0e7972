"""Buckets of distances against exact rational arithmetic and the code of transformers."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position
from transformers.models.t5.modeling_t5 import T5Attention

from posenc.numerics.buckets import deberta_buckets, t5_buckets

FAR = torch.arange(-100_000, 100_001)


def rationally(distance: int, side: int, most: int) -> int:
    """T5's bucket of one side by comparing powers of exact fractions."""
    alone = side // 2
    if distance < alone:
        return distance
    rest, grown = side - alone, Fraction(distance, alone)
    j = 0
    while j + 1 < rest and grown**rest >= Fraction(most, alone) ** (j + 1):
        j += 1
    return alone + j


def off_borders(first: int, last: int, steps: int) -> torch.Tensor:
    """FAR but where first·(last/first)^(j/steps) is whole: a logarithm's last bit decides there."""
    borders = {Fraction(last, first) ** j for j in range(steps + 1)}
    whole = [d for d in range(first, last + 1) if Fraction(d, first) ** steps in borders]
    return FAR[~torch.isin(FAR.abs(), torch.tensor(whole))]


CONFIGURATIONS = [
    (32, 128, True), (32, 128, False), (64, 256, True), (16, 20, True), (8, 1000, False),
    (6, 9, True), (36, 50, False),
]  # fmt: skip


@pytest.mark.parametrize(("buckets", "most", "both"), CONFIGURATIONS)
def test_every_distance_to_1e5_is_in_its_rational_bucket(buckets, most, both):
    side = buckets // 2 if both else buckets
    near = torch.tensor([rationally(distance, side, most) for distance in range(most + 1)])
    # Buckets never fall with distance, so that all between two of the last one are in it too.
    assert near[-1] == rationally(100_000, side, most) == side - 1
    wanted = near[FAR.abs().clamp(max=most)]
    wanted = torch.where(FAR >= 0, wanted, side + wanted if both else 0)
    assert torch.equal(t5_buckets(FAR, buckets, most, both), wanted)


@pytest.mark.parametrize(("buckets", "most", "both"), CONFIGURATIONS[:4])
def test_transformers_agrees(buckets, most, both):
    side = buckets // 2 if both else buckets
    at = off_borders(side // 2, most, side - side // 2)
    theirs = T5Attention._relative_position_bucket(-at, both, buckets, most)
    assert torch.equal(t5_buckets(at, buckets, most, both), theirs)


def test_a_border_that_is_whole():
    """18·(50/18)^(9/18) is 30: a new bucket begins exactly there."""
    assert t5_buckets(torch.tensor([29, 30]), 36, 50, False).tolist() == [26, 27]
    assert 30 not in off_borders(18, 50, 18)


@given(st.integers(0, 2**62), st.integers(0, 2**62))
@settings(max_examples=50, deadline=None)
def test_buckets_never_fall_with_distance(one, other):
    low, high = t5_buckets(torch.tensor([min(one, other), max(one, other)])).tolist()
    assert low <= high


def test_the_ends_of_int64():
    ends = torch.tensor([-(2**63), 2**63 - 1])
    assert t5_buckets(ends).tolist() == [31, 15]
    assert deberta_buckets(ends, 256, 512).tolist() == [-256, 256]


@pytest.mark.parametrize(("buckets", "most"), [(256, 512), (32, 128), (64, 1000), (8, 6), (4, 5)])
def test_deberta_buckets_are_the_rational_ones(buckets, most):
    mid, t, wanted = buckets // 2, 0, []
    for distance in range(mid + 1, most):
        while Fraction(distance, mid) ** (mid - 1) > Fraction(most - 1, mid) ** t:
            t += 1
        wanted.append(mid + t)
    wanted = torch.tensor([*range(mid + 1), *wanted])
    assert torch.equal(deberta_buckets(torch.arange(most), buckets, most), wanted)
    assert torch.equal(deberta_buckets(-torch.arange(most), buckets, most), -wanted)


@pytest.mark.parametrize(("buckets", "most"), [(256, 512), (32, 128), (64, 1000), (512, 1024)])
def test_deberta_buckets_are_those_of_transformers(buckets, most):
    """At any distance: where its buckets run on, its table of embeddings has ended."""
    at = off_borders(buckets // 2, most - 1, buckets // 2 - 1)
    theirs = make_log_bucket_position(at, buckets, most).long().clamp(-buckets, buckets)
    assert torch.equal(deberta_buckets(at, buckets, most), theirs)


@pytest.mark.parametrize(
    ("buckets", "most", "distance", "right"), [(18, 17, 12, 13), (98, 257, 112, 73)]
)
def test_deberta_borders_that_are_whole(buckets, most, distance, right):
    """9·(16/9)^(4/8) is 12, and 49·(256/49)^(24/48) is 112: the last of their buckets."""
    at, after = deberta_buckets(torch.tensor([distance, distance + 1]), buckets, most).tolist()
    assert at == right < after


MISFITS = [(t5_buckets, 5, 128), (t5_buckets, 2, 128), (t5_buckets, 32, 8),
           (deberta_buckets, 3, 512), (deberta_buckets, 256, 129)]  # fmt: skip


@pytest.mark.parametrize(("make", "buckets", "most"), MISFITS)
def test_numbers_that_do_not_fit(make, buckets, most):
    with pytest.raises(ValueError, match=r"buckets|max_distance"):
        make(FAR, buckets, most)
