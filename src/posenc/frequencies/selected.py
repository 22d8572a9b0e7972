"""Some frequencies of a schedule, in the order that is asked for."""

from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import Schedule, check_schedule, listed


@dataclass(frozen=True)
class Selected(Schedule):
    """ω_j for j in ``indices``: what one axis of a grid turns by.

    Raises:
        TypeError: ``indices`` are no numbers.
        IndexError: An index is none of the schedule's.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Selected(Geometric(6, base=1000.0), (2, 0)).wavelengths()
        (628.3185307179587, 6.283185307179586)
    """

    of: Schedule
    indices: tuple[int, ...]

    def __post_init__(self):
        check_schedule(self, self.of)
        object.__setattr__(self, "indices", listed(self, "indices", self.indices))
        if any(not isinstance(i, Integral) or not 0 <= i < len(self.of) for i in self.indices):
            raise IndexError(
                f"indices are {self.indices}; {self.of!r} has frequencies 0 … {len(self.of) - 1}."
            )
        self._settle(
            attention_factor=self.of.attention_factor, softmax_factor=self.of.softmax_factor
        )

    def radians(self) -> tuple[Decimal, ...]:
        every = self.of.radians()
        return tuple(every[i] for i in self.indices)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.of.float32(form)[list(self.indices)]
