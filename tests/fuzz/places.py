"""Positions built from random numbers of any size and kind, against Python's own whole numbers.

What comes back is what the definition says, number by number, or an error.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, product
from typing import Any

import torch
from hypothesis import strategies as st

from posenc import positions
from posenc.positions import Coordinates

LAST = 2**63 - 1
ENDS = (0, 1, -1, 5, -7, 2**31, 2**40, 2**53 + 1, 2**61, 2**62, LAST - 3, LAST, LAST + 1, -LAST)

sizes = st.integers(0, 4)
starts = st.sampled_from(ENDS[:8]) | st.integers(-9, 9)
rows = st.lists(st.booleans(), min_size=1, max_size=6)
rationals = st.builds(
    Fraction,
    st.integers(-99, 99) | st.sampled_from(ENDS[:9]),
    st.sampled_from([1, 2, 3, 10, 2**20]),
)


@dataclass(frozen=True)
class Layout:
    """One call, and what it must give.

    Attributes:
        name: The function, of ``posenc.positions``.
        given: Its arguments.
        named: Those by name.
        want: The numbers by the definition.
    """

    name: str
    given: tuple
    named: dict[str, Any]
    want: Callable[[], list]


def _run(start: int, length: int) -> list[int]:
    return [start + i for i in range(length)]


def _padded(mask: list[bool], start: int) -> list[int]:
    counts = accumulate(mask)
    return [max(start + count - 1, min(start, 0)) for count in counts]


def _documents(lengths: list[int]) -> list[int]:
    return [place for length in lengths for place in range(length)]


def _grid(shape: list[int], start: int, stride: int) -> list[list[int]]:
    return [[start + stride * i for i in point] for point in product(*map(range, shape))]


def _video(frames: int, height: int, width: int, start: int) -> list[list[int]]:
    step = height + width - 1
    return [
        [
            start + step * frame + row + column
            for row in (y, height - 1 - y)
            for column in (x, width - 1 - x)
        ]
        for frame, y, x in product(range(frames), range(height), range(width))
    ]


@st.composite
def layouts(draw) -> Layout:
    """A call with whole numbers."""
    a, b, c = (draw(sizes) for _ in range(3))
    start, stride = draw(starts), draw(starts)
    mask, lengths = draw(rows), draw(st.lists(sizes, max_size=4))
    return draw(
        st.sampled_from(
            [
                Layout("consecutive", (a,), {"start": start}, lambda: _run(start, a)),
                Layout("decoding", (abs(start), a), {}, lambda: _run(abs(start), a)),
                Layout("left_padded", (torch.tensor(mask),), {"start": start},
                       lambda: _padded(mask, start)),
                Layout("left_padded", (torch.tensor([mask]),),
                       {"start": torch.tensor([max(min(start, LAST), -LAST)])},
                       lambda: [_padded(mask, start)]),
                Layout("packed", (lengths,), {}, lambda: _documents(lengths)),
                Layout("grid", (a, b), {"start": start, "stride": stride},
                       lambda: _grid([a, b], start, stride)),
                Layout("centers", (a, b), {"start": start, "cell": c},
                       lambda: _grid([a, b], 2 * start + c, 2 * c)),
                Layout("symmetric_video", (a, b, c), {"start": start},
                       lambda: _video(a, b, c, start)),
                Layout("shard", (4 * a, b % 2, 2), {"layout": "zigzag"},
                       lambda: [i + a * piece for piece in (b % 2, 3 - b % 2) for i in range(a)]),
                Layout("prefixed", (torch.zeros(1, 2, dtype=torch.int64), a), {"at": start},
                       lambda: [[start, start]] * a + [[0, 0]]),
            ]
        )
    )  # fmt: skip


def check_layout(layout: Layout) -> None:
    """Make it, and compare."""
    try:
        made = getattr(positions, layout.name)(*layout.given, **layout.named)
    except (ValueError, TypeError, RuntimeError):
        return
    assert made.dtype == torch.int64, f"{layout} gave {made.dtype}"
    assert made.tolist() == layout.want(), f"{layout} gave {made.tolist()}"


@dataclass(frozen=True)
class Sum:
    """Coordinates that meet others and a number, in one of the four ways."""

    values: list[Fraction]
    others: list[Fraction]
    number: Fraction
    what: str


@st.composite
def sums(draw) -> Sum:
    """Coordinates of random scales."""
    count = draw(st.integers(1, 4))
    some = st.lists(rationals, min_size=count, max_size=count)
    what = draw(st.sampled_from(["+", "-", "* number", "/ number", "+ number", "number -"]))
    return Sum(draw(some), draw(some), draw(rationals), what)


def check_sum(case: Sum) -> None:
    """Products are exact, and sums within two roundings to 62 bits of the largest; or refused."""
    number = case.number
    ways: dict[str, tuple[Callable, Callable]] = {
        "+": (lambda c, d: c + d, lambda x, y: x + y),
        "-": (lambda c, d: c - d, lambda x, y: x - y),
        "* number": (lambda c, _: c * number, lambda x, _: x * number),
        "/ number": (lambda c, _: c / number, lambda x, _: x / number),
        "+ number": (lambda c, _: c + number, lambda x, _: x + number),
        "number -": (lambda c, _: number - c, lambda x, _: number - x),
    }
    ours, theirs = ways[case.what]
    try:
        given, met = Coordinates(case.values), Coordinates(case.others)
        made = ours(given, met).tolist()
    except (ValueError, TypeError, ZeroDivisionError):
        return
    both = given.tolist(), met.tolist()
    want = [theirs(x, y) for x, y in zip(*both, strict=True)]
    largest = max(map(abs, (*both[0], *both[1], number)))
    off = 0 if case.what in ("* number", "/ number") else largest / 2**60
    near = (abs(x - y) <= off for x, y in zip(made, want, strict=True))
    assert all(near), f"{case} gave {made}, not {want}"
