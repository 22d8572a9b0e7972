"""Resonance RoPE: every wavelength a whole number of positions."""

from dataclasses import dataclass
from decimal import Decimal

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import TWO_PI, Schedule, check_schedule


@dataclass(frozen=True)
class Resonance(Schedule):
    """ω_i → 2π / λ_i with λ_i = round(2π / ω_i), so that a pair repeats after λ_i positions.

    Each pair whose wavelength fits the trained length then meets no value at test time that it has
    not met in training. It comes last: the paper rounds the wavelengths of RoPE and those of YaRN
    alike. A frequency of 0 stays 0.

    Args:
        of: The schedule to round; its attention factor is kept.

    Raises:
        ValueError: The wavelength of a pair is nearest to 0 or 1, where all positions look alike.

    Reference:
        Wang et al. 2024, "Resonance RoPE: Improving Context Length Generalization of Large Language
        Models" (arXiv:2403.00071); ``ResonanceRotaryEmbedding`` in sheryc/resonance_rope.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Resonance(Geometric(6, base=1000.0)).wavelengths()
        (6.0, 63.0, 628.0)
    """

    of: Schedule

    def __post_init__(self):
        check_schedule(self, self.of)
        self._settle(
            attention_factor=self.of.attention_factor, softmax_factor=self.of.softmax_factor
        )
        shortest = min(abs(length) for length in self.of.wavelengths())
        if shortest < 1.5:
            raise ValueError(
                f"A pair of {self.of!r} has a wavelength of {shortest:g} positions, nearest to "
                f"{round(shortest)}; rounded so, all positions would look alike. Resonance "
                f"takes wavelengths from 1.5 on."
            )

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w and TWO_PI / (TWO_PI / w).to_integral_value() for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        """The frequencies as the authors' float32 code has them; those of 0 stay 0."""
        every = self.of.float32(form)
        return torch.where(every == 0, every, 2 * torch.pi / (2 * torch.pi / every).round())
