"""Each frequency divided by a number of its own."""

from dataclasses import dataclass
from decimal import Decimal

import torch
from jaxtyping import Float32
from torch import Tensor

from posenc.frequencies.geometric import Geometric
from posenc.frequencies.schedule import (
    Number,
    Schedule,
    check_positive,
    check_schedule,
    exact,
    listed,
)


@dataclass(frozen=True)
class Divided(Schedule):
    """ω_i / e_i, and an attention factor.

    Args:
        of: The schedule to rescale.
        divisors: e_i, one a frequency.
        attention: What the attention factor of ``of`` is multiplied with.

    Raises:
        ValueError: There are more or fewer divisors than frequencies, or one is not positive.

    Reference:
        Ding et al. 2024, "LongRoPE", equation 2 (arXiv:2402.13753), where λ_i stands for e_i.

    Example:
        >>> from posenc.frequencies import Geometric
        >>> Divided(Geometric(4, base=100.0), (1.0, 4.0)).wavelengths()
        (6.283185307179586, 251.32741228718345)
    """

    of: Schedule
    divisors: tuple[Number, ...]
    attention: float = 1.0

    def __post_init__(self):
        check_schedule(self, self.of)
        object.__setattr__(self, "divisors", listed(self, "divisors", self.divisors))
        if len(self.divisors) != len(self.of):
            raise ValueError(
                f"There are {len(self.divisors)} divisors for {len(self.of)} frequencies of "
                f"{self.of!r}. Give one a frequency."
            )
        for divisor in self.divisors:
            check_positive(self, divisor=divisor)
        check_positive(self, attention=self.attention)
        self._settle(
            attention_factor=self.of.attention_factor * self.attention,
            softmax_factor=self.of.softmax_factor,
        )

    def radians(self) -> tuple[Decimal, ...]:
        return tuple(w / exact(e) for w, e in zip(self.of.radians(), self.divisors, strict=True))

    def float32(self, form: str) -> Float32[Tensor, "frequencies"]:
        divisors = torch.tensor([float(e) for e in self.divisors], dtype=torch.float32)
        if isinstance(self.of, Geometric):  # rounded as in transformers, which divides once
            exponents = torch.arange(0, self.of.dim, 2).float() / self.of.dim
            return 1.0 / (divisors * self.of.base**exponents)
        return self.of.float32(form) / divisors
