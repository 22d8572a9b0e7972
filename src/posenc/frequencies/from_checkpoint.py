"""Frequencies that a checkpoint brings along."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import isfinite

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import Schedule, listed, rational


@dataclass(frozen=True)
class FromCheckpoint(Schedule):
    """ω_i as given: a float is the exact rational number that it is, not its decimal print.

    Args:
        frequencies: Radians per position; a tensor of any float dtype, or numbers.

    Raises:
        TypeError: They are no real numbers.
        ValueError: There is no frequency, one is not finite, or a tensor of them is no row.

    Example:
        >>> FromCheckpoint(torch.tensor([1.0, 0.1])).frequencies
        (Fraction(1, 1), Fraction(13421773, 134217728))
    """

    frequencies: tuple[Fraction, ...]

    def __init__(self, frequencies: Tensor | Iterable[float | Fraction]):
        if isinstance(frequencies, Tensor):
            if frequencies.ndim != 1:
                raise ValueError(
                    f"frequencies have shape {tuple(frequencies.shape)}; they must be one row, a "
                    f"number for each pair. Build a schedule for each layer or head."
                )
            held = frequencies.detach().cpu()
            frequencies = (held.double() if held.is_floating_point() else held).tolist()
        values = listed(self, "frequencies", frequencies)
        bad = [w for w in values if not isfinite(w)]
        if bad or not values:
            raise ValueError(
                f"frequencies hold {bad or 'nothing'}; they must be one or more finite numbers in "
                f"radians per position, as a checkpoint's inv_freq."
            )
        object.__setattr__(self, "frequencies", tuple(rational(w) for w in values))

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(Decimal(w.numerator) / Decimal(w.denominator) for w in self.frequencies)

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies in float32; a checkpoint has one form only."""
        return torch.tensor([float(w) for w in self.frequencies], dtype=torch.float32)
