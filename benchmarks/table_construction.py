"""Building a table: into fresh memory, which the formulas do too, and into memory that exists.

The limit is to fill as much memory with one number. Real coordinates are held against as many whole
positions: those that follow each other, and those that do not.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import torch

from benchmarks.formulas import float32_formula, float64_formula, nested_loop
from benchmarks.harness import Case, bytes_of, copying
from posenc import ALiBi, DirectedRotary, Sinusoidal
from posenc.positions import Coordinates, consecutive

SIZES = [(512, 64), (2048, 64), (5000, 512), (65_536, 64), (131_072, 128), (524_288, 128)]
QUICK = [(512, 64), (16_384, 128)]
LONGEST_LOOP = 512
REALS, QUICK_REALS = [(16, 128), (4096, 128), (65_536, 64)], [(4096, 128)]
PLANE, QUICK_PLANE = [16, 1024, 4096], [1024]
"""Points of a rotary of directions."""
PAIRS, QUICK_PAIRS = [16, 256, 1024], [256]
"""Queries, and as many keys, of a bias."""


def cases(quick: bool) -> Iterator[Case]:
    """One case a size, of whole positions and then of real coordinates."""
    yield from whole_positions(quick)
    yield from real_coordinates(quick)


def real_coordinates(quick: bool) -> Iterator[Case]:
    """Frames of 1/30 second beside a run of whole positions, moments beside scattered ones.

    Seconds of float64 are rounded to one step of 62 bits.
    """
    for length, dim in QUICK_REALS if quick else REALS:
        encoding, run = Sinusoidal(dim), consecutive(length)
        frames = Coordinates(run, scale=Fraction(1, 30))
        scattered = torch.randint(2**30, (length,))
        moments = Coordinates(torch.rand(length) * 1000)
        seconds = waits(length)
        pairs = {
            "a run": (frames, run),
            "scattered": (moments, scattered),
            "seconds of float64": (seconds, scattered),
            "and a hair more": (seconds + Fraction(1, 2**90), scattered),
        }
        for kind, (reals, whole) in pairs.items():
            title = f"reals {length} × {dim}, {kind}"
            yield beside(title, lambda p, e=encoding: e.table(p), reals, whole)
    yield from points_and_pairs(quick)


def points_and_pairs(quick: bool) -> Iterator[Case]:
    """Sums of several axes, and distances: coordinates of one part, and of two."""
    directed, alibi = DirectedRotary.golden_gate(64, axes=2), ALiBi(8)
    for length in QUICK_PLANE if quick else PLANE:
        whole = torch.randint(2**30, (length, 2))
        kinds = {"exact": Coordinates(torch.rand(length, 2)), "rounded": waits(length, 2)}
        for kind, reals in kinds.items():
            title = f"reals {length} points × 64, directions, {kind}"
            yield beside(title, directed.table, reals, whole)
    for length in QUICK_PAIRS if quick else PAIRS:
        whole = torch.randint(2**30, (length,))
        kinds = {"exact": Coordinates(torch.rand(length)), "rounded": waits(length)}
        for kind, reals in kinds.items():
            title = f"reals {length} × {length}, ALiBi, {kind}"
            yield beside(title, lambda p: alibi.table(p, p), reals, whole)


def waits(*shape: int) -> Coordinates:
    """Seconds of float64, which no step holds exactly."""
    drawn = torch.rand(shape, dtype=torch.float64).log() * -600
    drawn.view(-1)[0] = 0.001
    return Coordinates(drawn)


def beside(
    title: str,
    table: Callable[[Any], torch.Tensor],
    reals: Coordinates,
    whole: torch.Tensor,
) -> Case:
    """The same table at real coordinates and at as many whole positions."""
    contenders = {
        "posenc, real coordinates": lambda: table(reals),
        "posenc, whole positions": lambda: table(whole),
    }
    return Case(title, contenders, lambda: table(whole), against="whole")


def whole_positions(quick: bool) -> Iterator[Case]:
    """The nested loop takes part while it is bearable."""
    for length, dim in QUICK if quick else SIZES:
        yield whole(length, dim)


def whole(length: int, dim: int) -> Case:
    """A table of one size."""
    encoding = Sinusoidal(dim)
    room = encoding.table(consecutive(length))
    contenders: dict[str, Callable[[], object]] = {
        "posenc, exact, fresh": lambda: encoding.table(consecutive(length)),
        "posenc, exact, out=": lambda: encoding.table(consecutive(length), out=room),
        "fill_, fresh": lambda: torch.empty_like(room).fill_(1.0),
        "fill_, out=": lambda: room.fill_(1.0),
        "float32 formula, fresh": lambda: float32_formula(length, dim),
        "float64 formula, fresh": lambda: float64_formula(length, dim),
    }
    if length <= LONGEST_LOOP and not room.is_cuda:
        contenders["nested loop, fresh"] = lambda: nested_loop(length, dim)
    size = bytes_of(room)
    return Case(f"table {length} × {dim}", contenders, copying(room), copied=size, moved=size)
