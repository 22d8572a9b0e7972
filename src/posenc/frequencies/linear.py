"""Position interpolation: every frequency divided by one factor."""

from dataclasses import dataclass
from decimal import Decimal

from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.schedule import Number, Schedule, check_positive, exact


@dataclass(frozen=True)
class Linear(Schedule):
    """ω_i / s: positions are squeezed by the factor s, and every wavelength grows by it.

    Args:
        of: The schedule to rescale; its attention factor is kept.
        factor: s; 1 changes nothing, bit for bit.

    Raises:
        ValueError: ``factor`` is not positive and finite.

    Reference:
        Chen et al. 2023, "Extending Context Window of Large Language Models via Positional
        Interpolation", equation 4 (arXiv:2306.15595).

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Linear(Geometric(4, base=100.0), factor=2.0).wavelengths()
        (12.566370614359172, 125.66370614359172)
    """

    of: Schedule
    factor: Number

    def __post_init__(self):
        check_positive(self, factor=self.factor)

    @property
    def attention_factor(self) -> float:
        return self.of.attention_factor

    @property
    def softmax_factor(self) -> float:
        return self.of.softmax_factor

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w / exact(self.factor) for w in self.of.radians())

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        return self.of.float32(form) / float(self.factor)
