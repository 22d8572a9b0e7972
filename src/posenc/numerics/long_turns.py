"""Frequencies for coordinates that take more than 63 bits: of a step, and of its rest."""

from array import array
from dataclasses import dataclass
from functools import cached_property

from posenc.frequencies.schedule import LONG_TURN_BITS

WORD = 64
RADIANS = 6.283185307179586


@dataclass(frozen=True)
class LongTurns:
    """Turns in units of 2^-256: phase = steps · of_step + rest · of_rest.

    Attributes:
        of_step: The turns of a step.
        of_rest: The turns of a unit of its rest, 2^-62 of a step.

    Example:
        >>> quarter = LongTurns(of_step=(1 << 254,), of_rest=(1 << 192,))
        >>> quarter.words.tolist(), quarter.radians.tolist()
        ([0, 0, 0, 4611686018427387904, 0, 0, 0, 1], [1.5707963267948966])
    """

    of_step: tuple[int, ...]
    of_rest: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.of_step)

    @cached_property
    def words(self) -> array:
        """Both as kernels read them, in four words each, the lowest first."""
        shifts, turns = range(0, LONG_TURN_BITS, WORD), self.of_step + self.of_rest
        return array("Q", [turn >> shift & 2**WORD - 1 for turn in turns for shift in shifts])

    @cached_property
    def radians(self) -> array:
        """The sizes of frequencies in radians a step, within rounding."""
        return array("d", [abs(turn) * 2.0**-LONG_TURN_BITS * RADIANS for turn in self.of_step])
