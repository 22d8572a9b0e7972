"""Which channels queries and keys turn, with whom, and how fast: from the matrices themselves."""

from dataclasses import dataclass
from functools import cached_property
from math import pi
from typing import Literal

import torch
from torch import Tensor

PHASE = 1e-5  # radians that cosines and sines of float32 leave open at position 0
COARSE = 2e-2  # radians that those leave open which are held in 16 bits, or far away
NEAR = 48  # positions by which a rotation is fitted
LENGTHS_CHANGE = "lengths of pairs change with position"
NONE = torch.zeros(0, dtype=torch.float64)


@dataclass(frozen=True)
class Structure:
    """What the matrices of a subject have in common."""

    dim: int  # width of a head
    firsts: tuple[int, ...] = ()  # first channels of the pairs that turn
    seconds: tuple[int, ...] = ()  # their partners
    frequencies: Tensor = NONE
    size: float = 1.0  # what the pairs are multiplied with
    odd: str = ""  # what is no rotation about it, in words
    odd_number: float = 0.0
    rest: float = 1.0  # of what channels that never turn are multiplied with, the farthest from 1
    phases: Tensor = NONE  # at position 0

    @cached_property
    def begin(self) -> int | None:
        """The number by which the first token is turned: 0, usually; None where there is none."""
        if not bool((self.phases.abs() > PHASE).any()):
            return 0
        slowest = int(self.frequencies.abs().argmin())  # the last whose turns are told apart
        number = (self.phases[slowest] / self.frequencies[slowest]).round()
        off = _turn(self.phases - number * self.frequencies)
        return int(number) if bool((off.abs() < COARSE).all()) else None

    @cached_property
    def steps(self) -> set[int]:
        """How far partners stand apart."""
        return {b - a for a, b in zip(self.firsts, self.seconds, strict=True)}

    @property
    def pairing(self) -> Literal["half", "interleaved", "other"]:
        """How partners stand."""
        if self.steps == {1}:
            return "interleaved"
        apart = len(self.steps) == 1 and min(self.steps) >= len(self.firsts)
        return "half" if apart else "other"

    @property
    def sense(self) -> int:
        """−1 where it turns backwards, as its first pair tells; else 1."""
        return -1 if self.firsts and self.frequencies[0] < 0 else 1

    @property
    def speeds(self) -> Tensor:
        """Radians per position in that sense; below zero of pairs that turn against it."""
        return self.sense * self.frequencies

    @property
    def width(self) -> int:
        """How many channels the pattern of pairs spans, those that never turn among them."""
        if self.steps == {1}:
            return self.seconds[-1] - self.firsts[0] + 1
        return 2 * (next(iter(self.steps)) if len(self.steps) == 1 else len(self.firsts))

    @property
    def start(self) -> int:
        """The first channel of the rotated ones."""
        return 0 if self.width >= self.dim else min(self.firsts)

    @property
    def place(self) -> Literal["prefix", "suffix", "between"]:
        """Where the rotated channels stand among all."""
        if not self.start:
            return "prefix"
        return "suffix" if self.start + self.width == self.dim else "between"

    def probe(self) -> Tensor:
        """Content that shows the cosine in each first channel and the sine in its partner."""
        content = torch.zeros(self.dim)
        content[list(self.firsts)] = 1.0
        return content

    def table(self, turned: Tensor) -> Tensor:
        """Cosines and sines from the turned probe ``[positions, dim]``."""
        return turned[:, [*self.firsts, *self.seconds]]


def structure(matrices: Tensor) -> Structure:
    """The pairs, and the frequency of each, from R(0) … R(n − 1) ``[n, dim, dim]``."""
    dim = matrices.shape[-1]
    moving = matrices.abs().amax(0).fill_diagonal_(0)  # by how much a channel goes into another
    most, partners = moving.max(0)
    first = (most >= 1e-9) & (partners > torch.arange(dim))
    a, b = first.nonzero().flatten().tolist(), partners[first].tolist()
    if not a:
        return Structure(dim)
    one = torch.complex(matrices[:, a, a], matrices[:, b, a])  # cos + i sin
    other = torch.complex(matrices[:, b, b], -matrices[:, a, b])  # the same of a rotation
    crowd = int((moving > 1e-4 * most.clamp(min=1e-3)).sum(0).max())
    odd = ("one channel goes into several", float(crowd)) if crowd > 1 else _oddity(one, other)
    still = sorted({*range(dim)} - {*a, *b})
    size, kept = one.abs().median().item(), matrices[:, still, still].flatten()
    off = torch.minimum((kept - 1).abs(), (kept - size).abs())  # a pair of frequency 0 has the size
    rest = kept[off.argmax()].item() if still and off.max() > 1e-3 else 1.0
    angles = one.angle()
    return Structure(dim, tuple(a), tuple(b), _frequencies(angles), size, *odd, rest, angles[0])


def _oddity(one: Tensor, other: Tensor) -> tuple[str, float]:
    """What keeps two channels from being one rotation, and by how much."""
    sines = one.imag.abs().max()
    if (one.imag + other.imag).abs().max() < 1e-4 * sines and (one - other).real.abs().max() < 1e-3:
        return "both sines have the same sign", 2 * sines.item()
    if (far := torch.view_as_real(one - other).abs().max().item()) > 1e-3:
        return "the two channels of a pair turn by different angles", far
    norm = one.abs().square()
    far = (norm - norm.mean()).abs().max().item()
    return (LENGTHS_CHANGE, far) if far > 1e-2 else ("", 0.0)


def _turn(angles: Tensor) -> Tensor:
    """Angles from −π to π."""
    return torch.remainder(angles + pi, 2 * pi) - pi


def _frequencies(angles: Tensor) -> Tensor:
    """Radians per position from the angle at 0, refined by farther and farther positions."""
    angles = angles - angles[0]
    found = _turn(angles[1])
    for p in (p for p in (2, 3, 5, 8, 13, 21, 34) if p < len(angles)):
        turns = ((p * found - angles[p]) / (2 * pi)).round()
        found = (angles[p] + 2 * pi * turns) / p
    return found
