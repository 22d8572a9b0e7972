"""Numbers of numpy are the numbers that they are: none wraps on its way into a table."""

import warnings
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest
import torch
from tests.encodings.test_set_afterwards import EVERY, same, seen

from posenc import (
    CyclicOffset,
    DualChunk,
    ReRoPE,
    SelfExtend,
    Shaw,
    TransformerXL,
    positions,
)
from posenc.frequencies import DynamicNTK, DyNTK, Geometric, intrinsic_frequency
from posenc.testing import Case
from posenc.transformer import Encoder, MultiHeadAttention

KINDS = (np.uint8, np.int8, np.uint64, np.int64, np.float32)


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """A warning of numpy is no excuse."""
    with warnings.catch_warnings(action="ignore"):
        yield


def in_kind(value: object, kind: type) -> object | None:
    """The same number, or row of numbers, in a kind of numpy's that holds it."""
    if isinstance(value, tuple) and value:
        entries = [in_kind(entry, kind) for entry in value]
        return None if None in entries else tuple(entries)
    if type(value) is not int:
        return None
    with suppress(OverflowError):
        return kind(value) if int(kind(value)) == value else None


def variants(case: Case, kinds: tuple[type, ...]) -> Iterator[tuple[dict, dict]]:
    """Changes of one argument to a number of numpy, each beside the same in Python's."""
    for name, value in [*case.arguments.items(), *case.changes.items()]:
        for kind in kinds:
            odd = in_kind(value, kind)
            if odd is not None:
                yield {name: odd}, {name: value}


def check(case: Case, kinds: tuple[type, ...]) -> int:
    """How many numbers were taken for what they are: all that are whole."""
    asked = 0
    for odd, usual in variants(case, kinds):
        try:
            module = case.module(**odd)
        except (ValueError, TypeError):
            assert all(np.asarray(value).dtype == np.float32 for value in odd.values()), odd
            continue
        asked += 1
        with suppress(ValueError, TypeError):  # content of another width
            assert same(seen(case, module), seen(case, case.module(**usual))), odd
    return asked


@pytest.mark.parametrize("case", list(EVERY.values()), ids=list(EVERY))
def test_every_encoding_takes_the_smallest_for_what_they_are(case):
    check(case, KINDS[:1])


@pytest.mark.slow("takes ten seconds")
def test_every_encoding_takes_every_kind_for_what_it_is():
    assert sum(check(case, KINDS) for case in EVERY.values()) > 700


def test_products_of_small_kinds_are_whole():
    assert Shaw(2, np.uint8(8), np.int8(100)).keys.shape == (201, 8)
    assert TransformerXL(np.uint8(16), np.uint8(16), 4).weight.shape == (256, 4)
    assert MultiHeadAttention(8, np.uint8(16), head_dim=np.uint8(16)).queries.weight.shape[0] == 256


def test_a_window_of_a_small_kind_hides_as_much():
    made = []
    for window in (3, np.uint8(3)):
        torch.manual_seed(0)
        made.append(Encoder(8, 2, 1, window=window).eval()(torch.randn(1, 9, 8)))
    assert torch.equal(*made)


@pytest.mark.parametrize(
    ("build", "numbers"),
    [
        (CyclicOffset, (100,)),
        (DualChunk, (100, 20)),
        (ReRoPE, (100, 3)),
        (SelfExtend, (7, 100, False)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("kind", KINDS[:-1])
def test_remapped_distances_of_any_kind_are_the_same(build, numbers, kind):
    odd = [value if type(value) is bool else in_kind(value, kind) for value in numbers]
    where = torch.arange(0, 700, 7)
    made = build(*odd).distance(where, where), build(*numbers).distance(where, where)
    assert torch.equal(*made)


@pytest.mark.parametrize("kind", [np.int8, lambda size: torch.tensor(size, dtype=torch.int8)])
def test_positions_of_small_kinds_do_not_wrap(kind):
    video = positions.symmetric_video(2, kind(100), kind(100), start=kind(5))
    assert torch.equal(video, positions.symmetric_video(2, 100, 100, start=5))
    mask = torch.ones(200, dtype=torch.bool)
    assert positions.left_padded(mask, start=kind(100))[-1] == 299
    assert positions.left_padded(mask[:3], start=np.uint8(0)).tolist() == [0, 1, 2]


def test_schedules_take_numbers_of_any_kind_for_what_they_are():
    extended = DynamicNTK(Geometric(8), 8, 100)
    assert extended.at(np.int64(200)) == extended.at(200) != extended.at(100)
    with pytest.raises(ValueError, match=r"length is np.uint8.* products wrap"):
        extended.at(np.uint8(200))
    assert DynamicNTK(Geometric(8), np.int64(8), np.int64(100)) == extended
    schedule = Geometric(16, base=256.0)
    assert intrinsic_frequency(schedule, np.uint64(48)) == intrinsic_frequency(schedule, 48) == 4
    far, other = DyNTK(Geometric(8), 64, 2.0, 50), DyNTK(Geometric(8), 64, 2.0, np.int64(50))
    assert other.at(128, time=0.9) == far.at(128, time=0.9)
