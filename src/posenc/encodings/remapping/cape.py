"""CAPE: positions that are shifted, jittered and stretched while training."""

from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar

import torch
from torch import Tensor

from posenc.arguments import check_number
from posenc.encodings.base import PositionRemapping
from posenc.encodings.remapping.drawing import share, uniform
from posenc.encodings.shapes import WholeRow
from posenc.positions import Coordinates, checked, in_float64

FINENESS = 2**20
"""Steps that each step of the given coordinates is cut into."""


@dataclass(frozen=True)
class CAPE(PositionRemapping):
    """p_i → λ · (p_i + Δ + ε_i), in training only, drawn anew at each call

    with a global shift Δ ~ U(−global_shift, global_shift) and a scale λ, ln λ ~ U(−ln scale, ln
    scale), one for each row, and a local shift ε_i ~ U(−local_shift, local_shift) of each token.
    Order stays up to a local shift of half the distance between tokens. In evaluation positions
    stay; the paper centers those in seconds on their mean before. Results are real coordinates, so
    encodings must take reals. Hand one result to queries and keys of a row.

    Public implementations measure local shifts by the distance of neighboring tokens: where tokens
    stand 0.03 seconds apart, their 0.5 is ``local_shift=0.015`` here.

    Args:
        global_shift: Δmax, in units of the coordinates: 5 tokens for text in the paper, 60 seconds
            for speech.
        local_shift: εmax, likewise.
        scale: λmax, from 1 on.

    Reference:
        Likhomanenko et al. 2021, "CAPE: Encoding Relative Positions with Continuous Augmented
        Positional Embeddings", section 3.1 (arXiv:2106.03143).

    Example:
        >>> shifted = CAPE(global_shift=5, local_shift=0, scale=1)(range(3))
        >>> (shifted - shifted[:1]).tolist()
        [Fraction(0, 1), Fraction(1, 1), Fraction(2, 1)]
    """

    training_only: ClassVar[bool] = True

    global_shift: float = 5.0
    local_shift: float = 0.5
    scale: float = 1.03

    def __post_init__(self) -> None:
        check_number(0.0, global_shift=self.global_shift, local_shift=self.local_shift)
        check_number(1.0, scale=self.scale)

    def __call__(
        self, positions: WholeRow | Coordinates, *, generator: torch.Generator | None = None
    ) -> Coordinates:
        """The coordinates where the tokens are taken to stand."""
        given = checked(positions, reals=True)
        if isinstance(given, Tensor):
            given = Coordinates(given)
        if isinstance(given.scale, tuple):
            raise ValueError("CAPE takes coordinates of one axis, as coordinates[..., 0].")
        step = given.scale / FINENESS
        steps = given.values * FINENESS
        for most, shape in (
            (self.global_shift, (*steps.shape[:-1], 1)),
            (self.local_shift, steps.shape),
        ):
            reach = torch.full(shape, int(Fraction(most) / step), device=steps.device)
            steps = steps + uniform(2 * reach, generator) - reach
        if self.scale > 1:
            shape = torch.Size((*steps.shape[:-1], 1))
            drawn = 2 * share(shape, steps.device, generator) - 1
            steps = (in_float64(steps) * (drawn * log(self.scale)).exp()).round().long()
            steps = steps.to(given.device)
        return Coordinates(steps, scale=step)
